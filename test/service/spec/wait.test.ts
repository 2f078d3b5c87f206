// Waiting for a state (docs/interface.md#waits). Tests about time control the clock.
import { connect } from "node:net";
import { expect, test } from "vitest";
import { ManualClock } from "../../../service/index.ts";
import { withApp } from "../client.ts";

const stillClock = () => withApp({ clock: new ManualClock(), delays: "believable" });
type App = Awaited<ReturnType<typeof stillClock>>;

/** Sends a wait and returns once the service holds it. */
async function hold(app: App, id: string, query: string) {
  const { waits } = app.service.context;
  const before = waits.size;
  let done = false;
  const answer = app.call("GET", `${app.machines}/${id}/wait${query}`).finally(() => (done = true));
  await expect.poll(() => waits.size, { interval: 1 }).toBe(before + 1);
  return { answer, done: () => done };
}

test("a wait returns at once if the state is already reached", async () => {
  const { call, machine, machines } = await withApp();
  const { id, version } = await machine();
  const answer = await call("GET", `${machines}/${id}/wait`);
  expect(answer).toMatchObject({ status: 200, body: { ok: true, state: "started", version } });
  const [latest] = (await call("GET", `${machines}/${id}/events?limit=1`)).body;
  expect(answer.body.event_id).toBe(latest.id);
});

test("a wait is held and returns at the change, not before", async () => {
  const app = await stillClock();
  const { id } = await app.machine();
  const wait = await hold(app, id, "?state=started&timeout=60");
  app.clock.advance(200);
  expect(wait.done()).toBe(false);
  app.clock.advance(500);
  expect((await wait.answer).body).toMatchObject({ ok: true, state: "started" });
});

test("a wait returns within 50 ms of the change", async () => {
  const app = await stillClock();
  const { id } = await app.machine();
  app.clock.advance(10_000);
  const wait = await hold(app, id, "?state=stopped&timeout=60");
  await app.call("POST", `${app.machines}/${id}/stop`);
  const state = async () => (await app.call("GET", `${app.machines}/${id}`)).body.state;
  for (let i = 0; i < 1000 && (await state()) !== "stopped"; i++) app.clock.advance(10);
  // From here on the clock stands still.
  expect((await wait.answer).body).toMatchObject({ ok: true, state: "stopped" });
  const [stop] = (await app.call("GET", `${app.machines}/${id}/events?limit=1`)).body;
  expect(app.clock.now() - stop.timestamp).toBeLessThan(50);
});

test("several states, repeated or separated by commas", async () => {
  const app = await stillClock();
  for (const query of ["?state=stopped&state=failed", "?state=stopped,failed"]) {
    const { id } = await app.machine({ image: "nginx:simulate-crash", restart: { policy: "no" } });
    const wait = await hold(app, id, query);
    app.clock.advance(3000);
    expect((await wait.answer).body).toMatchObject({ state: "failed" });
  }
});

test.each([
  ["0", 400],
  ["61", 400],
  ["-5", 400],
  ["1", 200],
  ["60", 200],
])("a timeout of %s s returns %i", async (timeout, status) => {
  const { call, machine, machines } = await withApp();
  const { id } = await machine();
  const answer = await call("GET", `${machines}/${id}/wait?timeout=${timeout}`);
  expect(answer.status).toBe(status);
  if (status === 400)
    expect(answer.body.error).toBe(
      "invalid_argument: invalid WaitMachineRequest.Timeout: value must be inside range [1s, 1m0s]",
    );
});

test("invalid states and identifiers are 400", async () => {
  const { call, machine, machines } = await withApp();
  const { id } = await machine();
  for (const query of ["state=running", "state=started,bogus", "version=short", "from_event_id=x", "timeout=soon"]) {
    expect([query, (await call("GET", `${machines}/${id}/wait?${query}`)).status]).toEqual([query, 400]);
  }
});

test("408 names the requested state and the current one", async () => {
  const app = await stillClock();
  const { id } = await app.machine({}, { skip_launch: true });
  app.clock.advance(1000);
  const wait = await hold(app, id, "?state=started&timeout=10");
  app.clock.advance(9999);
  expect(wait.done()).toBe(false);
  app.clock.advance(1);
  expect(await wait.answer).toMatchObject({
    status: 408,
    body: { error: "deadline_exceeded: machine failed to reach desired state, started, currently stopped" },
  });
  expect(app.service.context.waits.size).toBe(0);
});

test("the timeout is 60 s by default", async () => {
  const app = await stillClock();
  const { id } = await app.machine({}, { skip_launch: true });
  const wait = await hold(app, id, "");
  app.clock.advance(59_999);
  expect(wait.done()).toBe(false);
  app.clock.advance(1);
  expect((await wait.answer).status).toBe(408);
});

test("settled is any stable state, without a pending transition", async () => {
  const app = await stillClock();
  const settled = async (config: object, more: object = {}) => {
    const { id } = await app.machine(config, more);
    const wait = await hold(app, id, "?state=settled");
    app.clock.advance(59_000);
    return (await wait.answer).body.state;
  };
  expect(await settled({})).toBe("started");
  expect(await settled({}, { skip_launch: true })).toBe("stopped");
  expect(await settled({ image: "nginx:simulate-crash", restart: { max_retries: 3 } })).toBe("failed"); // not `stopped` between the attempts
});

test("settled is reached when a stop ends the attempts of the restart policy, which is no transition", async () => {
  const app = await stillClock();
  const { id } = await app.machine({ restart: { policy: "always" }, env: { MACHINES_SIMULATE: "exit:0" } });
  for (let ms = 0; ms < 5000 && (await app.state(id)) !== "stopped"; ms += 50) app.clock.advance(50);
  const wait = await hold(app, id, "?state=settled");
  expect((await app.call("POST", `${app.machines}/${id}/stop`)).status).toBe(200);
  const [latest] = (await app.call("GET", `${app.machines}/${id}/events?limit=1`)).body;
  const reached = { ok: true, state: "stopped", event_id: latest.id };
  expect((await wait.answer).body).toMatchObject(reached);
  expect((await app.call("GET", `${app.machines}/${id}/wait?state=settled`)).body).toMatchObject(reached);
});

test("a wait for an old version fails and says that it was replaced", async () => {
  const app = await stillClock();
  const made = await app.machine();
  const one = `${app.machines}/${made.id}`;
  const wait = await hold(app, made.id, `?version=${made.version}`);
  const updated = (await app.call("POST", one, { config: { image: "nginx:2" } })).body;
  expect(await wait.answer).toMatchObject({
    status: 412,
    body: { error: expect.stringContaining("currently replaced") },
  });
  expect((await app.call("GET", `${one}/wait?instance_id=${made.version}`)).body.error).toContain("currently replaced");
  const next = await hold(app, made.id, `?version=${updated.version}`);
  app.clock.advance(1000);
  expect((await next.answer).body).toMatchObject({ state: "started", version: updated.version });
});

test("a wait for a version that never existed is 404", async () => {
  const { call, machine, machines } = await withApp();
  const { id } = await machine();
  expect((await call("GET", `${machines}/${id}/wait?version=01HQ73A7BFFDF1B6WMGHFZZ4E7`)).status).toBe(404);
});

test("from_event_id: only later events count, including states that have ended", async () => {
  const app = await stillClock();
  const { id } = await app.machine();
  const one = `${app.machines}/${id}`;
  app.clock.advance(1000);
  const [{ id: event }] = (await app.call("GET", `${one}/events?limit=1`)).body;
  const wait = await hold(app, id, `?state=started&from_event_id=${event}`); // it is started, but that was before
  await app.call("POST", `${one}/stop`);
  app.clock.advance(1000);
  expect(wait.done()).toBe(false);
  await app.call("POST", `${one}/start`);
  app.clock.advance(1000);
  const { body } = await wait.answer;
  expect(body).toMatchObject({ state: "started" });
  expect(body.event_id > event).toBe(true);
  expect((await app.call("GET", `${one}/wait?state=stopped&from_event_id=${event}`)).body.state).toBe("stopped");
});

test("cordoning is not a transition", async () => {
  const app = await stillClock();
  const { id } = await app.machine();
  const one = `${app.machines}/${id}`;
  app.clock.advance(1000);
  const [{ id: event }] = (await app.call("GET", `${one}/events?limit=1`)).body;
  const wait = await hold(app, id, `?timeout=5&from_event_id=${event}`);
  await app.call("POST", `${one}/cordon`);
  app.clock.advance(5000);
  expect((await wait.answer).status).toBe(408);
});

test("a state that the Machine passed through during a wait counts as reached", async () => {
  const app = await withApp({ clock: new ManualClock(), delays: "none" });
  const { id } = await app.machine({}, { skip_launch: true });
  const wait = await hold(app, id, "?state=started");
  // Started and stopped again within one transaction: a later read shows `stopped`.
  await app.call("POST", `${app.machines}/${id}`, {
    config: { image: "nginx", restart: { policy: "no" }, env: { MACHINES_SIMULATE: "exit:0" } },
  });
  expect((await wait.answer).body.state).toBe("started");
  expect(await app.state(id)).toBe("stopped");
});

test("waiting for destroyed succeeds when the Machine is gone, any other wait gets 404", async () => {
  const app = await stillClock();
  const { id } = await app.machine();
  app.clock.advance(1000);
  const [destroyed, stopped] = [await hold(app, id, "?state=destroyed"), await hold(app, id, "?state=stopped")];
  await app.call("DELETE", `${app.machines}/${id}?force=true`);
  app.clock.advance(1000);
  expect(await destroyed.answer).toMatchObject({ status: 200, body: { ok: true, state: "destroyed" } });
  expect((await stopped.answer).status).toBe(404);
  expect((await app.call("GET", `${app.machines}/${id}/wait?state=destroyed`)).status).toBe(200);
  expect((await app.call("GET", `${app.machines}/00000000000000/wait?state=destroyed`)).status).toBe(404);
});

test("deleting the App ends the waits for its Machines", async () => {
  const app = await stillClock();
  const { id } = await app.machine();
  const [destroyed, stopped] = [await hold(app, id, "?state=destroyed"), await hold(app, id, "?state=stopped")];
  await app.call("DELETE", "/apps/web?force=true");
  expect((await destroyed.answer).status).toBe(200);
  expect((await stopped.answer).status).toBe(404);
});

test("a disconnected client frees its resources", async () => {
  const app = await stillClock();
  const { id } = await app.machine({}, { skip_launch: true });
  const { waits } = app.service.context;
  const socket = connect(Number(new URL(app.url).port), "127.0.0.1");
  socket.write(
    `GET /v1${app.machines}/${id}/wait HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${app.token}\r\n\r\n`,
  );
  await expect.poll(() => waits.size).toBe(1);
  socket.destroy();
  await expect.poll(() => waits.size).toBe(0);
});

test("closing the service ends held requests at once, and the client reconnects", async () => {
  const app = await stillClock();
  const { id } = await app.machine({}, { skip_launch: true });
  const wait = await hold(app, id, "");
  const closed = app.service.close();
  const answer = await wait.answer;
  expect(answer.status).toBe(503);
  expect(answer.headers.get("connection")).toBe("close");
  await closed;
});

test("one change notifies a thousand waits for one Machine", async () => {
  const app = await stillClock();
  const { id } = await app.machine();
  const waits = Array.from({ length: 1000 }, () =>
    app.service.app.inject({ url: `/v1${app.machines}/${id}/wait`, headers: { authorization: `Bearer ${app.token}` } }),
  );
  const answers = Promise.all(waits);
  await expect.poll(() => app.service.context.waits.size).toBe(1000);
  app.clock.advance(1000);
  expect((await answers).every(({ statusCode }) => statusCode === 200)).toBe(true);
});

// A runtime may be late, fail, or be called needlessly. The test controls the reports of its runtime.
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import type { Runtime, RuntimeFactory, RuntimeHost } from "../../service/runtime/runtime.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { caller, withApp } from "./client.ts";
import { withModel } from "./reconciler/modelApp.ts";

/** A runtime that does nothing by itself and records its calls. */
function byHand(more: Partial<Runtime> = {}) {
  const asked: string[] = [];
  let host: RuntimeHost | undefined;
  const note = (what: string) => () => void asked.push(what);
  const factory: RuntimeFactory = (given) => {
    host = given;
    return {
      name: "by hand",
      problem: () => undefined,
      hasRoom: () => true,
      create: note("create"),
      start: note("start"),
      stop: note("stop"),
      suspend: note("suspend"),
      destroy: note("destroy"),
      signal: note("signal"),
      exec: () => new Promise(() => {}),
      processes: () => Promise.resolve([]),
      limitMemory: note("limitMemory"),
      memory: () => Promise.resolve({ limitMb: 256, availableMb: 0 }),
      reclaim: () => Promise.resolve(0),
      ...more,
    };
  };
  return { factory, asked, host: () => host as RuntimeHost, events: () => (host as RuntimeHost).events };
}

const settled = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

test("a runtime's report about a replaced version is ignored", async () => {
  const runtime = byHand();
  const app = await withApp({ runtime: runtime.factory });
  const old = await app.machine();
  const now = (await app.call("POST", `${app.machines}/${old.id}`, { config: { image: "nginx:2" } })).body;
  runtime.events().prepared(old);
  await settled();
  expect(await app.state(old.id)).toBe("replacing");
  runtime.events().prepared(now);
  await settled();
  expect(await app.state(old.id)).toBe("starting");
});

test("a runtime knows the start of a Machine for as long as it runs, after however many events", async () => {
  const runtime = byHand();
  const app = await withApp({ runtime: runtime.factory });
  const machine = await app.machine();
  const one = `${app.machines}/${machine.id}`;
  for (const event of ["prepared", "started"] as const) {
    runtime.events()[event](machine);
    await settled();
  }
  const start = () => runtime.host().subject(machine.id)?.start;
  const before = start();
  expect(before).toMatch(/^[0-9A-Z]{26}$/);
  const reached = async () => (await app.call("GET", `${one}/wait?state=started`)).body;
  const { event_id } = await reached();
  for (let count = 0; count < 60; count++)
    for (const what of ["cordon", "uncordon"]) await app.call("POST", `${one}/${what}`);
  expect(start()).toBe(before);
  expect((await reached()).event_id).toBe(event_id);
  // They are the only ones that are kept beside the latest hundred.
  const { store } = app.service.context;
  expect(store.get<{ count: number }>("SELECT count(*) AS count FROM events")?.count).toBe(102);
});

test("a process that exits while it is being suspended has exited", async () => {
  const runtime = byHand();
  const app = await withApp({ runtime: runtime.factory });
  const machine = await app.machine({ restart: { policy: "no" } });
  for (const event of ["prepared", "started"] as const) {
    runtime.events()[event](machine);
    await settled();
  }
  await app.call("POST", `${app.machines}/${machine.id}/suspend`);
  runtime.events().exited(machine, { code: 0, signal: 0, oom: false, requested: false });
  await settled();
  expect(await app.state(machine.id)).toBe("stopped");
});

test("a refused request never reaches the runtime", async () => {
  const runtime = byHand();
  const app = await withApp({ runtime: runtime.factory });
  const body = { config: { image: "nginx" }, lease_ttl: 99_999 };
  expect((await app.call("POST", app.machines, body)).status).toBe(400);
  expect(runtime.asked).toEqual([]);
});

test("an error during a runtime's report is logged by the service and not thrown to the runtime", async () => {
  const runtime = byHand();
  const app = await withApp({ runtime: runtime.factory });
  const machine = await app.machine();
  app.service.context.store.db.exec(
    "CREATE TRIGGER refuse BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no'); END",
  );
  expect(() => runtime.events().prepared(machine)).not.toThrow();
  await settled();
  app.service.context.store.db.exec("DROP TRIGGER refuse");
  expect(await app.state(machine.id)).toBe("created"); // none of it is partially applied
});

test("a volume and its snapshot are written, and discarded, although the disk was full when that was reported", async () => {
  const app = await withModel({ clock: new ManualClock(), delays: "none" });
  const { call, engine, clock } = app;
  let failed = app.failFirst("SELECT 1 FROM volumes WHERE written = 1");
  const { id } = await app.volume();
  const at = `/apps/web/volumes/${id}`;
  await failed;
  await expect.poll(async () => (await call("GET", at)).body.state).toBe("created");
  failed = app.failFirst("SELECT 1 FROM snapshots WHERE written = 1");
  await call("POST", `${at}/snapshots`);
  await failed;
  await expect.poll(async () => (await call("GET", `${at}/snapshots`)).body[0].status).toBe("created");
  expect(engine.volumes.size).toBe(2);
  await call("DELETE", at);
  const { store } = app.service.context;
  failed = app.failFirst(
    "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM volumes) AND NOT EXISTS (SELECT 1 FROM snapshots) AND NOT EXISTS (SELECT 1 FROM discarded)",
  );
  clock.advance(10 * 24 * 3_600_000);
  await failed;
  await expect.poll(() => store.all("SELECT id FROM discarded")).toEqual([]);
  await expect.poll(() => store.unsettled).toBeUndefined();
  expect(store.all("SELECT id FROM discarded")).toEqual([]);
  expect([...engine.volumes]).toEqual([]);
});

test("a check passes although the disk was full when that was reported", async () => {
  const server = createServer((socket) => void socket.on("error", () => {}));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  afterThisTest(() => void server.close());
  const endpoint = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const app = await withModel({}, {}, (driver) => {
    driver.publishedOf = (_machine, { made }) => ({
      run: made.id,
      endpoints: new Map([[8080, endpoint]]),
      listens: () => Promise.resolve(true),
    });
  });
  const failed = app.failFirst("SELECT 1 FROM machines WHERE checks = 'passing'");
  // It runs once in the time of this test.
  const checks = [{ type: "tcp", port: 8080, interval: "1h" }];
  const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 80 }], checks }];
  const { id } = await app.machine({ services });
  await failed;
  const results = async () => (await app.call("GET", `${app.machines}/${id}`)).body.checks;
  await expect.poll(results).toMatchObject([{ status: "passing" }]);
});

test("an App whose removal failed is removed by the next try", async () => {
  let refuses = true;
  const runtime = byHand({
    destroy() {
      if (refuses) throw new Error("not now");
    },
  });
  const app = await withApp({ runtime: runtime.factory, clock: new ManualClock() });
  await app.machine();
  expect((await app.call("DELETE", "/apps/web?force=true")).status).toBe(202);
  expect((await app.call("GET", "/apps/web")).status).toBe(200);
  refuses = false;
  app.clock.advance(60_000);
  expect((await app.call("GET", "/apps/web")).status).toBe(404);
});

test("a command without a client is aborted, and a running one ends with the service", async () => {
  const ended: string[] = [];
  const runtime = byHand({
    exec(_machine, { words, signal }) {
      signal.addEventListener("abort", () => ended.push(words.join(" ")));
      return new Promise(() => {});
    },
  });
  const app = await withApp({ runtime: runtime.factory });
  const machine = await app.machine();
  for (const event of ["prepared", "started"] as const) {
    runtime.events()[event](machine);
    await settled();
  }
  const at = `${app.machines}/${machine.id}/exec`;
  const gone = new AbortController();
  const left = fetch(`${app.url}/v1${at}`, {
    method: "POST",
    headers: { authorization: `Bearer ${app.token}` },
    body: JSON.stringify({ command: ["first"] }),
    signal: gone.signal,
  });
  await expect.poll(() => app.service.context.waits.size).toBe(1);
  gone.abort();
  await expect(left).rejects.toThrow();
  await expect.poll(() => ended).toEqual(["first"]);

  const held = caller(app.url, app.token)("POST", at, { command: ["second"] });
  await expect.poll(() => app.service.context.waits.size).toBe(1);
  await app.close();
  expect((await held).status).toBe(503);
  expect(ended).toEqual(["first", "second"]);
});

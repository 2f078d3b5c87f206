// What is created again after a container engine was lost (F101). On real engines and servers: test/runtime/members.test.ts, and
// test/service/replication/promote.test.ts.
import { expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import { recreateLost } from "../../service/lifecycle/lost.ts";
import { withStillClock } from "./client.ts";
import { withModel } from "./reconciler/modelApp.ts";

test("Machines that ran start again at once, unless they never restart; what has lost its memory is stopped", async () => {
  const app = await withStillClock({ delays: "none" });
  const reaches = (id: string, state: string) => expect.poll(() => app.state(id)).toBe(state);
  const started = async (config: object = {}): Promise<string> => {
    const { id } = await app.machine(config);
    await reaches(id, "started");
    return id;
  };
  const retried = await started({ restart: { policy: "on-failure", max_retries: 1 } });
  const always = await started({ restart: { policy: "always" } });
  const never = await started({ restart: { policy: "no" } });
  const leaving = await started({ auto_destroy: true });
  const suspended = await started();
  await app.call("POST", `${app.machines}/${suspended}/suspend`);
  await reaches(suspended, "suspended");
  const stopped = await started();
  await app.call("POST", `${app.machines}/${stopped}/stop`);
  await reaches(stopped, "stopped");
  const eventsOf = async (id: string) => (await app.call("GET", `${app.machines}/${id}`)).body.events;
  const before = await eventsOf(stopped);

  const { context } = app.service;
  // More often than the Machine is retried.
  for (let count = 0; count < 3; count++) {
    await context.store.write(() => recreateLost(context, { engine: true }));
    for (const id of [retried, always]) await reaches(id, "started");
  }
  const [, begun, exit] = await eventsOf(retried);
  expect(begun).toMatchObject({ type: "start", status: "starting", source: "flyd" });
  expect(exit).toMatchObject({
    ...{ type: "exit", status: "stopped", source: "flyd" },
    request: { exit_event: { exit_code: 137, error: "its container engine was lost", restarting: true } },
  });
  for (const id of [never, suspended, stopped]) expect(await app.state(id)).toBe("stopped");
  await reaches(leaving, "destroyed");
  expect(await eventsOf(stopped)).toEqual(before);
});

test("a volume that was being extended when its engine was lost is extended then, as one that is extended meanwhile", async () => {
  const app = await withModel({ clock: new ManualClock(), delays: "believable" });
  const { clock, engine } = app;
  const at = `/apps/web/volumes/${(await app.volume()).id}`;
  const state = async () => (await app.call("GET", at)).body.state;
  const { context } = app.service;
  const written = () => context.store.get("SELECT 1 FROM volumes WHERE written = 1") !== undefined;
  await expect.poll(written).toBe(true);
  clock.advance(1000);
  expect(await state()).toBe("created");
  const extend = (size_gb: number) => app.call("PUT", `${at}/extend`, { size_gb });
  const lose = () => context.store.write(() => recreateLost(context, { engine: true }));

  // Its contents are there again before, and after its own step.
  await extend(5);
  await lose();
  await expect.poll(written).toBe(true);
  expect(await state()).toBe("extending");
  clock.advance(1000);
  expect(await state()).toBe("created");

  for (const size of [6, 7]) {
    engine.isRefusing = true;
    if (size === 6) await extend(size);
    await lose();
    if (size === 7) await extend(size);
    clock.advance(1000);
    expect([await state(), written()]).toEqual(["extending", false]);
    engine.isRefusing = false;
    await expect.poll(state).toBe("created");
    expect(written()).toBe(true);
  }
});

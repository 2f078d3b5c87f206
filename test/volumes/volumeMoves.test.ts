// A volume that one Machine no longer mounts and another one does, in the same update: it is released when the first one's old process
// has ended.
import { expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { bind } from "../support/binding.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { startService } from "../support/startService.ts";

const image = "registry.example.com/a:1";

test.each(["created", "updated"] as const)("a Machine that mounts it and is %s waits for that", async (how) => {
  const service = await startService({ clock: new ManualClock(), delays: "believable" });
  afterThisTest(() => service.close());
  /** Lets time pass in the service until the work is done. */
  const passing = async <T>(work: Promise<T>): Promise<T> => {
    const timer = setInterval(() => service.clock.advance(100), 5);
    try {
      return await work;
    } finally {
      clearInterval(timer);
    }
  };
  const app = await makeApp(service, "moves");
  const mounts = [{ volume: await makeVolume(service, app, "ams"), path: "/data" }];
  const from = await makeMachine(service, app, { region: "ams", config: { image, mounts } });
  const at = `/v1/apps/${app}/machines/${from}`;
  await passing(send(service, "GET", `${at}/wait?state=started`));
  const machine = bind("Machine", service);
  const inputs = async (config: object, old = {}) => {
    const checked = await machine.check(old, { app, region: "ams", name: "to", config: { image, ...config } });
    expect(checked.failures).toEqual([]);
    return checked.inputs;
  };
  const before = await inputs({});
  const made = how === "updated" ? await passing(machine.create(before)) : undefined;
  expect(await send(service, "POST", at, { config: { image } })).toMatchObject({ state: "replacing" });
  const wanted = await inputs({ mounts }, made && before);
  const moving = made ? machine.update(made.id, made.state, wanted) : machine.create(wanted);
  const operation = how === "created" ? "machines.create" : "machines.update";
  const isRefused = () => service.requests.some((one) => one.operation === operation && one.status === 412);
  await expect.poll(isRefused).toBe(true);
  await passing(moving);
  const machines = await send<{ name: string; config: { mounts?: unknown[] } }[]>(
    service,
    "GET",
    `/v1/apps/${app}/machines`,
  );
  expect(machines.find(({ name }) => name === "to")?.config.mounts).toHaveLength(1);
});

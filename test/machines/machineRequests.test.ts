// The requests of each change of a Machine, as docs/performance.md counts them.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Values } from "../../provider/core/resource.ts";
import { makeApp } from "../support/around.ts";
import { bind, type Bound } from "../support/binding.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1.0.0";
const services = [{ protocol: "tcp", internalPort: 80 }];

let service: TestService;
let machine: Bound;
beforeAll(async () => {
  service = await startService();
  machine = bind("Machine", service);
  await makeApp(service, "app");
});
afterAll(() => service.close());

const checked = async (inputs: Values, olds: Values = {}): Promise<Values> => {
  const { inputs: next, failures } = await machine.check(olds, { app: "app", minHealthySeconds: 0, ...inputs });
  expect(failures).toEqual([]);
  return next;
};

/** The operations that were sent meanwhile, without their group. */
const sent = async (work: () => Promise<unknown>): Promise<string[]> => {
  const before = service.requests.length;
  await work();
  return service.requests.slice(before).map(({ operation = "?" }) => operation.replace("machines.", ""));
};

const leased = (...operations: readonly string[]): string[] => ["acquireLease", "get", ...operations, "releaseLease"];

test.each<{ change: string; to: Values; from?: Values; sends: string[] }>([
  { change: "a new image", to: { config: { image: `${image}2` } }, sends: leased("update", "wait", "get") },
  {
    change: "metadata alone",
    to: { config: { image, metadata: { team: "web" } } },
    sends: leased("patchMetadata", "get"),
  },
  { change: "the cordon", to: { cordoned: true }, sends: leased("cordon", "get") },
  { change: "a stop", to: { state: "stopped" }, sends: leased("stop", "wait", "get") },
  { change: "a start", from: { state: "stopped" }, to: { state: "started" }, sends: leased("start", "wait", "get") },
  { change: "a suspension", to: { state: "suspended" }, sends: leased("suspend", "wait", "get") },
  { change: "a restart", to: { restart: { triggers: { a: "1" } } }, sends: leased("restart", "wait", "get") },
  { change: "a reload", to: { reload: { triggers: { a: "1" } } }, sends: leased("signal", "get") },
  { change: "a memory limit", to: { memoryLimitMb: 200 }, sends: leased("getMemory", "setMemory", "get") },
])("$change needs no request more than it has to", async ({ from = {}, to, sends }) => {
  const inputs = await checked({ config: { image }, ...from });
  const { id, state } = await machine.create(inputs);
  const next = await checked({ ...inputs, ...to }, inputs);
  expect(await sent(() => machine.update(id, state, next))).toEqual(sends);
});

test("an end cordons, stops and destroys, and waits for the last two", async () => {
  const { id, state } = await machine.create(await checked({ config: { image, services } }));
  const stops = ["cordon", "stop", "wait", "destroy", "wait"];
  expect(await sent(() => machine.delete(id, state))).toEqual(["acquireLease", "get", ...stops]);
  const stopped = await machine.create(await checked({ config: { image }, state: "stopped" }));
  const rests = ["acquireLease", "get", "destroy", "wait"];
  expect(await sent(() => machine.delete(stopped.id, stopped.state))).toEqual(rests);
});

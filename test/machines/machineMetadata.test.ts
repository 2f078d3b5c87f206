import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Values } from "../../provider/core/resource.ts";
import { makeApp, makeMachine, send } from "../support/around.ts";
import { bind, type Bound } from "../support/binding.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1.0.0";
const set = (service: TestService, { app, machineId }: Values, key: string, value: string) =>
  send(service, "POST", `/v1/apps/${String(app)}/machines/${String(machineId)}/metadata/${key}`, { value });

const made = new WeakMap<TestService, Promise<{ app: string; machine: string; second: string }>>();
/** An App and a Machine to switch to, and a second Machine beside the first. */
const others = (service: TestService) => {
  const found =
    made.get(service) ??
    (async () => {
      const app = await makeApp(service, "meta-other");
      const [machine, second] = await Promise.all([
        makeMachine(service, app, { config: { image } }),
        makeMachine(service, "meta", { config: { image } }),
      ]);
      return { app, machine, second };
    })();
  made.set(service, found);
  return found;
};

lifecycle("MachineMetadata", {
  given: async (service) => {
    const app = await makeApp(service, "meta");
    const machine = await makeMachine(service, app, { config: { image, metadata: { theirs: "1" } } });
    return { app, machine: `${app}/${machine}`, values: { role: "web", tier: "1" } };
  },
  changes: async (service) => {
    const { app, machine, second } = await others(service);
    return [
      { set: { values: { role: "web", tier: "2" } }, expect: "update" },
      { set: { values: { role: "db", more: "x" } }, expect: "update" },
      { set: { values: { "pulumi-x": "1" } }, expect: "refused" },
      { set: { values: { fly_process_group: "1" } }, expect: "refused" },
      { set: { values: { role: "" } }, expect: "refused" },
      { set: { adopt: true }, expect: "no request" },
      { set: { app }, expect: "replace", diffOnly: true },
      { set: { machine: second }, expect: "replace" },
      { set: { app, machine }, expect: "replace" },
    ];
  },
  drift: [
    {
      interfere: (service, state) => set(service, state, "role", "theirs"),
      shows: { values: { role: "theirs", more: "x" } },
    },
    { interfere: (service, state) => set(service, state, "role", ""), shows: { values: { more: "x" } } },
  ],
  survives: "changed",
});

describe("MachineMetadata", () => {
  let service: TestService;
  let metadata: Bound;
  beforeAll(async () => {
    service = await startService();
    metadata = bind("MachineMetadata", service);
    await makeApp(service, "app");
  });
  afterAll(() => service.close());
  afterEach(() => service.service.faults.clear());

  const at = (machine: string, rest = "") => `/v1/apps/app/machines/${machine}${rest}`;
  const keys = (machine: string) => send<Values>(service, "GET", at(machine, "/metadata"));
  const checked = async (news: Values, olds: Values = {}) => {
    const { inputs, failures } = await metadata.check(olds, { app: "app", ...news });
    expect(failures).toEqual([]);
    return inputs;
  };
  const machineWith = (known: Values) => makeMachine(service, "app", { config: { image, metadata: known } });

  test("a rename or forced replacement keeps the keys: the new resource is created before the old one is deleted", async () => {
    const machine = await machineWith({});
    const inputs = await checked({ machine, values: { role: "web" }, __context: { owner: "o1", name: "one" } });
    const { id, state } = await metadata.create(inputs);
    // As in a later run, which does not know how it was created.
    expect(await metadata.read(id, state)).toBeDefined();
    const renamed = await checked({ machine, values: { role: "web" }, __context: { owner: "o2", name: "two" } });
    const { state: second } = await metadata.create(renamed);
    await metadata.delete(id, state);
    expect(await keys(machine)).toMatchObject({ role: "web" });
    expect(await metadata.read(id, second)).toBeDefined();
    await checked({ machine, values: { role: "web" }, __context: { owner: "o2", name: "two" } }, renamed);
    const forced = await checked({ machine, values: { role: "web" }, __context: { owner: "o2", name: "two" } });
    const { state: third } = await metadata.create(forced);
    await metadata.delete(id, second);
    expect(await keys(machine)).toMatchObject({ role: "web" });
    expect(await metadata.read(id, third)).toBeDefined();
    await metadata.nextRun();
    await metadata.delete(id, third);
    expect(await keys(machine)).toEqual({});
  });

  test("a key that it took over was kept for ever once its resource had been renamed by an alias, or moved to another stack", async () => {
    const machine = await machineWith({ role: "theirs", tier: "theirs" });
    const named = (owner: string, values: Values) =>
      checked({ machine, adopt: true, values, __context: { owner, name: "one" } });
    const { id, state } = await metadata.create(await named("o1", { role: "web", tier: "1" }));
    await metadata.nextRun();
    const moved = await metadata.update(id, state, await named("o2", { role: "web" }));
    expect(await keys(machine)).toEqual({ role: "web", "pulumi-holder-role": "o2" });
    await metadata.nextRun();
    await metadata.delete(id, moved);
    expect(await keys(machine)).toEqual({});
  });

  test("it owns only its keys: others' keys stay, and its own are deleted with it", async () => {
    const machine = await machineWith({ theirs: "1" });
    const { version } = await send<Values>(service, "GET", at(machine));
    const inputs = await checked({ machine, values: { ours: "1", gone: "1" } });
    const { id, state } = await metadata.create(inputs);
    expect(id).toBe(`app/${machine}`);
    await send(service, "POST", at(machine, "/metadata/later"), { value: "2" });
    const next = await checked({ machine, values: { ours: "2" } }, inputs);
    const after = await metadata.update(id, state, next);
    expect(await keys(machine)).toEqual({ theirs: "1", later: "2", ours: "2" });
    expect(after["values"]).toEqual({ ours: "2" });
    await metadata.delete(id, after);
    expect(await keys(machine)).toEqual({ theirs: "1", later: "2" });
    // None of this created a new version.
    expect(await send<Values>(service, "GET", at(machine))).toMatchObject({ version });
  });

  test("an existing key with another value is refused unless adopted, and nothing is set", async () => {
    const machine = await machineWith({ theirs: "1", same: "1" });
    const values = { theirs: "2", same: "1", ours: "1" };
    await expect(metadata.create(await checked({ machine, values }))).rejects.toThrow(
      /has "theirs" already, with another value\. Nothing was changed; set adopt: true/,
    );
    expect(await keys(machine)).toEqual({ theirs: "1", same: "1" });
    const inputs = await checked({ machine, values: { same: "1" } });
    const { id, state } = await metadata.create(inputs);
    // An update does not adopt keys either.
    const more = await checked({ machine, values }, inputs);
    await expect(metadata.update(id, state, more)).rejects.toThrow(/has "theirs" already/);
    const adopting = await checked({ machine, values, adopt: true }, inputs);
    expect((await metadata.update(id, state, adopting))["values"]).toEqual(values);
    expect(await keys(machine)).toEqual(values);
  });

  test("a concurrent new version is noticed, and its keys are checked again", async () => {
    const machine = await machineWith({});
    const patch = { operation: "machines.patchMetadata", when: "before", status: 412 } as const;
    service.fail({ ...patch, body: { error: "failed_precondition: machine version mismatch" }, times: 2 });
    const { id, state } = await metadata.create(await checked({ machine, values: { ours: "1" } }));
    expect(await keys(machine)).toEqual({ ours: "1" });
    // Against the real service: another client's update adds the key between the read and the change.
    let between: Promise<unknown> = Promise.resolve();
    service.fail({
      operation: "machines.get",
      when: "after",
      rewrite: (body) => {
        between = send(service, "POST", at(machine), { config: { image, metadata: { ours: "1", more: "theirs" } } });
        return body;
      },
    });
    service.fail({ operation: "machines.patchMetadata", when: "before", until: () => between });
    const next = await checked({ machine, values: { ours: "1", more: "ours" } });
    await expect(metadata.update(id, state, next)).rejects.toThrow(/has "more" already/);
    expect(await keys(machine)).toMatchObject({ more: "theirs" });
  });

  test("an update of the Machine resource keeps its keys, and a Machine without this resource shows them", async () => {
    const machine = bind("Machine", service);
    const { inputs } = await machine.check({}, { app: "app", config: { image, metadata: { theirs: "1" } } });
    const { id, state } = await machine.create(inputs);
    const values = { ours: "1" };
    const ours = await metadata.create(await checked({ machine: id, values }));
    // The keys of others change the Machine.
    const { updatedAt: _then, ...before } = state;
    expect((await machine.read(id, state))?.state).toMatchObject(before);
    const { inputs: next } = await machine.check(inputs, { app: "app", config: { image: `${image}-2` } });
    await machine.update(id, state, next);
    expect(await keys(String(state["machineId"]))).toMatchObject(values);
    service.fail({
      operation: "machines.list",
      when: "after",
      rewrite: (body) => (body as Values[]).map(({ config: _, ...rest }) => ({ ...rest, host_status: "unreachable" })),
    });
    expect((await metadata.read(ours.id, ours.state))?.state).toEqual(ours.state);
  });

  test("it is gone with its Machine, and an import finds all keys except the platform's", async () => {
    const machine = await machineWith({ a: "1", fly_process_group: "web", "pulumi-op": "1" });
    const found = await metadata.read(`app/${machine}`, {});
    expect(found?.inputs).toEqual({ app: "app", machine, values: { a: "1" } });
    await send(service, "DELETE", at(machine, "?force=true"));
    await send(service, "GET", at(machine, "/wait?state=destroyed"));
    // This run would not read the list again at once.
    await metadata.nextRun();
    expect(await metadata.read(`app/${machine}`, found?.state ?? {})).toBeUndefined();
    await metadata.delete(`app/${machine}`, found?.state ?? {});
    await expect(metadata.create(await checked({ machine, values: { a: "1" } }))).rejects.toThrow(/is destroyed/);
  });

  test("F44: a key that others changed is refused by name, also as metadata of the Machine's own configuration", async () => {
    const machine = bind("Machine", service);
    const config = (level: string) => ({ image, env: { LEVEL: level }, metadata: { role: "web" } });
    const { inputs } = await machine.check({}, { app: "app", config: config("1") });
    const { id, state } = await machine.create(inputs);
    const ours = await checked({ machine: id, values: { team: "a", level: "1" } });
    const { state: known } = await metadata.create(ours);
    await set(service, state, "role", "theirs");
    await set(service, state, "team", "theirs");
    const { inputs: next } = await machine.check(inputs, { app: "app", config: config("2") });
    await expect(machine.update(id, state, next)).rejects.toThrow(
      /was changed outside of this program \(config\.metadata\["role"\]/,
    );
    const later = await checked({ machine: id, values: { team: "a", level: "2" } }, ours);
    await expect(metadata.update(id, known, later)).rejects.toThrow(
      /metadata of Machine .* was changed outside of this program \(values\["team"\]/,
    );
    // After a refresh both know what others did, and repair it.
    await machine.nextRun();
    const [found, foundKeys] = [await machine.read(id, state), await metadata.read(id, known)];
    const { inputs: again } = await machine.check(inputs, { app: "app", config: config("2") });
    await machine.update(id, found?.state ?? {}, again);
    await metadata.update(id, foundKeys?.state ?? {}, later);
    expect(await keys(String(state["machineId"]))).toMatchObject({ role: "web", team: "a", level: "2" });
  });
});

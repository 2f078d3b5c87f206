// Fleets through both bindings, against the real service.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withoutUndefined } from "../../provider/core/values.ts";
import { makeApp, send } from "../support/around.ts";
import { bind, type Bound } from "../support/binding.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

const config = { image: "registry.example.com/web:1", metadata: { role: "web" } };

interface Live {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly config: Record<string, unknown>;
}

const machinesOf = (service: TestService, app: unknown): Promise<Live[]> =>
  send<Live[]>(service, "GET", `/v1/apps/${String(app)}/machines`);

const others = new WeakMap<TestService, Promise<string>>();
const anotherApp = (service: TestService): Promise<string> => {
  const known = others.get(service) ?? makeApp(service, "fleet-other");
  others.set(service, known);
  return known;
};

lifecycle("Fleet", {
  creates: 3,
  writeOnly: ["minSecretsVersion", "count", "spreadOver"],
  given: async (service) => ({
    app: await makeApp(service, "fleet-life"),
    name: "web",
    regions: { ams: 2, iad: 1 },
    config,
  }),
  changes: async (service) => [
    { set: { regions: { ams: 1, iad: 2 } }, expect: "update" },
    { set: { config: { ...config, image: "registry.example.com/web:2" } }, expect: "update" },
    { set: { config: { ...config, metadata: { role: "web", team: "a" } } }, expect: "update" },
    { set: { config: { ...config, metadata: {} } }, expect: "update" },
    { set: { minSecretsVersion: 0 }, expect: "update" },
    { set: { strategy: { type: "bluegreen" } }, expect: "no request" },
    {
      set: { config: { ...config, image: "registry.example.com/web:3" } },
      expect: "update",
      then: { rollout: "complete" },
    },
    { set: { onFailure: "rollback" }, expect: "no request" },
    { set: { progressDeadline: "5m" }, expect: "no request" },
    { set: { fallbackRegions: ["fra"] }, expect: "no request" },
    { set: { volume: { path: "/data" } }, expect: "refused" },
    { set: { adopt: [] }, expect: "same" },
    { set: { deleteVolumes: true }, expect: "no request" },
    { set: { promoted: true }, expect: "no request" },
    { set: { regions: undefined, count: 3, spreadOver: ["ams", "fra"] }, expect: "update" },
    { set: { spreadOver: ["ams"] }, expect: "update" },
    { set: { name: "api" }, expect: "replace" },
    { set: { app: await anotherApp(service) }, expect: "replace" },
  ],
  steady: {
    adopt: "it matters once",
    spreadOver: "its regions show as drift",
    volume: "its path is part of the Machine",
    regions: "tested below",
    minSecretsVersion: "it cannot be read back",
  },
  drift: [
    {
      interfere: async (service, { app }) => {
        const [first] = await machinesOf(service, app);
        await send(service, "DELETE", `/v1/apps/${String(app)}/machines/${first?.id ?? ""}?force=true`);
      },
      shows: { count: 2 },
    },
    {
      interfere: async (service, { app }) => {
        const [first] = await machinesOf(service, app);
        const changed = { ...first?.config, image: "registry.example.com/other:1" };
        await send(service, "POST", `/v1/apps/${String(app)}/machines/${first?.id ?? ""}`, { config: changed });
      },
      shows: { config: expect.objectContaining({ image: "registry.example.com/other:1" }) as unknown },
    },
  ],
});

test("Machines that exist become members of a fleet, without a restart", async () => {
  const service = await startService();
  const app = await makeApp(service, "adopting");
  const made = async (name: string, image: string) =>
    await send<Live & { instance_id: string }>(service, "POST", `/v1/apps/${app}/machines`, {
      ...{ name, region: "ams", config: { image } },
    });
  const [same, other] = [
    await made("first", "registry.example.com/web:2"),
    await made("second", "registry.example.com/web:1"),
  ];
  const fleet = bind("Fleet", service);
  const { inputs } = await fleet.check(
    {},
    {
      ...{ app, name: "web", regions: { ams: 3 }, adopt: [`${app}/${same.id}`, other.id] },
      config: { image: "registry.example.com/web:2" },
    },
  );
  const { state } = await fleet.create(inputs);
  const live = (await machinesOf(service, app)) as (Live & { instance_id: string })[];
  expect(live.map(({ name }) => name).sort()).toEqual(["first", "second", "web-ams-1"]);
  expect(live.find(({ id }) => id === same.id)?.instance_id).toBe(same.instance_id);
  expect(live.find(({ id }) => id === other.id)?.instance_id).not.toBe(other.instance_id);
  expect((state["machines"] as unknown[]).length).toBe(3);
  await service.close();
});

describe("a fleet with volumes", () => {
  let service: TestService;
  let fleet: Bound;
  beforeAll(async () => {
    service = await startService();
    fleet = bind("Fleet", service);
    await makeApp(service, "stateful");
  });
  afterAll(() => service.close());

  const volumes = async () =>
    (
      await send<{ id: string; name: string; size_gb: number; attached_machine_id: string | null; state: string }[]>(
        service,
        "GET",
        "/v1/apps/stateful/volumes",
      )
    ).filter(({ state }) => !/destroy/.test(state));
  const inputs = (more: Record<string, unknown> = {}) => ({
    app: "stateful",
    name: "db",
    regions: { ams: 2 },
    config: { image: "registry.example.com/db:1" },
    volume: { path: "/data", sizeGb: 1 },
    ...more,
  });
  const checked = async (more: Record<string, unknown> = {}) => (await fleet.check({}, inputs(more))).inputs;

  test("gives each Machine its own, which outlives it and is mounted again", async () => {
    const { id, state } = await fleet.create(await checked());
    const first = await volumes();
    expect(first.map(({ name, size_gb }) => [name, size_gb])).toEqual([
      ["db_ams_1", 1],
      ["db_ams_2", 1],
    ]);
    expect((await fleet.read(id, state))?.state).toEqual(state);

    const larger = { volume: { path: "/data", sizeGb: 3 } };
    let now = await fleet.update(id, state, await checked(larger));
    expect((await volumes()).map(({ size_gb }) => size_gb)).toEqual([3, 3]);

    now = await fleet.update(id, now, await checked({ ...larger, regions: { ams: 1 } }));
    const left = await volumes();
    expect(left.map((one) => one.id).sort()).toEqual(first.map((one) => one.id).sort());
    expect(left.filter(({ attached_machine_id }) => attached_machine_id === null)).toHaveLength(1);

    const config = { image: "registry.example.com/db:2" };
    now = await fleet.update(id, now, await checked({ ...larger, config }));
    expect((await volumes()).map((one) => one.id).sort()).toEqual(first.map((one) => one.id).sort());
    expect((await volumes()).every(({ attached_machine_id }) => attached_machine_id !== null)).toBe(true);

    await fleet.delete(id, now);
    expect(await machinesOf(service, "stateful")).toEqual([]);
    expect(await volumes()).toHaveLength(2);
    // The same fleet again has its data again.
    const again = await fleet.create(await checked({ ...larger, deleteVolumes: true }));
    expect((await volumes()).map((one) => one.id).sort()).toEqual(first.map((one) => one.id).sort());
    await fleet.delete(again.id, again.state);
    expect(await volumes()).toEqual([]);
  });

  test.each([
    [{ strategy: { type: "bluegreen" } }, /strategy\.type: bluegreen creates Machines beside the old ones/],
    [{ strategy: { maxSurge: "1" } }, /strategy\.maxSurge: an extra Machine would have no volume/],
    [{ name: "a-name-that-is-long" }, /name: got 19 characters; with volumes, 17 are the most/],
    [
      { config: { image: "a", mounts: [{ volume: "vol_1", path: "/a" }] } },
      /config\.mounts: a volume is mounted by one Machine/,
    ],
    [
      { strategy: { maxUnavailable: "0" } },
      /strategy\.maxUnavailable: got "0": without maxSurge, no Machine could ever be updated/,
    ],
    [{ strategy: { type: "rolling", count: 2 } }, /strategy\.count: is for the strategy canary; this one is rolling/],
    [{ regions: undefined }, /regions: is missing: how many Machines by region/],
    [{ count: 2, spreadOver: ["ams"] }, /count: cannot be combined with regions/],
    [{ regions: { ams: -1 } }, /regions\.ams: got -1/],
    [{ config: { image: "a", schedule: "daily" } }, /config: a fleet keeps its Machines running/],
    [{ strategy: { typ: "rolling" } }, /strategy\.typ/],
  ])("refuses %j", async (more, message) => {
    expect((await fleet.check({}, withoutUndefined(inputs(more)))).failures.join("\n")).toMatch(message);
  });
});

// Fleets through both bindings, against the real service.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { withoutUndefined } from "../../provider/core/values.ts";
import { makeApp, send } from "../support/around.ts";
import { bind, type Bound } from "../support/binding.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { ManualClock } from "../../service/index.ts";
import { SimulatedRuntime } from "../../service/runtime/simulated.ts";
import type { RuntimeHost, StopRequest, Subject } from "../../service/runtime/runtime.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";

const config = { image: "registry.example.com/web:1", metadata: { role: "web" } };

interface Live {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly config: Record<string, unknown>;
}

const machinesOf = (service: TestService, app: unknown): Promise<Live[]> =>
  send<Live[]>(service, "GET", `/v1/apps/${String(app)}/machines`);

/** The name of a volume of a fleet: it ends with a mark. */
const marked = (name: string): unknown => expect.stringMatching(new RegExp(`^${name}_[a-z0-9]{4,8}$`));

const others = new WeakMap<TestService, Promise<string>>();
const anotherApp = (service: TestService): Promise<string> => {
  const known = others.get(service) ?? makeApp(service, "fleet-other");
  others.set(service, known);
  return known;
};

lifecycle("Fleet", {
  creates: 3,
  writeOnly: ["minSecretsVersion", "memoryLimitMb", "count", "spreadOver"],
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
    { set: { minSecretsVersion: undefined }, expect: "no request" },
    { set: { memoryLimitMb: 128 }, expect: "update" },
    // The limits stay: that the program no longer has one is no change of the Machines.
    { set: { memoryLimitMb: undefined }, expect: "update", diffOnly: true },
    { set: { standbys: 1 }, expect: "update" },
    { set: { standbys: 0 }, expect: "update" },
    { set: { strategy: { type: "bluegreen" } }, expect: "no request" },
    {
      set: { config: { ...config, image: "registry.example.com/web:3" } },
      expect: "update",
      then: { rollout: "complete" },
    },
    { set: { onFailure: "rollback" }, expect: "no request" },
    { set: { progressDeadline: "5m" }, expect: "no request" },
    { set: { startDeadline: "1m" }, expect: "no request" },
    { set: { passDeadline: "1m" }, expect: "no request" },
    { set: { restartOnce: true }, expect: "no request" },
    { set: { releaseCommand: ["true"] }, expect: "no request" },
    { set: { releaseCommand: undefined }, expect: "no request" },
    { set: { fallbackRegions: ["fra"] }, expect: "no request" },
    { set: { volume: { path: "/data" } }, expect: "refused" },
    { set: { volume: undefined }, expect: "same" },
    { set: { adopt: [] }, expect: "same" },
    { set: { adopt: undefined }, expect: "same" },
    { set: { deleteVolumes: true }, expect: "no request" },
    { set: { promoted: true }, expect: "no request" },
    { set: { regions: undefined, count: 3, spreadOver: ["ams", "fra"] }, expect: "update" },
    { set: { count: 4 }, expect: "update", diffOnly: true },
    { set: { spreadOver: ["ams"] }, expect: "update" },
    { set: { spreadOver: undefined }, expect: "refused" },
    { set: { count: undefined }, expect: "refused" },
    { set: { name: "api" }, expect: "replace" },
    { set: { app: await anotherApp(service) }, expect: "replace" },
  ],
  steady: {
    adopt: "it matters once",
    spreadOver: "its regions show as drift",
    volume: "its path is part of the Machine",
    regions: "tested below",
    standbys: "tested below",
    minSecretsVersion: "it cannot be read back",
    memoryLimitMb: "a list does not show it",
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
        for (const { id, config } of await machinesOf(service, app)) {
          const changed = { ...config, image: "registry.example.com/other:1" };
          await send(service, "POST", `/v1/apps/${String(app)}/machines/${id}`, { config: changed });
        }
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

test("a memory limit is set on all Machines without a new version, and again after one", async () => {
  const service = await startService();
  const app = await makeApp(service, "limited");
  const fleet = bind("Fleet", service);
  const checked = async (more: Record<string, unknown>) =>
    (await fleet.check({}, { app, name: "web", regions: { ams: 2 }, config, ...more })).inputs;
  const limits = async () =>
    Promise.all(
      (await machinesOf(service, app)).map(
        async ({ id }) =>
          (await send<{ limit_mb?: number }>(service, "GET", `/v1/apps/${app}/machines/${id}/memory`)).limit_mb,
      ),
    );
  const versions = async () =>
    (await machinesOf(service, app)).map((machine) => (machine as Live & { instance_id: string }).instance_id);
  const writes = () => service.requests.filter(isWrite).length;
  const { id, state } = await fleet.create(await checked({ memoryLimitMb: 200 }));
  expect(await limits()).toEqual([200, 200]);
  const before = await versions();
  let now = await fleet.update(id, state, await checked({ memoryLimitMb: 128 }));
  expect(await limits()).toEqual([128, 128]);
  expect(await versions()).toEqual(before);
  const changed = { ...config, image: "registry.example.com/web:2" };
  now = await fleet.update(id, now, await checked({ memoryLimitMb: 128, config: changed }));
  expect(await limits()).toEqual([128, 128]);
  const count = writes();
  await fleet.update(id, now, await checked({ memoryLimitMb: 128, config: changed }));
  expect(writes(), "nothing is left to do").toBe(count);
  expect(
    (await fleet.check({}, { ...{ app, name: "web", regions: { ams: 1 }, config }, memoryLimitMb: 999 })).failures,
  ).toEqual([
    "memoryLimitMb: got 999; the Machine has 256 MiB, so that 256 is the most (config.guest.maxMemoryMb raises it)",
  ]);
  await service.close();
});

describe("the standbys of a fleet", () => {
  interface Standby extends Live {
    readonly instance_id: string;
    readonly region: string;
    readonly config: {
      readonly standbys?: readonly string[];
      readonly image?: string;
      readonly metadata: Readonly<Record<string, string>>;
    };
  }
  let service: TestService;
  let app: string;
  let fleet: Bound;
  beforeAll(async () => {
    service = await startService();
    app = await makeApp(service, "standbys");
    fleet = bind("Fleet", service);
  });
  afterAll(() => service.close());

  const withStandbys = async (more: Record<string, unknown>) =>
    (await fleet.check({}, { app, name: "web", regions: { ams: 1, iad: 1 }, standbys: 2, config, ...more })).inputs;
  const all = async () => (await machinesOf(service, app)) as Standby[];
  const standbys = async () => (await all()).filter(({ name }) => name.includes("standby"));
  const members = async () => (await all()).filter(({ name }) => !name.includes("standby"));
  const ids = (list: readonly Standby[]) => list.map(({ id }) => id).sort();
  let id: string;
  let state: Record<string, unknown>;
  /** Refreshes the state, and returns what others have changed. */
  const drift = async () => {
    state = (await fleet.read(id, state))?.state ?? {};
    return state["drift"] as readonly string[];
  };

  test("the standbys of a fleet are created stopped, in the regions of the members that they stand by for", async () => {
    ({ id, state } = await fleet.create(await withStandbys({})));
    const [first, second] = await standbys();
    expect([first?.name, second?.name, first?.region, second?.region].sort()).toEqual(
      ["web-standby-1", "web-standby-2", "ams", "iad"].sort(),
    );
    for (const one of [first, second]) {
      expect(one?.state).toMatch(/^(created|stopped)$/);
      expect([...(one?.config.standbys ?? [])].sort()).toEqual(ids(await members()));
    }
    expect(state["machines"]).toHaveLength(2);
    expect(await drift()).toEqual([]);
  });

  test("get each new configuration without being started", async () => {
    const changed = { ...config, image: "registry.example.com/web:2" };
    state = await fleet.update(id, state, await withStandbys({ config: changed }));
    for (const one of await standbys()) {
      expect(one.config.image).toBe("registry.example.com/web:2");
      expect(one.state).toMatch(/^(created|stopped)$/);
    }
    const requests = service.requests.filter(isWrite).length;
    state = await fleet.update(id, state, await withStandbys({ config: changed }));
    expect(service.requests.filter(isWrite).length, "nothing is left to do").toBe(requests);
  });

  test("get changed secrets and metadata at the end of a rollout", async () => {
    const changed = { ...config, image: "registry.example.com/web:2" };
    const before = new Map((await standbys()).map((one) => [one.id, one.instance_id]));
    const { version = 0 } = await send<{ version?: number }>(service, "POST", `/v1/apps/${app}/secrets`, {
      values: { TOKEN: "rotated" },
    });
    state = await fleet.update(id, state, await withStandbys({ config: changed, minSecretsVersion: version }));
    expect(state["rollout"]).toBe("complete");
    for (const one of await standbys()) {
      expect(one.config.metadata["pulumi-fleet-secrets"]).toBe(String(version));
      expect(one.instance_id, "only a new version gets changed secrets").not.toBe(before.get(one.id));
      expect(one.state).toMatch(/^(created|stopped)$/);
    }
    const given = (metadata: object) => withStandbys({ config: { ...changed, metadata }, minSecretsVersion: version });
    for (const metadata of [{ role: "web", team: "a" }, { team: "a" }]) {
      state = await fleet.update(id, state, await given(metadata));
      for (const one of await standbys())
        expect(
          Object.fromEntries(Object.entries(one.config.metadata).filter(([key]) => !key.startsWith("pulumi-"))),
        ).toEqual(metadata);
    }
    expect(await drift()).toEqual([]);
    const [first] = await standbys();
    await send(service, "DELETE", `/v1/apps/${app}/machines/${first?.id ?? ""}/metadata/team`);
    expect(await drift()).toEqual([`${first?.name ?? ""} (${first?.id ?? ""}): config.metadata differs`]);
    state = await fleet.update(id, state, await withStandbys({ config: changed, minSecretsVersion: version }));
  });

  test("start when a member fails, and are stopped again when it is repaired", async () => {
    const [member] = await members();
    // The member's process cannot start any more, so its retries are used up.
    await send(service, "POST", `/v1/apps/${app}/machines/${member?.id ?? ""}`, {
      config: { ...member?.config, env: { MACHINES_SIMULATE: "crash" }, restart: { policy: "no" } },
    });
    await expect.poll(async () => (await standbys()).map((one) => one.state)).toEqual(["started", "started"]);
    expect(await drift()).toEqual(
      expect.arrayContaining([expect.stringMatching(/^web-standby-1 \(\w+\): is started$/)]),
    );
    const changed = { ...config, image: "registry.example.com/web:2" };
    state = await fleet.update(id, state, await withStandbys({ config: changed }));
    expect((await members()).map((one) => one.state)).toEqual(["started", "started"]);
    expect((await standbys()).map((one) => one.state)).toEqual(["stopped", "stopped"]);
    expect(await drift()).toEqual([]);
  });

  test("follow the members, are repaired, and go with the fleet", async () => {
    const changed = { ...config, image: "registry.example.com/web:2" };
    const [gone] = await standbys();
    await send(service, "DELETE", `/v1/apps/${app}/machines/${gone?.id ?? ""}?force=true`);
    expect(await drift()).toEqual([`${String(gone?.name)}: is missing`]);
    state = await fleet.update(id, state, await withStandbys({ config: changed, regions: { ams: 2 } }));
    expect((await standbys()).map(({ region }) => region)).toEqual(["ams", "ams"]);
    for (const one of await standbys()) expect([...(one.config.standbys ?? [])].sort()).toEqual(ids(await members()));
    state = await fleet.update(id, state, await withStandbys({ config: changed, regions: { ams: 2 }, standbys: 1 }));
    expect(await standbys()).toHaveLength(1);
    state = await fleet.update(id, state, await withStandbys({ config: changed, regions: { ams: 0 } }));
    expect(await standbys()).toEqual([]);
    state = await fleet.update(id, state, await withStandbys({ config: changed }));
    expect(await standbys()).toHaveLength(2);
    await fleet.delete(id, state);
    expect((await all()).filter((one) => !/destroy/.test(one.state))).toEqual([]);
  });

  test("the standbys of a fleet are refused where they cannot stand by", async () => {
    const services = [{ protocol: "tcp", internalPort: 80 }];
    const given = { app, name: "web", regions: { ams: 1 }, standbys: 1 };
    expect((await fleet.check({}, { ...given, config: { ...config, services } })).failures).toEqual([
      "standbys: only Machines without config.services have standbys",
    ]);
    expect((await fleet.check({}, { ...given, config, volume: { path: "/data" } })).failures).toEqual([
      "standbys: a standby would have no volume; leave it out",
    ]);
    expect((await fleet.check({}, { ...given, config: { ...config, standbys: ["x"] } })).failures).toEqual([
      "config.standbys: a fleet's Machines run, and a standby does not; set the fleet's standbys",
    ]);
  });
});

describe("the release command of a fleet", () => {
  let service: TestService;
  let fleet: Bound;
  let app: string;
  beforeAll(async () => {
    service = await startService();
    fleet = bind("Fleet", service);
    app = await makeApp(service, "released");
  });
  afterAll(() => service.close());

  const checked = async (tag: string, more: Record<string, unknown> = {}) =>
    (
      await fleet.check(
        {},
        {
          ...{ app, name: "web", regions: { ams: 2 }, releaseCommand: ["true"] },
          config: { image: `registry.example.com/web:${tag}`, init: { cmd: ["serve"] } },
          ...more,
        },
      )
    ).inputs;
  const creates = (): number => service.requests.filter(({ operation }) => operation === "machines.create").length;
  const shown = async () => (await machinesOf(service, app)).map((one) => `${one.name} ${String(one.config["image"])}`);
  const [one, two, three] = ["1", "2", "3"].map((tag) => `registry.example.com/web:${tag}`);

  test("the release command of a fleet runs once before a new configuration, and leaves no Machine", async () => {
    const made = await fleet.create(await checked("1"));
    expect(await shown()).toEqual([`web-ams-1 ${one}`, `web-ams-2 ${one}`]);
    let state = made.state;
    state = await fleet.update(made.id, state, await checked("1", { regions: { ams: 3 } }));
    state = await fleet.update(made.id, state, await checked("1"));
    expect(creates(), "the release command, two Machines and a third").toBe(4);
    state = await fleet.update(made.id, state, await checked("2"));
    expect(creates()).toBe(5);
    expect(await shown()).toEqual([`web-ams-1 ${two}`, `web-ams-2 ${two}`]);
    expect(state["rollout"]).toBe("complete");

    // One that fails changes no Machine, and runs again the next time.
    const failing = await checked("3", { releaseCommand: ["sh", "-c", "exit 3"] });
    await expect(fleet.update(made.id, state, failing)).rejects.toThrow(
      /the release command \["sh","-c","exit 3"\] did not succeed: .*\(code 3/s,
    );
    expect(await shown()).toEqual([`web-ams-1 ${two}`, `web-ams-2 ${two}`]);
    await expect(fleet.update(made.id, state, failing)).rejects.toThrow(/\(code 3\)/);
    expect(creates()).toBe(7);
    state = await fleet.update(made.id, state, await checked("3"));
    expect(await shown()).toEqual([`web-ams-1 ${three}`, `web-ams-2 ${three}`]);
    await fleet.delete(made.id, state);
    expect(await shown()).toEqual([]);
  });

  test("the release command of a fleet runs once if the answer to its create is lost", async () => {
    const made = await fleet.create(await checked("1"));
    const before = creates();
    service.fail({ operation: "machines.create", when: "after", status: 503 });
    // Nothing shows the Machine until it has ended and destroyed itself.
    service.fail({
      operation: "machines.list",
      times: "always",
      rewrite: (body) => (body as Live[]).filter(({ name, state }) => name !== "web-release" || state === "destroyed"),
    });
    const state = await fleet.update(made.id, made.state, await checked("2"));
    service.service.faults.clear();
    expect(creates()).toBe(before + 1);
    expect(await shown()).toEqual([`web-ams-1 ${two}`, `web-ams-2 ${two}`]);
    await fleet.delete(made.id, state);
  });

  test("the release command of a fleet that fails after a while changes no Machine", async () => {
    const made = await fleet.create(await checked("1"));
    // The Machine has started long before.
    const failing = await checked("2", { releaseCommand: ["sh", "-c", "echo cannot migrate; sleep 0.3; exit 3"] });
    await expect(fleet.update(made.id, made.state, failing)).rejects.toThrow(/did not succeed: .*\(code 3/s);
    expect(await shown()).toEqual([`web-ams-1 ${one}`, `web-ams-2 ${one}`]);
    // What a program without a shell does is not known to the simulation; it ends because its Machine destroys itself.
    const state = await fleet.update(made.id, made.state, await checked("2", { releaseCommand: ["bin/migrate"] }));
    expect(await shown()).toEqual([`web-ams-1 ${two}`, `web-ams-2 ${two}`]);
    await fleet.delete(made.id, state);
  });

  describe("that takes long", () => {
    const clock = new ManualClock();
    let slow: TestService;
    let slowFleet: Bound;
    beforeAll(async () => {
      slow = await startService({ clock });
      slowFleet = bind("Fleet", slow);
    });
    afterAll(() => slow.close());

    const begun = async (name: string) => {
      const own = await makeApp(slow, name);
      const { id, state } = await slowFleet.create(await checked("1", { app: own }));
      const updateWith = async (more: Record<string, unknown>) =>
        slowFleet.update(id, state, await checked("2", { app: own, releaseCommand: ["sleep", "600"], ...more }));
      const update = () => updateWith({});
      const { context } = slow.service;
      const release = async () => (await machinesOf(slow, own)).find((one) => one.name === "web-release");
      return { own, id, update, updateWith, release, isAwaited: (id: string) => context.waits.heldOn(id).length > 0 };
    };

    test("and that an interrupted run began is waited for, and not begun again", async () => {
      const { own, id: made, update, release, isAwaited } = await begun("interrupted");
      // The run ends while it waits.
      slow.fail({ operation: "machines.wait", when: "before", status: 403, body: { error: "not now" } });
      await expect(update()).rejects.toThrow(/403/);
      const { id = "" } = (await release()) ?? {};
      const updating = update();
      await expect.poll(() => isAwaited(id)).toBe(true);
      expect((await release())?.id).toBe(id);
      clock.advance(601_000);
      const state = await updating;
      expect((await machinesOf(slow, own)).map((each) => `${each.name} ${String(each.config["image"])}`)).toEqual([
        `web-ams-1 ${two}`,
        `web-ams-2 ${two}`,
      ]);
      await slowFleet.delete(made, state);
    });

    test("and that an interrupted run began with other secrets is replaced", async () => {
      const { own, id: made, update, updateWith, release, isAwaited } = await begun("rotated");
      slow.fail({ operation: "machines.wait", when: "before", status: 403, body: { error: "not now" } });
      await expect(update()).rejects.toThrow(/403/);
      const { id: old = "" } = (await release()) ?? {};
      const updating = updateWith({ minSecretsVersion: 0 });
      const current = async () => (await release())?.id ?? "";
      await expect.poll(async () => (await current()) !== old && isAwaited(await current())).toBe(true);
      clock.advance(601_000);
      const state = await updating;
      expect((await machinesOf(slow, own)).map(({ config: { image } }) => image)).toEqual([two, two]);
      await slowFleet.delete(made, state);
    });

    test.each([
      ["stopped", (path: string) => ({ path: `${path}/stop`, method: "POST" })],
      ["destroyed", (path: string) => ({ path: `${path}?force=true`, method: "DELETE" })],
    ])("and that someone else has %s did not succeed", async (name, request) => {
      const { own, update, release, isAwaited } = await begun(name);
      const updating = expect(update()).rejects.toThrow(/the release command .* did not succeed/);
      await expect.poll(async () => isAwaited((await release())?.id ?? "")).toBe(true);
      const { path, method } = request(`${slow.url}/v1/apps/${own}/machines/${(await release())?.id ?? ""}`);
      await fetch(path, { method, headers: { authorization: `Bearer ${slow.token}` } });
      await updating;
      expect((await machinesOf(slow, own)).map(({ config: { image } }) => image)).toEqual([one, one]);
    });
  });
});

describe("a Machine of a fleet that runs and does not pass", () => {
  const checks = { alive: { type: "tcp", port: 80, interval: "1s", timeout: "1s" } } as const;

  /** The checks of a Machine pass after its first restart. */
  class AfterRestart extends SimulatedRuntime {
    readonly #restarted: Set<string>;
    constructor(host: RuntimeHost) {
      const restarted = new Set<string>();
      const checked: RuntimeHost["events"]["checked"] = (machine) =>
        host.events.checked(machine, restarted.has(machine.id) ? "passing" : "critical");
      super({ ...host, events: { ...host.events, checked } });
      this.#restarted = restarted;
    }
    override stop(machine: Subject, request: StopRequest): void {
      if (machine.state === "restarting") this.#restarted.add(machine.id);
      super.stop(machine, request);
    }
  }

  test.each([true, false])(
    "a Machine of a fleet that runs and does not pass is restarted once if that is wanted: %s",
    async (restartOnce) => {
      const service = await startService({ runtime: (host) => new AfterRestart(host) });
      const app = await makeApp(service, "unwell");
      const fleet = bind("Fleet", service);
      const { inputs } = await fleet.check(
        {},
        {
          ...{ app, name: "web", regions: { ams: 2 }, restartOnce, passDeadline: "2s" },
          config: { image: "registry.example.com/web:1", checks },
        },
      );
      const created = fleet.create(inputs);
      if (restartOnce) await created;
      else await expect(created).rejects.toThrow(/create web-ams-\d: checks of Machine .* did not pass within 2s/);
      const restarts = service.requests.filter(({ operation }) => operation === "machines.restart").length;
      expect(restarts).toBe(restartOnce ? 2 : 0);
      await service.close();
    },
  );
});

describe("a Machine whose host cannot be reached", () => {
  let service: TestService;
  let fleet: Bound;
  beforeEach(async () => {
    service = await startService();
    fleet = bind("Fleet", service);
  });
  afterEach(() => service.close());

  /** From now on, the service shows a Machine as it does while the host cannot be reached. */
  const lose = (id: string): void => {
    const lost = (machine: unknown): unknown =>
      (machine as Live).id === id ? { ...(machine as Live), config: undefined, host_status: "unreachable" } : machine;
    const always = { when: "after", times: 1_000_000 } as const;
    service.fail(
      { ...always, operation: "machines.list", rewrite: (body) => (body as unknown[]).map(lost) },
      { ...always, operation: "machines.get", rewrite: lost },
    );
  };

  test.each([
    ["is replaced", undefined, ["web-ams-1", "web-ams-2", "web-ams-3"]],
    ["is left where its volume is", { path: "/data", sizeGb: 1 }, ["web-ams-1", "web-ams-2"]],
  ] as const)("a Machine whose host cannot be reached %s, and stops no rollout", async (_, volume, names) => {
    const app = await makeApp(service, "lost");
    const checked = async (tag: string) => {
      const config = { image: `registry.example.com/web:${tag}` };
      return (await fleet.check({}, withoutUndefined({ app, name: "web", regions: { ams: 2 }, config, volume })))
        .inputs;
    };
    const { id, state } = await fleet.create(await checked("1"));
    const [first] = await machinesOf(service, app);
    lose(first?.id ?? "");
    const drifted = await fleet.read(id, state);
    expect(drifted?.state["drift"]).toEqual([
      `Machines in ams: 1 instead of 2 (the hosts of ${first?.name ?? ""} cannot be reached)`,
    ]);
    const updated = await fleet.update(id, drifted?.state ?? {}, await checked("2"));
    expect(updated["rollout"]).toBe("complete");
    expect((await machinesOf(service, app)).map(({ name }) => name).sort()).toEqual(names);
    await fleet.delete(id, updated);
    expect(await machinesOf(service, app)).toEqual([]);
  });
});

describe("a fleet with volumes", () => {
  let service: TestService;
  let fleet: Bound;
  beforeAll(async () => {
    service = await startService({ keepBodies: true });
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
  /** The requests that created volumes. */
  const createdVolumes = () =>
    service.bodies
      .filter(({ method, path }) => method === "POST" && path.endsWith("/volumes"))
      .map(({ body }) => body as Record<string, unknown>);

  test("a fleet with volumes gives each Machine its own, which outlives it and is mounted again", async () => {
    const { id, state } = await fleet.create(await checked());
    const first = await volumes();
    expect(first.map(({ name, size_gb }) => [name, size_gb])).toEqual([
      [marked("db_ams_1"), 1],
      [marked("db_ams_2"), 1],
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

  /** Which volume each Machine mounts. */
  const mounted = async () =>
    Object.fromEntries(
      (await machinesOf(service, "stateful")).map(({ name, config: { mounts } }) => [
        name,
        (mounts as { volume: string }[] | undefined)?.[0]?.volume,
      ]),
    );

  test("a fleet with volumes moves to another region with a copy of its data, and keeps the old volume", async () => {
    const { id, state } = await fleet.create(await checked({ name: "move", regions: { ams: 2 } }));
    const before = await mounted();
    const created = createdVolumes();
    const moved = await fleet.update(id, state, await checked({ name: "move", regions: { ams: 1, fra: 1 } }));
    const after = await mounted();
    expect(Object.keys(after).sort()).toEqual(["move-ams-1", "move-fra-1"]);
    expect(after["move-ams-1"]).toBe(before["move-ams-1"]);
    expect(createdVolumes().slice(created.length)).toEqual([
      { name: marked("move_fra_1"), region: "fra", source_volume_id: before["move-ams-2"] },
    ]);
    const left = (await volumes()).find((one) => one.id === before["move-ams-2"]);
    expect(left).toMatchObject({ attached_machine_id: null });

    // Moving back does not mount the old data again.
    const returned = await fleet.update(id, moved, await checked({ name: "move", regions: { ams: 2 } }));
    expect(Object.keys(await mounted()).sort()).toEqual(["move-ams-1", "move-ams-3"]);
    expect(createdVolumes().at(-1)).toMatchObject({
      name: marked("move_ams_3"),
      source_volume_id: after["move-fra-1"],
    });
    await fleet.delete(id, returned);
  });

  test("an interrupted move is continued or undone", async () => {
    const { id, state } = await fleet.create(await checked({ name: "stop", regions: { ams: 1 } }));
    const before = await mounted();
    const wanted = await checked({ name: "stop", regions: { fra: 1 } });
    const refusal = { when: "before", status: 403, body: { error: "not now" } } as const;
    service.fail({ ...refusal, operation: "machines.create" });
    await expect(fleet.update(id, state, wanted)).rejects.toThrow(/move stop-ams-1 with its volume to stop-fra-1/);
    expect((await machinesOf(service, "stateful")).map(({ name, state: now }) => [name, now])).toEqual([
      ["stop-ams-1", "stopped"],
    ]);
    // Back to the old region: its Machine runs again, and no longer moves.
    const failed = { ...state, regions: { fra: 1 }, rollout: "failed" };
    await fleet.update(id, failed, await checked({ name: "stop", regions: { ams: 1 } }));
    const [old] = await machinesOf(service, "stateful");
    expect([old?.state, JSON.stringify(old?.config)]).toEqual(["started", expect.not.stringContaining("fleet-move")]);
    // An interrupted move continues with the copy that it has created.
    service.fail({ ...refusal, operation: "machines.create" });
    await expect(fleet.update(id, state, wanted)).rejects.toThrow(/not now/);
    const forks = createdVolumes().length;
    const moved = await fleet.update(id, state, wanted);
    expect(createdVolumes()).toHaveLength(forks);
    // The copy that was taken back is not used: its data is older.
    expect(Object.keys(await mounted())).toEqual(["stop-fra-2"]);
    expect(before["stop-ams-1"]).not.toBe((await mounted())["stop-fra-2"]);
    await fleet.delete(id, moved);
  });

  test("a fleet with volumes is replaced at once by Machines with copies of its volumes, where that is allowed", async () => {
    const more = {
      ...{ name: "copy", strategy: { type: "bluegreen" } },
      volume: { path: "/data", sizeGb: 1, copy: true },
    };
    const { id, state } = await fleet.create(await checked(more));
    const blue = Object.fromEntries(Object.entries(await mounted()).filter(([name]) => name.startsWith("copy")));
    const config = { image: "registry.example.com/db:2" };
    const count = createdVolumes().length;
    const next = await fleet.update(id, state, await checked({ ...more, config }));
    const green = Object.fromEntries(Object.entries(await mounted()).filter(([name]) => name.startsWith("copy")));
    expect(Object.keys(green).sort()).toEqual(["copy-ams-3", "copy-ams-4"]);
    expect(
      createdVolumes()
        .slice(count)
        .map(({ source_volume_id }) => source_volume_id)
        .sort(),
    ).toEqual(Object.values(blue).sort());
    expect((await volumes()).filter((one) => Object.values(blue).includes(one.id))).toHaveLength(2);
    await fleet.delete(id, next);
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
  ])("a fleet refuses %j", async (more, message) => {
    expect((await fleet.check({}, withoutUndefined(inputs(more)))).failures.join("\n")).toMatch(message);
  });
});

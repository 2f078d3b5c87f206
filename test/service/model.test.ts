// The service against a small model of it: random sequences of requests and of time, after each of which both must have the
// same Machines, leases, versions, volumes and snapshots. The model follows docs/interface.md#volumes,
// docs/interface.md#refusals, docs/interface.md#machine-states, docs/interface.md#leases, docs/interface.md#snapshots, with
// the service's times in milliseconds. FC_SEED selects other sequences, `npm run test:all` runs more.
import fc from "fast-check";
import { expect, test } from "vitest";
import { isThorough } from "../support/extent.mts";
import { createService, ManualClock, seededRandom, type Service } from "../../service/index.ts";

const seed = Number(process.env["FC_SEED"] ?? 20_260_101);
const runs = isThorough ? 600 : 40;

const day = 24 * 3600_000;
const room = 3;

// --- the model ---

interface Machine {
  readonly id: string;
  readonly name: string;
  state: string;
  /** When the state ends by itself. */
  due: number | undefined;
  launch: boolean;
  readonly versions: string[];
  cordoned: boolean;
  metadata: Map<string, string>;
  lease: { readonly nonce: string; readonly until: number } | undefined;
  volume: string | undefined;
  destroyedAt: number | undefined;
}

interface Snapshot {
  readonly doneAt: number;
  readonly expiresAt: number;
}

interface Volume {
  readonly id: string;
  state: string;
  due: number | undefined;
  size: number;
  retention: number;
  machine: string | undefined;
  unboundAt: number | undefined;
  gone: boolean;
  snapshots: Snapshot[];
}

const takes: Readonly<Record<string, number>> = {
  created: 150,
  starting: 250,
  stopping: 200,
  restarting: 200,
  suspending: 200,
  replacing: 100,
  destroying: 200,
  creating: 100,
  extending: 100,
  scheduling_destroy: 100,
  pending_destroy: day,
};
const leadsTo: Readonly<Record<string, string>> = {
  starting: "started",
  stopping: "stopped",
  restarting: "starting",
  suspending: "suspended",
  destroying: "destroyed",
  creating: "created",
  extending: "created",
  scheduling_destroy: "pending_destroy",
  pending_destroy: "gone",
};

/** The effect of an operation in a state: a state to enter, nothing (""), or a status to refuse with. */
function effect(operation: string, state: string): string | number {
  const is = (...states: string[]): boolean => states.includes(state);
  if (operation === "kill") return is("destroying", "destroyed") ? "" : "destroying";
  if (operation === "destroy") {
    if (is("destroying", "destroyed")) return "";
    return is("created", "stopped", "suspended", "failed") ? "destroying" : 412;
  }
  if (state === "destroyed") return 404;
  switch (operation) {
    case "start":
      if (is("starting", "started", "restarting")) return 409;
      return is("stopped", "suspended", "failed") ? "starting" : 412;
    case "stop":
      if (is("stopping", "stopped")) return "";
      return is("starting", "started", "restarting", "suspended", "failed") ? "stopping" : 412;
    case "restart":
      if (is("restarting")) return "";
      if (is("started", "suspended")) return "restarting";
      return is("stopped", "failed") ? "starting" : 412;
    case "suspend":
      if (is("suspending", "suspended")) return "";
      return is("started") ? "suspending" : 412;
    default:
      return is("destroying") ? 412 : "replacing"; // update
  }
}

class Model {
  now = Date.UTC(2026, 0, 1);
  machines: Machine[] = [];
  volumes: Volume[] = [];

  enter(thing: Machine | Volume, state: string): void {
    thing.state = state;
    const ms = takes[state];
    thing.due = ms === undefined || ("size" in thing && state === "created") ? undefined : this.now + ms;
  }

  step(thing: Machine | Volume): void {
    if ("size" in thing) {
      const next = leadsTo[thing.state] ?? "";
      if (next === "gone") Object.assign(thing, { gone: true, due: undefined });
      else this.enter(thing, next);
      return;
    }
    const waits = thing.state === "created" || thing.state === "replacing";
    if (thing.state === "replacing")
      for (const volume of this.volumes)
        if (volume.machine === thing.id && volume.id !== thing.volume) volume.machine = undefined;
    this.enter(thing, waits ? (thing.launch ? "starting" : "stopped") : (leadsTo[thing.state] ?? ""));
    if (thing.state !== "destroyed") return;
    Object.assign(thing, { destroyedAt: this.now, lease: undefined });
    for (const volume of this.volumes) if (volume.machine === thing.id) volume.unboundAt = this.now + 300;
  }

  advance(ms: number): void {
    const end = this.now + ms;
    for (;;) {
      const due = [...this.machines, ...this.volumes]
        .filter((thing) => (thing.due ?? Number.POSITIVE_INFINITY) <= end)
        .sort((a, b) => (a.due ?? 0) - (b.due ?? 0))[0];
      if (!due) break;
      this.now = due.due ?? 0;
      this.step(due);
    }
    this.now = end;
    for (const volume of this.volumes) {
      if (volume.unboundAt !== undefined && volume.unboundAt <= end)
        Object.assign(volume, { machine: undefined, unboundAt: undefined });
      volume.snapshots = volume.snapshots.filter(({ expiresAt }) => expiresAt > end);
    }
    this.machines = this.machines.filter(({ destroyedAt }) => destroyedAt === undefined || destroyedAt + day > end);
  }

  /** Whether a Machine can still be read by its id. */
  shows = ({ destroyedAt }: Machine): boolean => destroyedAt === undefined || destroyedAt + 60_000 > this.now;
  held = ({ lease }: Machine): boolean => lease !== undefined && lease.until > this.now;

  /** The status with which a guarded request is refused before its own rule applies. */
  guard(machine: Machine, nonce: string | undefined): number | undefined {
    if (!this.shows(machine)) return 404;
    if (machine.destroyedAt !== undefined) return undefined;
    if (this.held(machine)) return machine.lease?.nonce === nonce ? undefined : 409;
    return nonce === undefined ? undefined : 409;
  }
}

// --- the service ---

interface Answered {
  readonly status: number;
  readonly body: any; // oxlint-disable-line typescript/no-explicit-any -- like answers
}

class Real {
  readonly clock = new ManualClock();
  readonly service: Service = createService({
    clock: this.clock,
    random: seededRandom("model"),
    delays: "believable",
    strict: true,
    capacity: { ams: room },
  });
  /** Every answer, for a second run to compare with. */
  readonly said: string[] = [];

  async call(
    method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
    path: string,
    payload?: object,
    nonce?: string,
  ): Promise<Answered> {
    const headers = {
      authorization: `Bearer ${this.service.token}`,
      ...(nonce === undefined ? {} : { "svc-machine-lease-nonce": nonce }),
    };
    const url = `/v1/apps${path}`;
    const { statusCode: status, body } = await this.service.app.inject({
      method,
      url,
      headers,
      ...(payload ? { payload } : {}),
    });
    this.said.push(`${method} ${path} ${status} ${body}`);
    return { status, body: body === "" ? undefined : JSON.parse(body) };
  }
}

async function compare(model: Model, real: Real): Promise<void> {
  const machines = (await real.call("GET", "/web/machines?include_deleted=true&include_leases=true")).body;
  const shown = machines.map(({ id, name, state, version, cordoned, config, lease }: Answered["body"]) => ({
    ...{ id, name, state, version, cordoned },
    metadata: config.metadata ?? {},
    mounts: config.mounts?.[0]?.volume,
    leased: lease !== undefined,
  }));
  const expected = model.machines.map((machine) => ({
    ...{ id: machine.id, name: machine.name, state: machine.state, cordoned: machine.cordoned },
    version: machine.versions.at(-1),
    metadata: Object.fromEntries(machine.metadata),
    mounts: machine.volume,
    leased: model.held(machine),
  }));
  const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1);
  expect(shown.sort(byId)).toEqual(expected.sort(byId));
  const volumes = (await real.call("GET", "/web/volumes")).body.map((volume: Answered["body"]) => ({
    ...{ id: volume.id, state: volume.state, size: volume.size_gb, retention: volume.snapshot_retention },
    machine: volume.attached_machine_id ?? undefined,
  }));
  const kept = model.volumes
    .filter(({ gone }) => !gone)
    .map(({ id, state, size, retention, machine }) => ({ id, state, size, retention, machine }));
  expect(volumes.sort(byId)).toEqual(kept.sort(byId));
}

// --- commands ---

type Command = fc.AsyncCommand<Model, Real>;
type Run = (model: Model, real: Real) => Promise<void>;

const command = (name: string, what: object, check: (model: Model) => boolean, run: Run): Command => ({
  check,
  async run(model, real) {
    await run(model, real);
    await compare(model, real);
  },
  toString: () => `${name}(${JSON.stringify(what)})`,
});

const pick = <T>(from: readonly T[], which: number): T => {
  const found = from[which % from.length];
  if (found === undefined) throw new Error("there is nothing to pick from");
  return found;
};

const which = fc.nat({ max: 20 });
const nonceFor = fc.constantFrom("holder", "nobody", "stranger");
const nonceOf = (machine: Machine, who: string): string | undefined =>
  who === "stranger" ? "f".repeat(32) : who === "holder" ? machine.lease?.nonce : undefined;
const hasMachine = ({ machines }: Model): boolean => machines.length > 0;
const hasVolume = ({ volumes }: Model): boolean => volumes.length > 0;
const mountsOf = (volume: string | undefined) => (volume === undefined ? {} : { mounts: [{ volume, path: "/d" }] });

/** A command about one Machine, with or without the nonce of its lease. */
const ofMachine = <T extends object>(
  name: string,
  more: fc.Arbitrary<T>,
  run: (model: Model, real: Real, machine: Machine, nonce: string | undefined, more: T) => Promise<void>,
) =>
  fc.record({ which, who: nonceFor, more }).map((asked) =>
    command(name, asked, hasMachine, async (model, real) => {
      const machine = pick(model.machines, asked.which);
      await run(model, real, machine, nonceOf(machine, asked.who), asked.more);
    }),
  );

const ofVolume = <T extends object>(
  name: string,
  more: fc.Arbitrary<T>,
  run: (model: Model, real: Real, volume: Volume, more: T) => Promise<void>,
) =>
  fc
    .record({ which, more })
    .map((asked) =>
      command(name, asked, hasVolume, (model, real) => run(model, real, pick(model.volumes, asked.which), asked.more)),
    );

const isLeaving = ({ state }: Volume): boolean => state === "scheduling_destroy" || state === "pending_destroy";

const create = fc
  .record({
    skip: fc.boolean(),
    name: fc.constantFrom("a", "b", undefined),
    volume: fc.option(which, { nil: undefined }),
    lease: fc.constantFrom(undefined, undefined, 1, 60),
  })
  .map((asked) =>
    command(
      "create",
      asked,
      () => true,
      async (model, real) => {
        const volume =
          asked.volume === undefined || model.volumes.length === 0 ? undefined : pick(model.volumes, asked.volume);
        const { status, body } = await real.call("POST", "/web/machines", {
          config: { image: "nginx", ...mountsOf(volume?.id) },
          skip_launch: asked.skip,
          ...(asked.name === undefined ? {} : { name: asked.name }),
          ...(asked.lease === undefined ? {} : { lease_ttl: asked.lease }),
        });
        const live = model.machines.filter(({ destroyedAt }) => destroyedAt === undefined);
        const expected = ((): number => {
          if (volume?.gone) return 404;
          if (volume && (volume.machine !== undefined || isLeaving(volume))) return 412;
          if (live.some(({ name }) => name === asked.name)) return 409;
          if (live.length >= room) return volume ? 412 : 422;
          return 200;
        })();
        expect(status).toBe(expected);
        if (status !== 200) return;
        const machine: Machine = {
          ...{ id: body.id, name: body.name, versions: [body.version], launch: !asked.skip, cordoned: false },
          ...{ state: "", due: undefined, volume: volume?.id, destroyedAt: undefined, metadata: new Map() },
          lease: asked.lease === undefined ? undefined : { nonce: body.nonce, until: model.now + asked.lease * 1000 },
        };
        if (volume) volume.machine = machine.id;
        model.enter(machine, "created");
        model.machines.push(machine);
      },
    ),
  );

const update = ofMachine(
  "update",
  fc.record({ skip: fc.boolean(), drop: fc.boolean(), stale: fc.constantFrom(undefined, true, false) }),
  async (model, real, machine, nonce, { skip, drop, stale }) => {
    const current = stale === undefined ? undefined : stale ? "01HQ73A7BFFDF1B6WMGHFZZ4E7" : machine.versions.at(-1);
    const volume = drop ? undefined : machine.volume;
    const { status, body } = await real.call(
      "POST",
      `/web/machines/${machine.id}`,
      {
        config: { image: "nginx", ...mountsOf(volume) },
        skip_launch: skip,
        ...(current === undefined ? {} : { current_version: current }),
      },
      nonce,
    );
    const effected = effect("update", machine.state);
    const expected = model.guard(machine, nonce) ?? (effected === 404 ? 404 : stale ? 409 : effected);
    expect(status).toBe(typeof expected === "number" ? expected : 200);
    if (typeof expected === "number") return;
    expect(body.version > (machine.versions.at(-1) ?? "")).toBe(true);
    machine.versions.push(body.version);
    machine.metadata = new Map();
    machine.launch = !skip;
    machine.volume = volume;
    model.enter(machine, "replacing");
    const versions = (await real.call("GET", `/web/machines/${machine.id}/versions`)).body;
    expect(versions.map(({ version }: { version: string }) => version)).toEqual(machine.versions.toReversed());
  },
);

const power = ofMachine(
  "power",
  fc.record({ operation: fc.constantFrom("start", "start", "stop", "stop", "restart", "suspend", "destroy", "kill") }),
  async (model, real, machine, nonce, { operation }) => {
    const path = `/web/machines/${machine.id}`;
    const { status } =
      operation === "destroy" || operation === "kill"
        ? await real.call("DELETE", operation === "kill" ? `${path}?force=true` : path, undefined, nonce)
        : await real.call("POST", `${path}/${operation}`, undefined, nonce);
    const expected = model.guard(machine, nonce) ?? effect(operation, machine.state);
    expect([operation, status]).toEqual([operation, typeof expected === "number" ? expected : 200]);
    if (typeof expected !== "string" || expected === "") return;
    if (operation === "start") machine.launch = true;
    model.enter(machine, expected);
  },
);

const cordon = ofMachine("cordon", fc.record({ on: fc.boolean() }), async (model, real, machine, nonce, { on }) => {
  const verb = on ? "cordon" : "uncordon";
  const { status } = await real.call("POST", `/web/machines/${machine.id}/${verb}`, undefined, nonce);
  const expected = model.guard(machine, nonce) ?? (machine.destroyedAt === undefined ? 200 : 404);
  expect(status).toBe(expected);
  if (status === 200) machine.cordoned = on;
});

const acquire = ofMachine(
  "acquire",
  fc.record({ ttl: fc.constantFrom(1, 30, 3600) }),
  async (model, real, machine, nonce, { ttl }) => {
    const { status, body } = await real.call("POST", `/web/machines/${machine.id}/lease`, { ttl }, nonce);
    const expected = ((): number => {
      if (machine.destroyedAt !== undefined) return 404;
      if (model.held(machine)) return machine.lease?.nonce === nonce ? 201 : 409;
      return nonce === undefined ? 201 : 404;
    })();
    expect(status).toBe(expected);
    if (status === 201) machine.lease = { nonce: body.data.nonce, until: model.now + ttl * 1000 };
  },
);

const release = ofMachine("release", fc.record({}), async (model, real, machine, nonce) => {
  const { status } = await real.call("DELETE", `/web/machines/${machine.id}/lease`, undefined, nonce);
  const expected = ((): number => {
    if (machine.destroyedAt !== undefined) return 404;
    if (nonce === undefined) return 400;
    if (!model.held(machine)) return 404;
    return machine.lease?.nonce === nonce ? 200 : 409;
  })();
  expect(status).toBe(expected);
  if (status === 200) machine.lease = undefined;
});

const setMetadata = ofMachine(
  "metadata",
  fc.record({
    changes: fc.dictionary(fc.constantFrom("a", "b", "c"), fc.constantFrom("1", "2", "", null)),
    stale: fc.boolean(),
  }),
  async (model, real, machine, _nonce, { changes, stale }) => {
    const { status } = await real.call("PATCH", `/web/machines/${machine.id}/metadata`, {
      metadata: changes,
      machine_version: stale ? "01HQ73A7BFFDF1B6WMGHFZZ4E7" : machine.versions.at(-1),
    });
    expect(status).toBe(machine.destroyedAt !== undefined ? 404 : stale ? 412 : 204);
    if (status !== 204) return;
    for (const [key, value] of Object.entries(changes)) {
      if (value === null || value === "") machine.metadata.delete(key);
      else machine.metadata.set(key, value);
    }
  },
);

const show = ofMachine("show", fc.record({}), async (model, real, machine) => {
  const { status, body } = await real.call("GET", `/web/machines/${machine.id}`);
  expect([status, body.state]).toEqual(model.shows(machine) ? [200, machine.state] : [404, undefined]);
});

const createVolume = fc.record({ size: fc.integer({ min: 1, max: 20 }) }).map(({ size }) =>
  command(
    "createVolume",
    { size },
    ({ volumes }) => volumes.length < 8,
    async (model, real) => {
      const body = { name: "data", size_gb: size, auto_backup_enabled: false, snapshot_retention: 1 };
      const made = await real.call("POST", "/web/volumes", body);
      expect(made.status).toBe(200);
      const volume: Volume = {
        ...{ id: made.body.id, state: "", due: undefined, size, retention: 1, machine: undefined },
        ...{ unboundAt: undefined, gone: false, snapshots: [] },
      };
      model.enter(volume, "creating");
      model.volumes.push(volume);
    },
  ),
);

const extend = ofVolume(
  "extend",
  fc.record({ size: fc.integer({ min: 1, max: 40 }) }),
  async (model, real, volume, { size }) => {
    const { status } = await real.call("PUT", `/web/volumes/${volume.id}/extend`, { size_gb: size });
    expect(status).toBe(volume.gone || isLeaving(volume) ? 404 : size <= volume.size ? 400 : 200);
    if (status !== 200) return;
    volume.size = size;
    // A volume that is still being created is extended later.
    if (volume.state !== "creating") model.enter(volume, "extending");
  },
);

const retain = ofVolume(
  "retain",
  fc.record({ days: fc.integer({ min: 1, max: 3 }) }),
  async (_model, real, volume, { days }) => {
    const { status } = await real.call("PUT", `/web/volumes/${volume.id}`, { snapshot_retention: days });
    expect(status).toBe(volume.gone || isLeaving(volume) ? 404 : 200);
    if (status === 200) volume.retention = days;
  },
);

const deleteVolume = ofVolume("deleteVolume", fc.record({}), async (model, real, volume) => {
  const { status } = await real.call("DELETE", `/web/volumes/${volume.id}`);
  const bound = volume.machine !== undefined && !isLeaving(volume);
  expect(status).toBe(volume.gone ? 404 : bound ? 412 : 200);
  if (status === 200 && !isLeaving(volume)) model.enter(volume, "scheduling_destroy");
});

const snapshot = ofVolume("snapshot", fc.record({}), async (model, real, volume) => {
  const { status } = await real.call("POST", `/web/volumes/${volume.id}/snapshots`);
  const pending = volume.snapshots.some(({ doneAt }) => doneAt > model.now);
  expect(status).toBe(volume.gone || isLeaving(volume) ? 404 : pending ? 412 : 200);
  if (status === 200) volume.snapshots.push({ doneAt: model.now + 500, expiresAt: model.now + volume.retention * day });
});

const snapshots = ofVolume("snapshots", fc.record({}), async (model, real, volume) => {
  const { status, body } = await real.call("GET", `/web/volumes/${volume.id}/snapshots`);
  const none = volume.gone && volume.snapshots.length === 0;
  expect(status).toBe(none ? 404 : 200);
  if (none) return;
  const states = body.map((one: { status: string }) => one.status).sort();
  expect(states).toEqual(volume.snapshots.map(({ doneAt }) => (doneAt > model.now ? "pending" : "created")).sort());
});

const advance = fc
  .oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max: 600 }) },
    { weight: 2, arbitrary: fc.constantFrom(1000, 2000, 30_000) },
    { weight: 1, arbitrary: fc.constantFrom(59_999, 60_000, 3600_000, day, day + 1) },
  )
  .map((ms) =>
    command(
      "advance",
      { ms },
      () => true,
      async (model, real) => {
        model.advance(ms);
        real.clock.advance(ms);
      },
    ),
  );

const commands = fc.commands(
  [
    ...[create, create, update, power, power, power, cordon, acquire, release, setMetadata, show],
    ...[createVolume, createVolume, extend, retain, deleteVolume, snapshot, snapshots],
    ...[advance, advance, advance, advance],
  ],
  { maxCommands: 120, size: "max" },
);

/** Runs commands against a new service; returns all its answers. */
async function run(asked: Iterable<Command>): Promise<string[]> {
  const real = new Real();
  try {
    await real.call("POST", "", { name: "web", org_slug: "personal" });
    await fc.asyncModelRun(() => ({ model: new Model(), real }), asked);
    return real.said;
  } finally {
    await real.service.close();
  }
}

test(
  "the service matches the model, for any requests in any order",
  async () => {
    const statuses = new Set<string>();
    const property = fc.asyncProperty(commands, async (asked) => {
      for (const text of await run(asked)) statuses.add(/ (\d{3}) /.exec(text)?.[1] ?? text);
    });
    await fc.assert(property, { seed, numRuns: runs });
    // The commands caused every kind of answer.
    expect([...statuses].sort()).toEqual(["200", "201", "204", "400", "404", "409", "412", "422"]);
  },
  runs * 2000,
);

test(
  "two runs of the same commands with the same clock and randomness have byte-identical answers",
  async () => {
    const property = fc.asyncProperty(commands, async (asked) => {
      expect(await run(asked)).toEqual(await run(asked));
    });
    await fc.assert(property, { seed: seed + 1, numRuns: Math.ceil(runs / 6) });
  },
  runs * 2000,
);

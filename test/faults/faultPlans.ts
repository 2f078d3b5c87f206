// Random faults: of the service, the network, the process and other clients during one run.
import fc from "fast-check";
import type { Fault } from "../../service/index.ts";
import type { Death, Slow } from "../support/simulation.ts";

/**
 * What another client does before a run, or what happens to a program: `kill` ends it before the run, `killLater` during it, and
 * `fail` so often that its Machine is not started again. `stranger` creates a Machine with a name of a fleet's.
 */
export interface Interference {
  readonly what: (typeof interferences)[number];
  /** Selects the Machine, or the fleet, of the state. */
  readonly pick: number;
  /** Seconds for which a lease is held, or tenths of a second after which a program ends. */
  readonly seconds: number;
}

const interferences = ["lease", "config", "destroy", "stop", "kill", "killLater", "fail", "stranger"] as const;

/** The faults of one run. */
export interface Trouble {
  readonly faults: readonly Fault[];
  readonly slow: readonly Slow[];
  readonly death: Death | undefined;
  readonly others: readonly Interference[];
}

/** Nothing. */
export const noTrouble: Trouble = { faults: [], slow: [], death: undefined, others: [] };

/** Operations that runs send, with those of Machines and volumes repeated to weight them. */
const operations = [
  ...["machines.create", "machines.get", "machines.list", "machines.update", "machines.wait", "machines.destroy"],
  ...["machines.create", "machines.acquireLease", "machines.releaseLease", "machines.stop", "machines.start"],
  ...["machines.patchMetadata", "machines.setMemory", "machines.getMemory", "machines.exec", "machines.cordon"],
  ...["machines.suspend", "machines.restart", "machines.signal", "machines.setMetadataKey"],
  ...["apps.create", "apps.get", "apps.delete", "apps.createDeployToken"],
  ...["volumes.create", "volumes.get", "volumes.list", "volumes.update", "volumes.extend", "volumes.delete"],
  ...["volumes.create", "volumes.createSnapshot", "volumes.listSnapshots"],
  ...["secrets.get", "secrets.set", "secrets.list", "secrets.update", "secrets.delete"],
  ...["secretKeys.get", "secretKeys.set", "secretKeys.generate", "secretKeys.delete", "secretKeys.encrypt"],
  ...["ipAssignments.list", "ipAssignments.assign", "ipAssignments.release"],
  ...["certificates.get", "certificates.createAcme", "certificates.createCustom", "certificates.check"],
  ...["certificates.delete", "certificates.deleteAcme", "certificates.deleteCustom"],
  ...["postgres.create", "postgres.get", "postgres.list", "postgres.delete", "postgres.attach", "postgres.detach"],
  ...["postgres.createDatabase", "postgres.listDatabases", "postgres.deleteDatabase", "postgres.createUser"],
  ...["postgres.listUsers", "postgres.updateUser", "postgres.deleteUser", "postgres.credentials"],
  ...["postgres.rotatePassword", "postgres.installExtension", "postgres.removeExtension", "postgres.listExtensions"],
  ...["postgres.createBackup", "postgres.listBackups"],
] as const;

const ofMachine = [
  "machines.get",
  "machines.update",
  "machines.stop",
  "machines.wait",
  "machines.acquireLease",
] as const;
const lists = ["machines.list", "volumes.list", "ipAssignments.list", "secrets.list", "postgres.listBackups"] as const;

const nth = fc.integer({ min: 1, max: 5 });
const times = fc.oneof(
  { arbitrary: fc.integer({ min: 1, max: 3 }), weight: 4 },
  { arbitrary: fc.constant(20), weight: 1 },
);
const operation = fc.constantFrom(...operations);
/** Most faults affect one operation, some affect any. */
const anywhere = fc.oneof({ arbitrary: operation, weight: 5 }, { arbitrary: fc.constant(undefined), weight: 1 });
const moment = fc.constantFrom("before", "after");

const fault: fc.Arbitrary<Fault> = fc
  .oneof(
    fc.record({
      operation: anywhere,
      when: moment,
      status: fc.constantFrom("reset", 503, 502, 500, 504, 408),
      nth,
      times,
    }),
    fc.record({
      operation: anywhere,
      when: moment,
      status: fc.constantFrom("reset", 503),
      nth,
      times: fc.constant(1),
    }),
    fc.record({
      operation: anywhere,
      when: fc.constant("before"),
      status: fc.constantFrom(401, 403, 422, 409, 400),
      nth,
      times,
    }),
    fc.record({
      operation: anywhere,
      when: fc.constant("before"),
      status: fc.constant(429),
      headers: fc.constantFrom<Record<string, string>[]>(
        {},
        { "retry-after": "0" },
        { "retry-after": "2" },
        { "retry-after": "-5" },
        { "retry-after": "1000000000" },
        { "retry-after": "Thu, 01 Jan 2026 00:00:30 GMT" },
      ),
      nth,
      times,
    }),
    fc.record({ operation, truncate: fc.nat(40), nth, times }),
    fc.record({
      operation: fc.constantFrom(
        "machines.create",
        "machines.update",
        "machines.start",
        "volumes.create",
        "postgres.create",
      ),
      capacity: fc.constant(true as const),
      nth,
      times,
    }),
    fc.record({
      operation: fc.constantFrom(...ofMachine),
      stealLease: fc.record({ ttl: fc.integer({ min: 1, max: 60 }) }),
      nth,
      times: fc.constant(1),
    }),
    fc.record({
      operation: fc.constantFrom("machines.list", "machines.get", "machines.wait"),
      hiddenForMs: fc.integer({ min: 1, max: 8000 }),
    }),
    fc.record({
      operation: fc.constantFrom("machines.get", "machines.list"),
      stale: fc.integer({ min: 1, max: 2 }),
      nth,
      times,
    }),
    fc.record({
      operation: fc.constantFrom(...lists),
      list: fc.oneof(
        fc.record({ keep: fc.nat(1) }),
        fc.record({ repeat: fc.integer({ min: 1, max: 3 }) }),
        fc.record({ reverse: fc.constant(true) }),
      ),
      nth,
      times,
    }),
    fc.record({ operation: anywhere, clockJumpMs: fc.integer({ min: 1, max: 100_000 }), nth, times: fc.constant(1) }),
  )
  .map((one) => Object.fromEntries(Object.entries(one).filter(([, value]) => value !== undefined)) as Fault);

const slow: fc.Arbitrary<Slow> = fc
  .record({
    operation: anywhere,
    nth,
    times,
    ms: fc.constantFrom(500, 5000, 14_000, 40_000, 90_000),
    when: moment,
  })
  .map(({ operation: id, ...rest }) => (id === undefined ? rest : { ...rest, operation: id }));

const death: fc.Arbitrary<Death> = fc.record({
  request: fc.integer({ min: 1, max: 30 }),
  when: moment,
});

const interference: fc.Arbitrary<Interference> = fc.record({
  what: fc.constantFrom(...interferences),
  pick: fc.nat(3),
  seconds: fc.integer({ min: 1, max: 60 }),
});

const trouble: fc.Arbitrary<Trouble> = fc.record({
  faults: fc.array(fault, { maxLength: 3, size: "max" }),
  slow: fc.array(slow, { maxLength: 1 }),
  death: fc.option(death, { nil: undefined, freq: 2 }),
  others: fc.array(interference, { maxLength: 1 }),
});

/** The faults of one run; sometimes there are none. */
export const troubleArbitrary: fc.Arbitrary<Trouble> = fc.oneof(
  { arbitrary: trouble, weight: 3 },
  { arbitrary: fc.constant(noTrouble), weight: 1 },
);

/** Whether there is any fault. */
export const isTrouble = ({ faults, slow: late, death: end, others }: Trouble): boolean =>
  faults.length > 0 || late.length > 0 || end !== undefined || others.length > 0;

/** Whether the service gives wrong answers. */
export const liesOf = ({ faults }: Trouble): boolean =>
  faults.some((fault) => ["list", "stale", "hiddenForMs"].some((name) => Object.hasOwn(fault, name)));

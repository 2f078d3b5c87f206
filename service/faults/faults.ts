// Planned faults as data: the requests they apply to and their effects. A test in the same process or the admin listener plans
// them; clients of the service cannot.
import { z } from "zod";
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { fieldOf } from "../../api/schema.ts";
import { mayConcernHost, unreachableHost, worksWithoutHost, type Host } from "./unreachableHost.ts";

/** Every operation by its id. */
export const operationsById: ReadonlyMap<string, Operation> = new Map(
  Object.values(contract)
    .flatMap((group): Operation[] => Object.values(group))
    .map((row) => [row.id, row]),
);

/** When a fault acts: before the operation runs, or after its change is committed. */
export type Moment = "before" | "after";

/** Name of the field that holds the list of an answer; `""` when the answer is the list, undefined when it has none. */
export function listIn({ method, answer }: Operation): string | undefined {
  if (method !== "GET" || !answer) return undefined;
  const { shape } = fieldOf(answer);
  if (shape.kind === "array") return "";
  if (shape.kind !== "object") return undefined;
  return Object.entries(shape.fields).find(([, field]) => field.shape.kind === "array" && !field.optional)?.[0];
}

const ofMachine = ({ path }: Operation): boolean => path.includes("{machine_id}");
const listsMachines = ({ id }: Operation): boolean => id === "machines.list" || id === "orgs.machines";

/** Operations that need capacity on a host. */
export const needsCapacity = [
  "machines.create",
  "machines.update",
  "machines.start",
  "volumes.create",
  "postgres.create",
] as const;

interface Kind {
  /** When it acts; `either` leaves it to `when`. */
  readonly moment: Moment | "either";
  /** Operations that it applies to. */
  readonly concerns: (row: Operation) => boolean;
}

// The effects of a fault. A fault has one of them, or only a delay or a way to send the answer.
const kinds = {
  status: { moment: "either", concerns: () => true },
  capacity: { moment: "before", concerns: ({ id }) => (needsCapacity as readonly string[]).includes(id) },
  stealLease: { moment: "before", concerns: ofMachine },
  clockJumpMs: { moment: "before", concerns: () => true },
  hiddenForMs: {
    moment: "either",
    concerns: (row) => listsMachines(row) || row.id === "machines.get" || row.id === "machines.wait",
  },
  unreachableHost: { moment: "either", concerns: mayConcernHost },
  stale: { moment: "after", concerns: ({ id }) => id === "machines.get" || id === "machines.list" },
  list: { moment: "after", concerns: (row) => listIn(row) !== undefined },
  merge: { moment: "after", concerns: ({ answer }) => answer !== undefined },
  rewrite: { moment: "after", concerns: () => true },
} as const satisfies Record<string, Kind>;

type KindName = keyof typeof kinds;

const positive = z.int().min(1);
const period = z
  .int()
  .min(0)
  .max(24 * 3600_000);

const fields = z.strictObject({
  operation: z
    .string()
    .refine((id) => operationsById.has(id), { error: 'is no operation; they are named like "machines.create"' })
    .optional(),
  org: z.string().min(1).optional(),
  path: z.string().min(1).optional(),
  when: z.enum(["before", "after"]).optional(),
  nth: positive.optional(),
  times: z.union([positive, z.literal("always")]).optional(),
  status: z.union([z.int().min(200).max(599), z.literal("reset")]).optional(),
  headers: z
    .record(
      z.string().regex(/^[\w-]+$/, "must be the name of a header"),
      z.string().regex(/^[\t\x20-\x7e]*$/, "must be printable ASCII"),
    )
    .optional(),
  body: z.json().optional(),
  delayMs: period.optional(),
  truncate: z.int().min(0).optional(),
  drip: z.strictObject({ bytes: positive, everyMs: period }).optional(),
  capacity: z.literal(true).optional(),
  stale: positive.optional(),
  list: z
    .strictObject({
      keep: z.int().min(0).optional(),
      repeat: positive.optional(),
      reverse: z.boolean().optional(),
      next: z.string().optional(),
    })
    .optional(),
  merge: z.record(z.string(), z.json()).optional(),
  hiddenForMs: period.optional(),
  unreachableHost: unreachableHost.optional(),
  stealLease: z.strictObject({ ttl: z.int().min(1).max(3600) }).optional(),
  clockJumpMs: z
    .int()
    .min(1)
    .max(31 * 24 * 3600_000)
    .optional(),
});

const kindsOf = (fault: Fault): KindName[] =>
  (Object.keys(kinds) as KindName[]).filter((kind) => fault[kind] !== undefined);

/** Kinds that last, and that act on some operations before them and on others after them. */
const choosesMoment = (kind: KindName): boolean => kind === "hiddenForMs" || kind === "unreachableHost";

/** A contradiction in a fault: the field and a sentence about it. */
function contradiction(fault: z.infer<typeof fields>): [field: string, message: string] | undefined {
  const [kind, second] = kindsOf(fault);
  if (second) return [second, `cannot go together with ${kind}; plan two faults`];
  const { when, operation, status, delayMs, truncate, drip, headers, body } = fault;
  if ((headers !== undefined || body !== undefined) && typeof status !== "number")
    return [headers === undefined ? "body" : "headers", "needs a status to be answered with"];
  const sent = truncate !== undefined || drip !== undefined;
  if (!kind && !sent && delayMs === undefined)
    return [
      "fault",
      `must do something: ${Object.keys(kinds)
        .filter((name) => name !== "rewrite")
        .join(", ")}, delayMs, truncate or drip`,
    ];
  if (sent && (status === "reset" || (kind !== undefined && kinds[kind].moment === "before")))
    return [truncate === undefined ? "drip" : "truncate", `needs an answer, which ${kind} does not give`];
  if (sent && kind === undefined && when === "before") return ["when", "must be after: the answer is not there before"];
  const { moment } = kind ? kinds[kind] : { moment: "either" };
  if (when !== undefined && kind !== undefined && choosesMoment(kind)) return ["when", `must be left out with ${kind}`];
  if (when !== undefined && moment !== "either" && when !== moment) return ["when", `must be ${moment} with ${kind}`];
  const row = operation === undefined ? undefined : operationsById.get(operation);
  if (row && kind && !kinds[kind].concerns(row)) return ["operation", `must be one that ${kind} applies to`];
  return undefined;
}

/** A fault in its external form. */
export const declaredFault = fields.check(({ value, issues }) => {
  const [field, message] = contradiction(value) ?? [];
  if (field !== undefined)
    issues.push({ code: "custom", message: message ?? "", path: field === "fault" ? [] : [field], input: value });
});

type Declared = z.infer<typeof fields>;

/**
 * A fault: the requests it applies to, and its effect. docs/service-faults.md describes every field. `operation`, `org` (slug),
 * `path` (a part of it), `nth` (counted from 1 since the fault was planned) and `times` select the requests; the other fields
 * give the effect.
 */
export interface Fault extends Readonly<Omit<Declared, "body">> {
  /** JSON, or text that is sent as it is. */
  readonly body?: unknown;
  /** Rewrites the answer with code; only for tests in the same process. */
  readonly rewrite?: (body: unknown) => unknown;
  /** Delays the request or its answer until the promise resolves; only for tests in the same process. */
  readonly until?: () => Promise<unknown>;
}

/** A planned fault with its id. */
export interface PlannedFault {
  readonly id: string;
  readonly fault: Fault;
  /** Number of requests so far that it could have applied to. */
  seen: number;
}

/** The properties of a request that decide whether a fault applies. */
export interface Met {
  readonly row: Operation;
  /** Slug of the caller's organization. */
  readonly org: string;
  readonly path: string;
  /** Whether the request is for something on this host. */
  readonly isForHost: (host: Host) => boolean;
}

/** The moment at which a fault acts on an operation. */
export function momentOf(fault: Fault, row: Operation): Moment {
  const [kind] = kindsOf(fault);
  if (kind === "hiddenForMs") return listsMachines(row) ? "after" : "before";
  if (kind === "unreachableHost") return worksWithoutHost(row) ? "after" : "before";
  const moment = kind ? kinds[kind].moment : "either";
  if (moment !== "either") return moment;
  const sent = kind === undefined && (fault.truncate !== undefined || fault.drip !== undefined);
  return fault.when ?? (sent ? "after" : "before");
}

/** The last request that a fault applies to. New Machines are hidden, and a host is unreachable, until the fault is removed. */
function lastOf(fault: Fault): number {
  const { nth = 1, times } = fault;
  const many = times ?? (kindsOf(fault).some(choosesMoment) ? "always" : 1);
  return many === "always" ? Infinity : nth + many - 1;
}

const concerns = (fault: Fault, { row, org, path, isForHost }: Met): boolean =>
  (fault.operation === undefined || fault.operation === row.id) &&
  (fault.org === undefined || fault.org === org) &&
  (fault.path === undefined || path.includes(fault.path)) &&
  kindsOf(fault).every((kind) => kinds[kind].concerns(row)) &&
  (fault.unreachableHost === undefined || isForHost(fault.unreachableHost));

/** The planned faults. */
export class Faults {
  #plans: PlannedFault[] = [];
  #planned = 0;
  #met = 0;
  #changed = (): void => {};
  /** Whether people may change them: an admin listener is on. */
  isOpen = false;

  /** Calls back after a fault was planned or removed. */
  onChange(changed: () => void): void {
    this.#changed = changed;
  }

  /** True when no fault is planned; checked for every request. */
  get none(): boolean {
    return this.#plans.length === 0;
  }

  /** Number of requests with an injected fault since the start. */
  get met(): number {
    return this.#met;
  }

  /** The faults that are still planned, oldest first. */
  get planned(): readonly PlannedFault[] {
    return this.#plans;
  }

  /** Plans faults and returns their ids. */
  add(...faults: Fault[]): string[] {
    const plans = faults.map((fault) => ({ id: `fault-${++this.#planned}`, fault, seen: 0 }));
    this.#plans.push(...plans);
    this.#changed();
    return plans.map(({ id }) => id);
  }

  /** Removes a fault; false when there is none with that id. */
  remove(id: string): boolean {
    const before = this.#plans.length;
    this.#plans = this.#plans.filter((plan) => plan.id !== id);
    this.#changed();
    return this.#plans.length < before;
  }

  clear(): void {
    this.#plans = [];
    this.#changed();
  }

  /** The fault for this request at this moment, if any; counts the request. */
  take(met: Met, moment: Moment): PlannedFault | undefined {
    let hit: PlannedFault | undefined;
    for (const plan of this.#plans.filter(({ fault }) => concerns(fault, met) && momentOf(fault, met.row) === moment)) {
      plan.seen++;
      if (!hit && plan.seen >= (plan.fault.nth ?? 1)) hit = plan;
      if (plan.seen >= lastOf(plan.fault)) this.#plans = this.#plans.filter((other) => other !== plan);
    }
    if (hit) this.#met++;
    return hit;
  }
}

// The entries of the history: what was asked, what happened to Machines, and rollouts. They hold no body, no query value, no
// nonce, no token, and no value of a secret.
import type { Exit } from "./exits.ts";

/** Who sent a request. */
export interface Sender {
  /** Id of its token. */
  readonly token: string;
  /** Name that the token was given; null without one. */
  readonly tokenName: string | null;
  /** The resource or function of a Pulumi program, as its client says: a URN, or the last parts of one. Null if it does not say. */
  readonly urn: string | null;
  /** Id of the run of Pulumi (`up`, `destroy` …) that sent it; null for other clients. */
  readonly update: string | null;
}

interface Common {
  /** Milliseconds since 1970, by the clock of the service. */
  readonly at: number;
  /** Slug of the organization. */
  readonly org: string;
  /** Name of the App; null for what concerns none. */
  readonly app: string | null;
  /** Id of the Machine; null for what concerns none. */
  readonly machine: string | null;
}

/** A request that changed something, or tried to. */
export interface RequestEntry extends Common, Sender {
  readonly kind: "request";
  /** Id of the request, as in the header `svc-request-id`. */
  readonly id: string;
  /** `machines.create` and the like. */
  readonly operation: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Null when the connection was closed before the whole answer was sent. */
  readonly status: number | null;
  /** Milliseconds from its arrival to its answer. */
  readonly ms: number;
  /** What it changed, if its path does not say. */
  readonly about: string | null;
}

/** The result of a Machine's checks; null for a Machine without any, and for one that does not run. */
export type Checks = "passing" | "warning" | "critical" | null;

/** What happened to a Machine. */
export interface EventEntry extends Common {
  readonly kind: "event";
  readonly machine: string;
  readonly name: string;
  readonly region: string;
  /** Name of its fleet; null without one. */
  readonly fleet: string | null;
  /** Its phase in the fleet; null without one. */
  readonly phase: string | null;
  /** As in the interface: `launch`, `update`, `exit`; and `checks`. */
  readonly type: string;
  /** The state that it entered, or was in. */
  readonly status: string;
  /** `user` or `flyd`. */
  readonly source: string;
  readonly version: string;
  readonly image: string;
  /** The image that an update replaced. */
  readonly from?: string;
  readonly checks: Checks;
  readonly exit?: Exit;
  /** The request that caused it, if one did at once. */
  readonly by?: Sender;
}

/** Names of the only Apps that are wanted, each with the moment in milliseconds since 1970 before which nothing is. */
export type OnlyApps = Readonly<Record<string, number>>;

/** Whether what happened in an App at a moment is wanted; without a restriction everything is. */
export const isShown = (only: OnlyApps | undefined, app: string | null, at: number): boolean =>
  only === undefined || (app !== null && Object.hasOwn(only, app) && at >= (only[app] ?? 0));

/** A Machine of a fleet when its rollout began. */
export interface Member {
  readonly machine: string;
  readonly name: string;
  readonly region: string;
}

/** How a rollout ended. */
export const results = ["succeeded", "failed", "rolled back", "waiting", "interrupted"] as const;

/** How a rollout ended. `waiting`: for its promotion. `interrupted`: its client was heard of no more. */
export type Result = (typeof results)[number];

/** What a client says about a rollout: that it has begun or continues in a phase, or how it ended. */
export interface RolloutEntry extends Common, Sender {
  readonly kind: "rollout";
  readonly fleet: string;
  readonly strategy: string | null;
  /** The image before; null if there was none. */
  readonly from: string | null;
  readonly to: string | null;
  /** What it does now: `rolling out` or `rolling back`. */
  readonly phase: string;
  /** Null while it is under way. */
  readonly result: Result | null;
  /** Why it ended so, in sentences; null if it succeeded. */
  readonly reason: string | null;
  /** The Machines of the fleet when it began; none afterwards. */
  readonly members: readonly Member[];
}

/** An entry. */
export type Entry = RequestEntry | EventEntry | RolloutEntry;

/** An entry as it is stored. */
export type Stored = Entry & {
  /** Starts at 1, and only grows. */
  readonly seq: number;
};

/** The type of a fleet in a URN, which the dynamic binding has below one of Pulumi. */
const fleetUrn = /machines:(?:index:)?Fleet::/;

/** Whether a URN is that of a fleet. */
export const isOfFleet = (urn: string | null): boolean => urn !== null && fleetUrn.test(urn);

// The answers of the console's own routes, as the page reads them. Everything else it gets is as in the contract.
import type { Rollout } from "../history/history.ts";
import type { Audited } from "../http/audit.ts";
import type { Relation, StatementAnswer } from "../runtime/postgresEngine.ts";
import type { MachineState } from "../states/machineStates.ts";
import type { Fresh } from "../time/costly.ts";
import type { machineFields, trafficFields } from "../usage/series.ts";
import type { Role } from "../store/roles.ts";

export type { Fresh };

/** A topic of changes: the organization, an App, a Machine, a cluster, the request log, the rollouts, or the faults. */
export type Topic =
  | "org"
  | `app:${string}`
  | `machine:${string}`
  | `cluster:${string}`
  | "requests"
  | "rollouts"
  | "faults";

/** What was measured at even times. */
export interface Courses<F extends string> extends Fresh {
  /** Milliseconds since 1970. */
  readonly times: readonly number[];
  /** Null where nothing was measured. */
  readonly courses: Readonly<Record<F, readonly (number | null)[]>>;
}

/** What a Machine has used. */
export interface MachineUsage extends Courses<keyof typeof machineFields> {
  /** Whether no program runs in it. */
  readonly isSimulated: boolean;
  /** Why nothing is known now, as a sentence; null if it is. */
  readonly problem: string | null;
  readonly isRunning: boolean;
  /** Whether network and disk are measured, too. */
  readonly hasNetwork: boolean;
  /** What it may use now: processors, and bytes of memory; null for one that is destroyed. */
  readonly limits: { readonly cpus: number; readonly memory: number } | null;
}

/** What the proxy has answered for an App or one of its routes. */
export interface TrafficUsage extends Courses<keyof typeof trafficFields> {
  /** The routes with requests, as `https://www.example.com`. */
  readonly routes: readonly string[];
  /** Whether there is no proxy. */
  readonly isSimulated: boolean;
}

/** The session of a request, as `GET /console/session` answers it. */
export interface SessionView {
  /** Slug of the organization. */
  readonly organization: string;
  /** The Apps that the token is restricted to; null for the whole organization. */
  readonly apps: readonly string[] | null;
  /** Owner of the leases that the token takes. */
  readonly owner: string;
  /** The role of the token itself. */
  readonly role: Role;
  /** Whether the session was opened with a code of this computer, not with a token. */
  readonly isOperator: boolean;
  /** Whether the session may operate Machines. */
  readonly canWrite: boolean;
  /** Name of the runtime. */
  readonly runtime: string;
  /** Whether past moments can be shown. */
  readonly hasPast: boolean;
  /** Milliseconds since 1970, by the clock of the service; null for a token that never expires. */
  readonly expiresAt: number | null;
  /** The time of the service, in milliseconds since 1970. */
  readonly now: number;
}

/** A text with times in it, which the page shows in the zone of its reader. */
export type Words = readonly (string | { readonly at: number })[];

/** Why a Machine does not do what it should. */
export interface Failure {
  /** `failed` for good; `looping` crashes again and again; `ended` by itself with a failure; `critical` runs with a critical check. */
  readonly kind: "failed" | "looping" | "ended" | "critical";
  /** Begins with a capital letter and ends with a full stop. */
  readonly cause: Words;
  /** The last lines that its process wrote, as its exit reports them. */
  readonly lines: readonly string[];
}

/** A kind of problem. */
export type ProblemKind =
  | "cluster failed"
  | "Machine failed"
  | "Machine loops"
  | "check critical"
  | "certificate failed"
  | "cluster full"
  | "region full"
  | "certificate ends"
  | "certificate waits"
  | "no backup";

/** A problem as a sentence: its subject, which leads to its place, and the rest. */
export interface Problem {
  readonly kind: ProblemKind;
  readonly subject: string;
  readonly text: Words;
  /** A cluster; or an App with the query of its view, or one of its Machines; or nothing for the service itself. */
  readonly place: {
    readonly app?: string;
    readonly machine?: string;
    readonly query?: string;
    readonly cluster?: string;
  };
}

/** The worst problems of an organization, and how many there are. */
export interface Problems {
  readonly total: number;
  readonly first: readonly Problem[];
}

/** Number of Machines by state. */
export type States = Readonly<Partial<Record<MachineState, number>>>;

/** Estimated cost per month. */
export interface Cost {
  readonly currency: string;
  readonly machines: number;
  readonly volumes: number;
  readonly addresses: number;
  readonly clusters: number;
}

/** An App in the overview. */
export interface AppSummary {
  readonly name: string;
  readonly network: string;
  readonly deleting: boolean;
  /** Milliseconds since 1970. */
  readonly created: number;
  readonly machines: number;
  readonly states: States;
  /** Machines by the result of their checks, without those that pass. */
  readonly critical: number;
  readonly warning: number;
  readonly regions: readonly string[];
  readonly volumes: number;
  readonly hostnames: number;
  /** Estimated cost per month of Machines, volumes and addresses. */
  readonly cost: number;
}

/** A region with the Machines of the organization and its capacity. */
export interface RegionSummary {
  readonly code: string;
  readonly name: string;
  readonly latitude: number;
  readonly longitude: number;
  /** Machines of the organization. */
  readonly machines: number;
  /** Machines of all organizations. */
  readonly used: number;
  readonly capacity: number;
}

/** A cluster in the overview. */
export interface ClusterSummary {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly region: string;
  readonly plan: string;
  readonly diskGb: number;
  readonly usedBytes: number | null;
  readonly version: string;
  readonly attachments: readonly string[];
}

/** The overview of an organization. */
export interface Overview {
  readonly problems: Problems;
  readonly organization: { readonly slug: string; readonly name: string };
  readonly runtime: string;
  readonly version: string;
  readonly apps: readonly AppSummary[];
  readonly regions: readonly RegionSummary[];
  readonly clusters: readonly ClusterSummary[];
  readonly cost: Cost;
}

/** Machines of an App with the same region, image and phase. */
export interface Group {
  readonly region: string;
  readonly image: string;
  readonly fleet: string | null;
  readonly phase: string | null;
  readonly states: States;
  readonly cordoned: number;
  readonly critical: number;
}

/** Part of an App that may be long: its first members, and how many there are. */
export interface Some<T> {
  readonly total: number;
  readonly first: readonly T[];
}

/** A Machine in a list. */
export interface MachineItem {
  readonly id: string;
  readonly name: string;
  readonly region: string;
  readonly state: MachineState;
  readonly image: string;
  readonly version: string;
  readonly cordoned: boolean;
  readonly checks: "passing" | "warning" | "critical" | null;
  readonly fleet: string | null;
  readonly size: string;
  readonly updated: number;
}

/** A window of the Machines of an App. */
export interface MachineWindow {
  /** Number of Machines that the filters leave. */
  readonly total: number;
  readonly offset: number;
  readonly rows: readonly MachineItem[];
}

/** Fields of an object that a comparison shows. */
export type Fields = Readonly<Record<string, string | number | null>>;

/** How an object of a past moment differs from now. */
export type Change = "changed" | "deleted" | "created" | "unchanged";

/** One part of an App, at a moment and now. */
export interface ComparedPart {
  readonly counts: Readonly<Record<Change, number>>;
  /** The first ones, what differs before what does not. */
  readonly rows: readonly {
    readonly key: string;
    readonly change: Change;
    readonly was: Fields | null;
    readonly is: Fields | null;
  }[];
}

/** Parts of an App that are compared. */
export type PastPart = "machines" | "volumes" | "addresses" | "certificates" | "secrets" | "secretKeys" | "clusters";

/** An App as it was at a moment, and the difference to now. */
export interface PastView {
  /** Whether the App existed then, and does now. Another App of the same name is `replaced`. */
  readonly app: Exclude<Change, "changed"> | "replaced";
  readonly parts: Readonly<Record<PastPart, ComparedPart>>;
}

/** An answered request, without what only the service needs. */
export type LoggedRequest = Omit<Audited, "org" | "nonce" | "lease">;

/** The request log after an entry. */
export interface RequestLog {
  /** Identifies the run of the service: each one counts from 1. */
  readonly run: string;
  readonly last: number;
  readonly entries: readonly LoggedRequest[];
}

/** A fault that is switched on. */
export interface ActiveFault {
  readonly id: string;
  /** Number of requests that it concerned. */
  readonly seen: number;
  readonly fault: Readonly<Record<string, unknown>>;
  /** The latest requests that it hit. */
  readonly hits: readonly LoggedRequest[];
}

/** The faults. Those of the browser's session may be changed only by the operator while the admin listener is on. */
export interface FaultList {
  readonly isOn: boolean;
  readonly faults: readonly ActiveFault[];
  /** The latest requests that faults hit which are off again, newest first. */
  readonly before: readonly LoggedRequest[];
  readonly operations: readonly string[];
}

/** The answer of a query, and how long it took. */
export interface QueryAnswer extends StatementAnswer {
  readonly ms: number;
}

/** The tables and views of a database that a user sees. */
export interface TableList {
  readonly tables: readonly Relation[];
  /** Whether there are more. */
  readonly isMore: boolean;
}

/** Rollouts, newest first, as `GET /local/rollouts` answers them. */
export interface RolloutList {
  readonly rollouts: readonly Rollout[];
}

/** A result of the search, and where it leads. */
export interface FoundItem {
  readonly text: string;
  /** More about it, to tell it from others. */
  readonly about: string;
  /** An App with the query of its view, or one of its Machines; or one of the others. */
  readonly place: {
    readonly app?: string;
    readonly machine?: string;
    readonly query?: string;
    readonly cluster?: string;
    readonly rollout?: string;
    readonly request?: string;
    /** Part of the URNs of a stack. */
    readonly requestsOf?: string;
    readonly rolloutsOf?: string;
  };
}

/** Results of one kind, the best first. */
export interface FoundGroup {
  readonly kind: "App" | "Machine" | "hostname" | "cluster" | "rollout" | "stack" | "request";
  readonly items: readonly FoundItem[];
  readonly isMore: boolean;
}

/** The results of a search. */
export interface SearchView {
  readonly groups: readonly FoundGroup[];
}

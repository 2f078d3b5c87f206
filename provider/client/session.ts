// What the users of one service share: the connection for the whole process, and the memory of one run.
import { CircuitBreaker } from "./circuitBreaker.ts";
import type { Clock } from "./clock.ts";
import { Memo } from "./memo.ts";
import { RateLimiter } from "./rateLimiter.ts";
import { StaleReads } from "./staleReads.ts";

/** What stays true about a service from one run to the next. */
export interface Connection {
  readonly rateLimiter: RateLimiter;
  readonly circuitBreaker: CircuitBreaker;
  readonly staleReads: StaleReads;
}

/** The connection of a process that has sent nothing yet. */
export const newConnection = (clock: Clock): Connection => ({
  rateLimiter: new RateLimiter(clock),
  circuitBreaker: new CircuitBreaker(clock),
  staleReads: new StaleReads(),
});

/** What one run has learned about a service. */
export interface Session extends Connection {
  /** Apps and clusters that answered: proof that endpoint and organization are right (R8). */
  readonly seen: Set<string>;
  /** Apps and clusters that this run has deleted. An earlier run's deletion proves nothing: the name may be in use again. */
  readonly deleted: Set<string>;
  /** Lists that reads are served from, by key; see listCache.ts. */
  readonly lists: Map<string, { readonly asked: number; served: number; readonly list: Promise<readonly unknown[]> }>;
  /** Answers that stay the same during a run, by request. */
  readonly answers: Memo;
  /** Whether the service shows rollouts. */
  showsRollouts: boolean;
  /** The reports of rollouts so far. */
  reports: Promise<void>;
}

/** The memory of a run that has sent nothing yet. */
export const newSession = (connection: Connection): Session => ({
  ...connection,
  seen: new Set(),
  deleted: new Set(),
  lists: new Map(),
  answers: new Memo(),
  showsRollouts: false,
  reports: Promise.resolve(),
});

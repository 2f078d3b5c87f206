// State that one client has learned about its service. All users of the client share it.
import { CircuitBreaker } from "./circuitBreaker.ts";
import type { Clock } from "./clock.ts";
import { RateLimiter } from "./rateLimiter.ts";
import { StaleReads } from "./staleReads.ts";

/** The memory of one client. */
export interface Session {
  /** Apps and clusters that answered: proof that endpoint and organization are right (R8). */
  readonly seen: Set<string>;
  /** Apps and clusters that this client has deleted. */
  readonly deleted: Set<string>;
  /** Lists that reads are served from, by key; see listCache.ts. */
  readonly lists: Map<string, { readonly asked: number; served: number; readonly list: Promise<readonly unknown[]> }>;
  /** Answers that stay the same during a run, by request; see cached.ts. */
  readonly answers: Map<string, Promise<unknown>>;
  readonly rateLimiter: RateLimiter;
  readonly circuitBreaker: CircuitBreaker;
  readonly staleReads: StaleReads;
}

/** The memory of a client that has sent nothing yet. */
export const newSession = (clock: Clock): Session => ({
  seen: new Set(),
  deleted: new Set(),
  lists: new Map(),
  answers: new Map(),
  rateLimiter: new RateLimiter(clock),
  circuitBreaker: new CircuitBreaker(clock),
  staleReads: new StaleReads(),
});

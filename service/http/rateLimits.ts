// Limits how often a client may send requests (docs/interface.md#rate-limits): a token bucket for each action and its subject.
import type { Operation } from "../../api/operation.ts";
import type { Clock } from "../time/clock.ts";
import { Refusal } from "../refusal.ts";
import type { Caller } from "../rules/rule.ts";

interface Limit {
  readonly perSecond: number;
  readonly burst: number;
}

const usual: Limit = { perSecond: 1, burst: 3 };

const limits: Readonly<Record<string, Limit>> = {
  "machines.get": { perSecond: 5, burst: 10 },
  // ASSUMED: all 100 deletions of Apps per minute may come at once.
  "apps.delete": { perSecond: 100 / 60, burst: 100 },
};

/** Names of the sets of limits: none, or those the platform documents. */
export const rateLimitProfiles = ["off", "documented"] as const;

/** Name of a set of limits. */
export type RateLimitProfile = (typeof rateLimitProfiles)[number];

interface Bucket {
  readonly tokens: number;
  readonly at: number;
}

// The bucket that was unused longest is dropped. By then it is full again, unless a client requests thousands of missing
// objects per second.
const mostBuckets = 10_000;

/**
 * The subject that an action is counted for. ASSUMED: a rate limit counts per Machine or App, else per cluster, else per organization;
 * the deletion of an App counts for the organization, because an App is deleted only once.
 */
function subjectOf(
  { id }: Operation,
  { machine_id, app_name, postgres_cluster_id }: Readonly<Record<string, unknown>>,
): string {
  const named = id === "apps.delete" ? undefined : (machine_id ?? app_name ?? postgres_cluster_id);
  return typeof named === "string" ? named : "";
}

/** Counts requests and refuses those beyond the limits. */
export class RateLimits {
  readonly #clock: Clock;
  readonly #profile: RateLimitProfile;
  readonly #buckets = new Map<string, Bucket>();
  #limited = 0;

  constructor(clock: Clock, profile: RateLimitProfile) {
    this.#clock = clock;
    this.#profile = profile;
  }

  /** Number of refused requests. */
  get limited(): number {
    return this.#limited;
  }

  /** Number of buckets in memory. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes a token for a request, or refuses it with 429 and the seconds until there is one. */
  take(row: Operation, params: unknown, { org }: Pick<Caller, "org">): void {
    if (this.#profile === "off") return;
    const { perSecond, burst } = limits[row.id] ?? usual;
    // Keyed by organization, so that requests refused with 403 do not use up the limit of the owner.
    const key = `${row.id} ${org} ${subjectOf(row, params as Readonly<Record<string, unknown>>)}`;
    const now = this.#clock.elapsed();
    const before = this.#buckets.get(key);
    const tokens = before ? Math.min(burst, before.tokens + ((now - before.at) / 1000) * perSecond) : burst;
    this.#buckets.delete(key);
    this.#buckets.set(key, { tokens: tokens < 1 ? tokens : tokens - 1, at: now });
    if (this.#buckets.size > mostBuckets) this.#forgetOldest();
    if (tokens >= 1) return;
    this.#limited++;
    const seconds = Math.max(1, Math.ceil((1 - tokens) / perSecond));
    throw new Refusal(429, { error: "rate limit exceeded" }, { "retry-after": String(seconds) });
  }

  #forgetOldest(): void {
    const [oldest] = this.#buckets.keys();
    if (oldest !== undefined) this.#buckets.delete(oldest);
  }
}

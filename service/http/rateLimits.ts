// How often a client may ask (docs/interface.md#rate-limits): a bucket of tokens for every action and what it acts on.
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
  // ASSUMED: all of the 100 deletions of Apps a minute may come at once.
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

// Buckets are forgotten in the order of their last use. The oldest of so many has had time to fill, unless somebody asks
// for things that are not there, thousands a second.
const mostBuckets = 10_000;

/**
 * What an action is counted for. ASSUMED: a rate limit counts by Machine or App, where there is neither by cluster, else by organization;
 * an App's deletion counts for the organization, since an App is deleted once.
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

  /** Requests that were refused. */
  get limited(): number {
    return this.#limited;
  }

  /** Buckets that are remembered. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes one token for a request, or refuses it with 429 and the seconds after which there is one. */
  take(row: Operation, params: unknown, { org }: Pick<Caller, "org">): void {
    if (this.#profile === "off") return;
    const { perSecond, burst } = limits[row.id] ?? usual;
    // With the organization, so that strangers who ask in vain take nothing away from whom it belongs to.
    const key = `${row.id} ${org} ${subjectOf(row, params as Readonly<Record<string, unknown>>)}`;
    const now = this.#clock.now();
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

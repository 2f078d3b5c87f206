// Limits how often a client may send requests (docs/interface.md#rate-limits): a token bucket for each action and its subject, and
// for each quota of requests.
import type { Operation } from "../../api/operation.ts";
import type { Clock } from "../time/clock.ts";
import { Refusal } from "../refusal.ts";
import { quotaText } from "../rules/quotas.ts";
import type { Caller } from "../rules/rule.ts";
import type { RequestQuotas } from "./requestQuotas.ts";

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

/** A bucket that a request takes a token from, and what is said if it is empty. */
interface Taken extends Limit {
  readonly key: string;
  readonly error: string;
}

/** Counts requests and refuses those beyond the limits. */
export class RateLimits {
  readonly #clock: Clock;
  readonly #profile: RateLimitProfile;
  readonly #quotas: Pick<RequestQuotas, "of"> | undefined;
  readonly #buckets = new Map<string, Bucket>();
  #limited = 0;

  constructor(clock: Clock, profile: RateLimitProfile, quotas?: Pick<RequestQuotas, "of">) {
    this.#clock = clock;
    this.#profile = profile;
    this.#quotas = quotas;
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
  take(row: Operation, params: unknown, caller: Pick<Caller, "org" | "apps" | "network">): void {
    const named = params as Readonly<Record<string, unknown>>;
    const quotas = this.#quotas?.of(caller, named["app_name"]) ?? [];
    if (this.#profile === "off" && quotas.length === 0) return;
    const all: Taken[] = quotas.map(({ key, holder, ...limit }) => ({
      ...{ ...limit, key, error: `rate limit exceeded: ${quotaText(holder, "requests", limit.perSecond)}` },
    }));
    // Keyed by organization, so that requests refused with 403 do not use up the limit of the owner.
    if (this.#profile !== "off")
      all.push({
        ...(limits[row.id] ?? usual),
        key: `${row.id} ${caller.org} ${subjectOf(row, named)}`,
        error: "rate limit exceeded",
      });
    this.#takeAll(all);
  }

  /** Takes a token of each, or none: what one limit refuses does not use up another. */
  #takeAll(all: readonly Taken[]): void {
    const now = this.#clock.elapsed();
    const filled = all.map((taken) => ({ ...taken, tokens: this.#tokensOf(taken, now) }));
    const empty = filled.find(({ tokens }) => tokens < 1);
    for (const { key, tokens } of filled) {
      this.#buckets.delete(key);
      this.#buckets.set(key, { tokens: empty ? tokens : tokens - 1, at: now });
      if (this.#buckets.size > mostBuckets) this.#forgetOldest();
    }
    if (!empty) return;
    this.#limited++;
    const waits = filled.map(({ tokens, perSecond }) => Math.ceil((1 - tokens) / perSecond));
    throw new Refusal(429, { error: empty.error }, { "retry-after": String(Math.max(1, ...waits)) });
  }

  #tokensOf({ key, perSecond, burst }: Taken, now: number): number {
    const before = this.#buckets.get(key);
    return before ? Math.min(burst, before.tokens + ((now - before.at) / 1000) * perSecond) : burst;
  }

  #forgetOldest(): void {
    const [oldest] = this.#buckets.keys();
    if (oldest !== undefined) this.#buckets.delete(oldest);
  }
}

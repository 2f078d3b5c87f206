// Counts the requests that the proxy answers, by App and host name, and their times.

/** What was answered since the last look. */
export interface Answers {
  readonly requests: number;
  /** Those answered with a status of 500 or more. */
  readonly errors: number;
  /** Milliseconds within which half and 95 % were answered; null if no request had a time. */
  readonly median: number | null;
  readonly p95: number | null;
}

/** An answer of the proxy. */
export interface Answered {
  /** Id of the App. */
  readonly app: string;
  /** `https://www.example.com`. */
  readonly route: string;
  readonly status: number;
  /** Milliseconds; undefined for a connection that stays open, whose time says nothing about an answer. */
  readonly took: number | undefined;
}

/** Names of an App that are counted; clients choose the names below a wildcard. */
const mostRoutes = 50;
/** The route of all other names. */
export const otherRoutes = "other names";

// Bounds of the times, each a tenth above the one before, so that a time is exact to a tenth: from 0.1 ms to about 20 minutes.
const least = 0.1;
const growth = Math.log(1.1);
const buckets = 172;

/** The bucket of a time. */
const bucketOf = (ms: number): number =>
  Math.min(buckets - 1, Math.max(0, Math.ceil(Math.log(Math.max(ms, least) / least) / growth)));

/** Upper bound of a bucket in milliseconds. */
const boundOf = (bucket: number): number => least * Math.exp(bucket * growth);

class Counts {
  requests = 0;
  errors = 0;
  readonly #times = new Uint32Array(buckets);
  #timed = 0;

  add({ status, took }: Answered): void {
    this.requests++;
    if (status >= 500) this.errors++;
    if (took === undefined) return;
    const bucket = bucketOf(took);
    this.#times[bucket] = (this.#times[bucket] ?? 0) + 1;
    this.#timed++;
  }

  /** Milliseconds within which this part of them was answered. */
  within(part: number): number | null {
    let left = Math.ceil(this.#timed * part);
    if (left === 0) return null;
    const bucket = this.#times.findIndex((n) => (left -= n) <= 0);
    return Math.round(boundOf(bucket) * 100) / 100;
  }
}

/** The requests since the last look. */
export class Traffic {
  /** By App, then by route; that of the empty name has all of the App. */
  #counts = new Map<string, Map<string, Counts>>();
  readonly #seen: (answered: Answered) => void;

  /** `seen` is called with every answer. */
  constructor(seen: (answered: Answered) => void = () => {}) {
    this.#seen = seen;
  }

  add(answered: Answered): void {
    const { app, route } = answered;
    this.#seen(answered);
    const routes = this.#counts.get(app) ?? new Map<string, Counts>();
    this.#counts.set(app, routes);
    const known = routes.has(route) || routes.size <= mostRoutes;
    for (const name of ["", known ? route : otherRoutes]) {
      const counts = routes.get(name) ?? new Counts();
      routes.set(name, counts);
      counts.add(answered);
    }
  }

  /** Takes what was counted, and begins again. */
  take(): { readonly app: string; readonly route: string; readonly answers: Answers }[] {
    const counted = this.#counts;
    this.#counts = new Map();
    return [...counted].flatMap(([app, routes]) =>
      [...routes].map(([route, counts]) => ({
        app,
        route,
        answers: {
          requests: counts.requests,
          errors: counts.errors,
          median: counts.within(0.5),
          p95: counts.within(0.95),
        },
      })),
    );
  }
}

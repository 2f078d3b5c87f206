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
/** Number of buckets. */
export const buckets = 172;

/** The bucket of a time. */
const bucketOf = (ms: number): number =>
  Math.min(buckets - 1, Math.max(0, Math.ceil(Math.log(Math.max(ms, least) / least) / growth)));

/** Upper bound of a bucket in milliseconds. */
const boundOf = (bucket: number): number => least * Math.exp(bucket * growth);

const sumOf = (numbers: Iterable<number>): number => {
  let sum = 0;
  for (const n of numbers) sum += n;
  return sum;
};

/** What a proxy has counted at a route, for the service that adds it to its own. */
export interface RouteCounts {
  /** Id of the App. */
  readonly app: string;
  readonly route: string;
  /** Requests by status; 0 has those whose client left before the answer. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Answers by the number of the bucket of their time. */
  readonly times: Readonly<Record<string, number>>;
}

/** Counts answers and their times for metrics. */
export interface Counting {
  /** Answers of an App with a status. */
  answered(app: string, status: number, n: number): void;
  /** Answers of an App that took these seconds. */
  took(app: string, seconds: number, n: number): void;
}

class Counts {
  readonly #statuses = new Map<number, number>();
  readonly #times = new Uint32Array(buckets);

  /** Number of answers with a status of at least this. */
  from(least: number): number {
    return sumOf([...this.#statuses].map(([status, n]) => (status >= least ? n : 0)));
  }

  answered(status: number, n: number): void {
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + n);
  }

  took(bucket: number, n: number): void {
    this.#times[bucket] = (this.#times[bucket] ?? 0) + n;
  }

  /** All of it, as {@link RouteCounts} has it. */
  get all(): Pick<RouteCounts, "statuses" | "times"> {
    const times = [...this.#times.entries()].filter(([, n]) => n > 0);
    return { statuses: Object.fromEntries(this.#statuses), times: Object.fromEntries(times) };
  }

  /** Milliseconds within which this part of them was answered. */
  within(part: number): number | null {
    let left = Math.ceil(sumOf(this.#times) * part);
    if (left === 0) return null;
    const bucket = this.#times.findIndex((n) => (left -= n) <= 0);
    return Math.round(boundOf(bucket) * 100) / 100;
  }
}

/** The requests since the last look. */
export class Traffic {
  /** By App, then by route; that of the empty name has all of the App. */
  #counts = new Map<string, Map<string, Counts>>();
  readonly #counting: Counting | undefined;

  /** `counting` gets every answer, too. */
  constructor(counting?: Counting) {
    this.#counting = counting;
  }

  add({ app, route, status, took }: Answered): void {
    this.#counting?.answered(app, status, 1);
    if (took !== undefined) this.#counting?.took(app, took / 1000, 1);
    for (const counts of this.#of(app, route)) {
      counts.answered(status, 1);
      if (took !== undefined) counts.took(bucketOf(took), 1);
    }
  }

  /** Adds what another proxy has counted. */
  merge({ app, route, statuses, times }: RouteCounts): void {
    const all = this.#of(app, route);
    for (const [status, n] of Object.entries(statuses)) {
      this.#counting?.answered(app, Number(status), n);
      for (const counts of all) counts.answered(Number(status), n);
    }
    for (const [bucket, n] of Object.entries(times)) {
      this.#counting?.took(app, boundOf(Number(bucket)) / 1000, n);
      for (const counts of all) counts.took(Number(bucket), n);
    }
  }

  /** Takes what was counted, and begins again. */
  take(): { readonly app: string; readonly route: string; readonly answers: Answers }[] {
    return this.#takeAll().map(([app, route, counts]) => ({
      app,
      route,
      answers: {
        requests: counts.from(0),
        errors: counts.from(500),
        median: counts.within(0.5),
        p95: counts.within(0.95),
      },
    }));
  }

  /** Takes what was counted, for {@link merge} elsewhere. */
  takeCounts(): RouteCounts[] {
    return this.#takeAll()
      .filter(([, route]) => route !== "")
      .map(([app, route, counts]) => ({ app, route, ...counts.all }));
  }

  /** The counts of an App, and of a route of it. */
  #of(app: string, route: string): readonly Counts[] {
    const routes = this.#counts.get(app) ?? new Map<string, Counts>();
    this.#counts.set(app, routes);
    const known = routes.has(route) || routes.size <= mostRoutes;
    return ["", known ? route : otherRoutes].map((name) => {
      const counts = routes.get(name) ?? new Counts();
      routes.set(name, counts);
      return counts;
    });
  }

  #takeAll(): [app: string, route: string, counts: Counts][] {
    const counted = this.#counts;
    this.#counts = new Map();
    return [...counted].flatMap(([app, routes]) =>
      [...routes].map(([route, counts]): [string, string, Counts] => [app, route, counts]),
    );
  }
}

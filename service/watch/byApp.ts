// Numbers by App. Only Apps of the operator's organization are named: its tokens read the metrics, and do not see what others have.
// Their number has a bound: a label for each of many would cost the one who stores them more than the service.
import type { Store } from "../store/database.ts";
import { operatorOrg } from "../store/tokens.ts";
import { Histogram } from "./exposition.ts";

// ASSUMED: metrics name the first 500 Apps of organization `personal`; those that are created while there are so many share one label
// with the Apps of other organizations, until the service starts again.
export const mostApps = 500;

/** The label of all other Apps, which is no name that an App can have. */
export const otherApps = "other Apps";

interface Named {
  readonly id: string;
  readonly name: string;
  readonly number: number;
}

type Reading = Pick<Store, "all" | "get">;

/** The Apps that metrics name. An App keeps its label: a counter that moved to another one would be an increase there. */
export class NamedApps {
  readonly #store: Reading;
  readonly #most: number;
  readonly #named = new Map<string, Named>();
  /** The number of the last App that was looked at. Those up to it that have no name get none. */
  #lookedAt = 0;

  constructor(store: Reading, most: number) {
    this.#store = store;
    this.#most = most;
  }

  /** Apps with a name of their own, by id. */
  get all(): ReadonlyMap<string, Named> {
    return this.#named;
  }

  /** Looks which Apps there are, and returns the ids of those that had a name and are gone. */
  look(): readonly string[] {
    const ids = JSON.stringify([...this.#named.keys()]);
    const left = this.#store.all<{ id: string }>(
      "SELECT a.id FROM json_each(?) w JOIN apps a ON a.id = w.value WHERE a.deleting < 2",
      ids,
    );
    const there = new Set(left.map(({ id }) => id));
    const gone = [...this.#named.keys()].filter((id) => !there.has(id));
    for (const id of gone) this.#named.delete(id);
    const sql = `SELECT a.id, a.name, a.number FROM orgs o JOIN apps a ON a.org = o.id
      WHERE o.slug = ? AND a.number > ? AND a.deleting < 2 ORDER BY a.number LIMIT ? + 0`;
    const free = this.#most - this.#named.size;
    for (const app of this.#store.all<Named>(sql, operatorOrg, this.#lookedAt, free)) this.#named.set(app.id, app);
    this.#lookedAt = this.#store.get<{ last: number | null }>("SELECT max(number) AS last FROM apps")?.last ?? 0;
    return gone;
  }
}

/** What can be added up. */
interface Sum<Self> {
  add(other: Self): void;
}

/** Counters by App. */
export class ByApp<C extends Sum<C>> {
  readonly #apps: NamedApps;
  readonly #make: () => C;
  readonly #counts = new Map<string, C>();
  readonly #others: C;

  constructor(apps: NamedApps, make: () => C) {
    this.#apps = apps;
    this.#make = make;
    this.#others = make();
  }

  /** The counters of an App, by its id. */
  of(app: string): C {
    const known = this.#counts.get(app);
    if (known) return known;
    const made = this.#make();
    this.#counts.set(app, made);
    return made;
  }

  /** Whether there are more Apps than are ever named, so that {@link settle} should be called. */
  get isMany(): boolean {
    return this.#counts.size > 4 * mostApps;
  }

  /** Adds those of unnamed Apps to all others, and forgets those of Apps that are gone. */
  settle(gone: readonly string[]): void {
    for (const id of gone) this.#counts.delete(id);
    for (const [id, counts] of this.#counts) {
      if (this.#apps.all.has(id)) continue;
      this.#others.add(counts);
      this.#counts.delete(id);
    }
  }

  /** The counters by label. */
  *labelled(): Generator<readonly [app: string, counts: C]> {
    for (const [id, { name }] of this.#apps.all) {
      const counts = this.#counts.get(id);
      if (counts) yield [name, counts];
    }
    yield [otherApps, this.#others];
  }
}

/** A number that only grows. */
export class Count {
  n = 0;

  add({ n }: { readonly n: number }): void {
    this.n += n;
  }
}

/** Classes of statuses; `cut` when the client left before the answer. */
export const statusClasses = ["1xx", "2xx", "3xx", "4xx", "5xx", "cut"] as const;

// Upper bounds in seconds. ASSUMED: an answer of an App that takes longer than 30 s is not measured more exactly.
const proxyBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** What the proxy has answered. */
export class Proxied {
  readonly #statuses = new Map<(typeof statusClasses)[number], number>();
  readonly times = new Histogram(proxyBounds);
  /** How many there were. */
  requests = 0;

  /** Counts answers; `status` is 0 if there was none. */
  count(status: number, n: number): void {
    this.#increase(statusClasses[Math.floor(status / 100) - 1] ?? "cut", n);
  }

  statusesOf(wanted: (typeof statusClasses)[number]): number {
    return this.#statuses.get(wanted) ?? 0;
  }

  add(other: Proxied): void {
    for (const [status, n] of other.#statuses) this.#increase(status, n);
    this.times.add(other.times);
  }

  #increase(status: (typeof statusClasses)[number], n: number): void {
    this.#statuses.set(status, this.statusesOf(status) + n);
    this.requests += n;
  }
}

/** What a service has counted since its start, by App. */
export class Counted {
  readonly apps: NamedApps;
  readonly #restarts: ByApp<Count>;
  readonly #proxied: ByApp<Proxied>;

  /** `most`: how many Apps are named. */
  constructor(store: Reading, most = mostApps) {
    this.apps = new NamedApps(store, most);
    this.#restarts = new ByApp(this.apps, () => new Count());
    this.#proxied = new ByApp(this.apps, () => new Proxied());
  }

  /** The restart policy has started a Machine of an App again. */
  restarted(app: string): void {
    this.#restarts.of(app).n++;
    if (this.#restarts.isMany) this.settle();
  }

  /** Proxies have answered for an App. */
  answered(app: string, status: number, n: number): void {
    this.#proxied.of(app).count(status, n);
    if (this.#proxied.isMany) this.settle();
  }

  /** Answers of an App took these seconds. A connection that stays open has no such time. */
  took(app: string, seconds: number, n: number): void {
    this.#proxied.of(app).times.observe(seconds, n);
  }

  /** Looks which Apps there are. */
  settle(): void {
    const gone = this.apps.look();
    this.#restarts.settle(gone);
    this.#proxied.settle(gone);
  }

  /** Restarts by the label of their App. Every App that is named has some, so that the first one is an increase. */
  get restarts(): readonly (readonly [app: string, n: number])[] {
    const counted = new Map([...this.#restarts.labelled()].map(([app, { n }]) => [app, n]));
    return [...[...this.apps.all.values()].map(({ name }) => name), otherApps].map((app) => [
      app,
      counted.get(app) ?? 0,
    ]);
  }

  /** Answers by the label of their App. */
  get proxied(): readonly (readonly [app: string, answers: Proxied])[] {
    return [...this.#proxied.labelled()].filter(([, { requests }]) => requests > 0);
  }
}

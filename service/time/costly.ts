// Answers about all Machines, of an organization or of the service: counting 100,000 rows takes a while, and other requests must not
// wait for each viewer's count. It is made in pieces, once for all who ask meanwhile, and is remembered until a change and then in
// proportion to its cost.

/** An answer that was expensive: the same question has a fresh one only after that many milliseconds. */
export interface Fresh {
  readonly freshIn?: number;
}

/** Milliseconds of work between which other requests are served. */
const pieceMs = 5;
/** An answer may use this share of the time: one that took 50 ms is counted again after 1 s. */
const share = 0.05;
// ASSUMED: answers of the console, and counts for metrics, that took less than 1 ms are never remembered after a change.
const cheapMs = 1;
/** Remembered answers, and the members of their lists: a client can ask for a thousand requests of the log in many ways. */
const mostKept = 100;
const mostMembers = 20_000;

const membersOf = (value: object): number =>
  Object.values(value).reduce((sum: number, one: unknown) => sum + (Array.isArray(one) ? one.length : 1), 0);

/** A clock in milliseconds that is never set back. */
type Now = () => number;

/** The work for one answer. */
export class Work {
  readonly #now: Now;
  readonly #nextTurn: () => Promise<void>;
  #spent = 0;
  #since: number;

  constructor(now: Now, nextTurn: () => Promise<void>) {
    this.#now = now;
    this.#nextTurn = nextTurn;
    this.#since = now();
  }

  /** Milliseconds that it took, without the pauses. */
  get ms(): number {
    return this.#spent + this.#now() - this.#since;
  }

  /** Whether other requests have waited long enough. */
  get isDue(): boolean {
    return this.#now() - this.#since >= pieceMs;
  }

  /** Lets other requests be served if they have waited long enough. Long work calls it after each small step. */
  async pause(): Promise<void> {
    if (!this.isDue) return;
    this.#spent += this.#now() - this.#since;
    await this.#nextTurn();
    this.#since = this.#now();
  }
}

interface Kept {
  readonly value: object;
  /** When it may be counted again. */
  readonly until: number;
  /** Stamp before it was counted; undefined if it depends on more than the stamp says. */
  readonly stamp: Stamp;
}

/** What an answer depends on: it is the same while its stamp is. Undefined if there is none now. */
type Stamp = number | string | undefined;

/** Remembers expensive answers for a time in proportion to their cost. */
export class Costly {
  readonly #kept = new Map<string, Kept>();
  readonly #running = new Map<string, Promise<object>>();
  /** Members of the lists of all remembered answers. */
  #members = 0;
  readonly #nextTurn: () => Promise<void>;
  readonly #now: Now;

  /** `nextTurn` resolves when other requests were served. */
  constructor(nextTurn: () => Promise<void>, now: Now = () => performance.now()) {
    this.#nextTurn = nextTurn;
    this.#now = now;
  }

  /**
   * The answer of that name, and in how many milliseconds there will be a fresh one if this one is not. An answer that depends only on
   * what has a stamp, such as the number of commits, stays fresh until the stamp changes. It is undefined while there is a change to commit.
   */
  async answer<T extends object>(
    name: string,
    count: (work: Work) => T | Promise<T>,
    stamp?: () => Stamp,
  ): Promise<T & Fresh> {
    const known = this.#kept.get(name);
    if (known?.stamp !== undefined && known.stamp === stamp?.()) return known.value as T;
    const rest = known === undefined ? 0 : known.until - this.#now();
    if (known !== undefined && rest > 0) return { ...(known.value as T), freshIn: Math.ceil(rest) };
    const running = this.#running.get(name) as Promise<T> | undefined;
    // It may have begun before the change that this question is about.
    if (running) return { ...(await running), freshIn: 0 };
    const begun = this.#count(name, count, stamp);
    this.#running.set(name, begun);
    try {
      return await begun;
    } finally {
      this.#running.delete(name);
    }
  }

  async #count<T extends object>(
    name: string,
    count: (work: Work) => T | Promise<T>,
    stamp: (() => Stamp) | undefined,
  ): Promise<T> {
    const before = stamp?.();
    const work = new Work(this.#now, this.#nextTurn);
    const value = await count(work);
    const { ms } = work;
    this.#forget(name);
    if (ms <= cheapMs) return value;
    const isSame = before === stamp?.();
    this.#kept.set(name, { value, until: this.#now() + ms / share, stamp: isSame ? before : undefined });
    this.#members += membersOf(value);
    for (const oldest of this.#kept.keys()) {
      // The latest one is expensive, so it is remembered whatever its size is.
      if ((this.#kept.size <= mostKept && this.#members <= mostMembers) || oldest === name) break;
      this.#forget(oldest);
    }
    return value;
  }

  #forget(name: string): void {
    const known = this.#kept.get(name);
    if (known && this.#kept.delete(name)) this.#members -= membersOf(known.value);
  }
}

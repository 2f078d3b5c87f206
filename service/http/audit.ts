// What was asked and what became of it, in memory: for tests that hold the service to its promises, and for whoever
// watches it through the admin listener. No body, no query value, no nonce and no token is in it.
import type { LeaseStanding } from "../rules/leases.ts";

/** A request that was answered, or whose connection a fault cut. */
export interface Audited {
  /** Counts from 1 and never skips. */
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Id of the request, as header `svc-request-id` has it. */
  readonly id: string;
  /** `machines.create` and the like; null when the path is none of the interface. */
  readonly operation: string | null;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Null when the connection was cut before the answer was whole. */
  readonly status: number | null;
  /** Slug of the caller's organization; null when the token is not known. */
  readonly org: string | null;
  /** Name the caller's leases are held under. */
  readonly owner: string | null;
  /** Whether a lease nonce was sent. */
  readonly nonce: boolean;
  /** Null for what leases do not guard, and for what was refused before it came to that. */
  readonly lease: LeaseStanding | null;
  /** Ids of the faults it met. */
  readonly faults: readonly string[];
}

/** Entries that are kept. */
export const auditKept = 100_000;

// Objects that are kept for long take several times the memory of their text: their own, and what the collector of
// JavaScript leaves unused for as long as it lets them grow. So an entry is text outside of its heap from the beginning.
const packBytes = 2 ** 18;

const fields = [
  "seq",
  "at",
  "id",
  "operation",
  "method",
  "path",
  "status",
  "org",
  "owner",
  "nonce",
  "lease",
  "faults",
] as const satisfies (keyof Audited)[];

/** Entries that follow one another: a line for each, with its values as JSON in the order of `fields`. */
class Pack {
  /** Number of the first of them. */
  readonly first: number;
  readonly #bytes: Buffer;
  #used = 0;

  constructor(first: number, bytes: number) {
    this.first = first;
    this.#bytes = Buffer.allocUnsafeSlow(bytes);
  }

  /** Adds a line, if there is room for it. */
  add(line: string): boolean {
    const length = Buffer.byteLength(line);
    if (this.#used + length > this.#bytes.length) return false;
    this.#used += this.#bytes.write(line, this.#used);
    return true;
  }

  entries(): Audited[] {
    const lines = this.#bytes.toString("utf8", 0, this.#used).split("\n").slice(0, -1);
    return lines.map((line) => {
      const values = JSON.parse(line) as unknown[];
      return Object.fromEntries(fields.map((field, i) => [field, values[i]])) as unknown as Audited;
    });
  }
}

/** The newest entries, oldest first. Every request is counted; entries are kept only after `keep()`. */
export class Audit {
  readonly #most: number;
  /** The last one is added to. */
  readonly #packs: Pack[] = [];
  #keeps = false;
  #last = 0;

  constructor(most = auditKept) {
    this.#most = most;
  }

  /** Keeps entries from now on. Without a reader they would only take memory. */
  keep(): void {
    this.#keeps = true;
  }

  /** Number of the newest entry; 0 before the first. */
  get last(): number {
    return this.#last;
  }

  /** Number of the oldest entry that is kept; one more than `last` when there is none. */
  get first(): number {
    return Math.max(this.#packs[0]?.first ?? this.#last + 1, this.#last - this.#most + 1);
  }

  add(entry: Omit<Audited, "seq">): void {
    const seq = ++this.#last;
    if (!this.#keeps) return;
    const whole: Audited = { seq, ...entry };
    const line = `${JSON.stringify(fields.map((field) => whole[field]))}\n`;
    if (this.#packs.at(-1)?.add(line)) return;
    const next = new Pack(seq, Math.max(packBytes, Buffer.byteLength(line)));
    next.add(line);
    this.#packs.push(next);
    while ((this.#packs[1]?.first ?? Number.POSITIVE_INFINITY) <= this.first) this.#packs.shift();
  }

  /** Entries that came after the one of that number, at most `limit` of them. */
  after(seq: number, limit = this.#most): Audited[] {
    const from = Math.max(seq + 1, this.first);
    const found: Audited[] = [];
    for (const [i, one] of this.#packs.entries()) {
      const isBefore = (this.#packs[i + 1]?.first ?? this.#last + 1) <= from;
      if (!isBefore && found.length < limit) found.push(...one.entries().filter((entry) => entry.seq >= from));
    }
    return found.slice(0, limit);
  }
}

// Records answered requests in memory, for tests and for clients of the admin listener. A record has no body, no query
// value, no nonce and no token.
import { oneLine } from "../../api/printable.ts";
import type { Note } from "../context.ts";
import type { LeaseStanding } from "../rules/leases.ts";

/** A request that was answered, or whose connection a fault or its client closed. */
export interface Audited {
  /** Starts at 1 and has no gaps. */
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Id of the request, as in the header `svc-request-id`. */
  readonly id: string;
  /** `machines.create` and the like; null when the path is not part of the interface. With the method `EVENT` what happened. */
  readonly operation: string | null;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Null when the connection was closed before the whole answer was sent. */
  readonly status: number | null;
  /** Slug of the caller's organization; null when the token is unknown. */
  readonly org: string | null;
  /** Owner of the leases that the caller takes. */
  readonly owner: string | null;
  /** Name of the caller's token; null if it has none, and when it is unknown. */
  readonly tokenName: string | null;
  /** Whether a lease nonce was sent. */
  readonly nonce: boolean;
  /** Null for operations that leases do not guard, and for requests refused before the check. */
  readonly lease: LeaseStanding | null;
  /** Ids of the faults injected into it. */
  readonly faults: readonly string[];
  /** Milliseconds from its arrival to its answer. */
  readonly ms: number;
  /**
   * The resource or function of a Pulumi program that sent it, as its client says: a URN, or the last parts of one. Null if it does
   * not say, and when the token is unknown.
   */
  readonly urn: string | null;
  /** What it changed, if its path does not say: a fault of the console with its id. Null for all others. */
  readonly about: string | null;
}

/** Number of entries kept for clients of the admin listener. */
export const auditKept = 100_000;

/** Number of entries kept for the console. */
export const consoleKept = 10_000;

/** Bytes. Ten thousands of entries may have one. */
const longestUrn = 500;

/** The resource that a client names in its header; null if it names none. A long one keeps its end, which has the name. */
export function urnIn(header: string | readonly string[] | undefined): string | null {
  if (typeof header !== "string" || header === "") return null;
  const line = oneLine(decoded(header));
  const bytes = Buffer.from(line);
  return bytes.length <= longestUrn
    ? line
    : `…${bytes.toString("utf8", bytes.length - longestUrn + 3).replace(/^\uFFFD+/, "")}`;
}

/** The run of Pulumi that a client names in its header; null if it names none, or none that is an id. */
export const updateIn = (header: string | readonly string[] | undefined): string | null =>
  typeof header === "string" && /^[\w-]{1,64}$/.test(header) ? header : null;

// ASSUMED: the audit records the first 500 characters of what a request was about.
const longestAbout = 500;

/** What a request was about, shortened. */
export const aboutIn = (about: string | null): string | null =>
  about === null || about.length <= longestAbout ? about : `${about.slice(0, longestAbout - 1)}…`;

/** Clients encode what a header cannot hold. Text that is not encoded stays as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Long-lived objects take several times the memory of their text, partly because the garbage collector grows its heap for
// them. Entries are therefore stored as text outside of the heap.
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
  "tokenName",
  "nonce",
  "lease",
  "ms",
  "urn",
  "about",
  // The last one: the console finds entries with faults by the end of their line.
  "faults",
] as const satisfies (keyof Audited)[];

function entryIn(line: string): Audited {
  const values = JSON.parse(line) as unknown[];
  return Object.fromEntries(fields.map((field, i) => [field, values[i]])) as unknown as Audited;
}

/** Consecutive entries, one line each: the values as JSON in the order of `fields`. */
class Pack {
  /** Number of its first entry. */
  readonly first: number;
  readonly #bytes: Buffer;
  #used = 0;

  constructor(first: number, bytes: number) {
    this.first = first;
    this.#bytes = Buffer.allocUnsafeSlow(bytes);
  }

  /** Adds a line, unless it does not fit. */
  add(line: string): boolean {
    const left = this.#bytes.length - this.#used;
    // A character has at most three bytes, so most lines need not be measured.
    if (line.length * 3 > left && Buffer.byteLength(line) > left) return false;
    this.#used += this.#bytes.write(line, this.#used);
    return true;
  }

  entries(): Audited[] {
    return this.#bytes.toString("utf8", 0, this.#used).split("\n").slice(0, -1).map(entryIn);
  }

  /** The entries whose line contains a text, newest first; each is read only when it is needed. */
  *newestFirst(text: string): Generator<Audited> {
    for (let end = this.#used; end > 0;) {
      const at = this.#bytes.lastIndexOf(text, end - 1);
      if (at < 0 || at >= end) return;
      const start = at === 0 ? 0 : this.#bytes.lastIndexOf("\n", at - 1) + 1;
      yield entryIn(this.#bytes.toString("utf8", start, this.#bytes.indexOf("\n", at)));
      end = start;
    }
  }
}

/** The newest entries, oldest first. Every request is counted; entries are kept only after `keep()`. */
export class Audit {
  /** Number of entries to keep. */
  #most = 0;
  /** New entries go into the last one. */
  readonly #packs: Pack[] = [];
  #added = (_: Audited): void => {};
  #last = 0;

  /** Keeps that many entries from now on, or more if another reader needs more. Without a reader they would waste memory. */
  keep(most = auditKept): void {
    this.#most = Math.max(this.#most, most);
  }

  /** Calls back after each new entry. */
  onAdd(added: (entry: Audited) => void): void {
    this.#added = added;
  }

  /** Number of the newest entry; 0 before the first. */
  get last(): number {
    return this.#last;
  }

  /** Number of the oldest kept entry; `last` + 1 when none is kept. */
  get first(): number {
    return Math.max(this.#packs[0]?.first ?? this.#last + 1, this.#last - this.#most + 1);
  }

  add(entry: Omit<Audited, "seq">): void {
    const seq = ++this.#last;
    if (this.#most === 0) return;
    const whole = { ...entry, seq };
    this.#keepEntry(whole);
    this.#added(whole);
  }

  /** Adds what happened to an App without a request of its organization. */
  addNote({ event, path, org }: Note, at: number): void {
    this.add({
      ...{ at, id: `event-${this.#last + 1}`, operation: event, method: "EVENT", path, status: 200, org },
      ...{ owner: null, tokenName: null, nonce: false, lease: null, faults: [], ms: 0, urn: null, about: null },
    });
  }

  #keepEntry(whole: Audited): void {
    const { seq } = whole;
    const line = `${JSON.stringify(fields.map((field) => whole[field]))}\n`;
    if (this.#packs.at(-1)?.add(line)) return;
    const next = new Pack(seq, Math.max(packBytes, Buffer.byteLength(line)));
    next.add(line);
    this.#packs.push(next);
    while ((this.#packs[1]?.first ?? Number.POSITIVE_INFINITY) <= this.first) this.#packs.shift();
  }

  /**
   * The kept entries after a number, newest first, with undefined after each block of memory, so that the caller can pause.
   * `text` leaves out most others: those whose line, their values as JSON, does not contain it. Default: none are left out.
   */
  *newestFirst({ after = 0, text = "\n" } = {}): Generator<Audited | undefined> {
    const first = Math.max(after + 1, this.first);
    let next = this.#last + 1;
    for (const pack of this.#packs.toReversed()) {
      if (next <= first) return;
      for (const entry of pack.newestFirst(text)) {
        if (entry.seq < first) return;
        yield entry;
      }
      yield undefined;
      next = pack.first;
    }
  }

  /** Entries after that number, at most `limit`. */
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

// What was asked and what became of it, in memory: for tests that hold the service to its promises, and for whoever
// watches it through the admin listener. No body, no query value, no nonce and no token is in it.

/** How a request stood to the lease of the Machine it was about to change. */
export type Standing =
  /** It sent the nonce of the lease that holds. */
  | "own"
  /** No lease holds. */
  | "none"
  /** A lease holds, and the request did not send its nonce. */
  | "other";

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
  readonly lease: Standing | null;
  /** Ids of the faults it met. */
  readonly faults: readonly string[];
}

/** Entries that are kept. */
export const auditKept = 100_000;

/** The newest entries, oldest first. Every request is counted; entries are kept only after `keep()`. */
export class Audit {
  readonly #most: number;
  readonly #entries: Audited[] = [];
  #keeps = false;
  #last = 0;
  /** Number of the last entry that was not kept. */
  #before = 0;

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
    return this.#last - this.#entries.length + 1;
  }

  add(entry: Omit<Audited, "seq">): void {
    const seq = ++this.#last;
    if (!this.#keeps) return;
    if (this.#entries.length === 0) this.#before = seq - 1;
    this.#entries[(seq - 1 - this.#before) % this.#most] = { seq, ...entry };
  }

  /** Entries that came after the one of that number, at most `limit` of them. */
  after(seq: number, limit = this.#most): Audited[] {
    const from = Math.max(seq + 1, this.first);
    const count = Math.max(0, Math.min(limit, this.#last - from + 1));
    return Array.from({ length: count }, (_, i) => this.#entries[(from + i - 1 - this.#before) % this.#most]).filter(
      (entry) => entry !== undefined,
    );
  }
}

// Appends what the leader commits: in order, each entry once, also when the answers of the log are lost.
import { withResolvers } from "../withResolvers.ts";
import { LogUnavailable, type Entry, type Log } from "./log.ts";

/** What a leader appends with. */
export interface Leading {
  readonly log: Pick<Log, "append" | "end">;
  readonly epoch: number;
  /** Waits before a further attempt. */
  pause(): Promise<void>;
  /** A later leadership exists. The copy may contain changes that were not acknowledged. */
  lost(): void;
}

interface Waiting {
  readonly entry: Promise<Entry>;
  readonly logged: Promise<void>;
  readonly resolve: () => void;
}

/**
 * One append is under way at a time, with all entries that wait for it: a group of changes takes longer to gather than an append, so
 * that more connections would gain nothing.
 */
export class Appender {
  readonly #leading: Leading;
  readonly #waiting: Waiting[] = [];
  #isAppending = false;

  constructor(leading: Leading) {
    this.#leading = leading;
  }

  /** Appends an entry after those before it. Resolves when the log has it; never, if a later leadership exists. */
  add(entry: Promise<Entry>): Promise<void> {
    const { promise, resolve } = withResolvers();
    this.#waiting.push({ entry, logged: promise, resolve });
    if (!this.#isAppending) void this.#appendAll();
    return promise;
  }

  /** Resolves when all entries are in the log; undefined if they are. */
  get unfinished(): Promise<void> | undefined {
    return this.#waiting.at(-1)?.logged;
  }

  async #appendAll(): Promise<void> {
    this.#isAppending = true;
    while (this.#waiting.length > 0) {
      const entries = await Promise.all(this.#waiting.map(({ entry }) => entry));
      if (!(await this.#append(entries))) return this.#leading.lost();
      for (const { resolve } of this.#waiting.splice(0, entries.length)) resolve();
    }
    this.#isAppending = false;
  }

  /** False if a later leadership exists. After a lost answer, it first reads what the log has. */
  async #append(entries: readonly Entry[]): Promise<boolean> {
    const { log, epoch } = this.#leading;
    let [left, isKnown] = [entries, true];
    for (;;)
      try {
        if (!isKnown) {
          const end = await log.end();
          if (end.epoch > epoch) return false;
          left = left.filter(({ seq }) => seq > end.seq);
          if (left.length === 0) return true;
        }
        return await log.append(left);
      } catch (error) {
        if (!(error instanceof LogUnavailable)) throw error;
        isKnown = false;
        await this.#leading.pause();
      }
  }
}

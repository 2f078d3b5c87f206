// The leader's way into the log: each transaction of its copy becomes an entry, and is durable when the log has it.
import type { DatabaseSync } from "node:sqlite";
import { withResolvers } from "../withResolvers.ts";
import { encode, positionOf, prepareCopy, Recorder, type Recorded } from "./changes.ts";
import type { GroupLog } from "./groupLog.ts";
import { LogUnavailable, type Entry, type Log } from "./log.ts";

/** What a leader appends with. */
export interface Leading {
  readonly log: Log;
  readonly epoch: number;
  /** Version of the schema of its copy. */
  readonly schema: number;
  /** Waits before a further attempt. */
  pause(): Promise<void>;
  /** A later leadership exists: the copy may have changes that nobody acknowledged. */
  lost(): void;
}

interface Waiting {
  readonly entry: Promise<Entry>;
  readonly logged: Promise<void>;
  readonly resolve: () => void;
}

/**
 * Appends in order. One append is under way at a time, with all entries that wait for it: a group of changes takes longer to gather
 * than an append, so that more connections would gain nothing.
 */
export class LeaderLog implements GroupLog {
  readonly #leading: Leading;
  readonly #recorder: Recorder;
  readonly #waiting: Waiting[] = [];
  #seq: number;
  #recorded: Recorded | undefined;
  #isAppending = false;

  constructor(db: DatabaseSync, leading: Leading) {
    prepareCopy(db);
    this.#leading = leading;
    this.#seq = positionOf(db).seq;
    this.#recorder = new Recorder(db);
  }

  begin(): void {
    this.#recorder.begin();
  }

  end(): void {
    this.#recorded = this.#recorder.end({ epoch: this.#leading.epoch, seq: this.#seq + 1 });
  }

  discard(): void {
    this.#recorder.discard();
    this.#recorded = undefined;
  }

  committed(): Promise<void> | undefined {
    const recorded = this.#recorded;
    this.#recorded = undefined;
    if (recorded === undefined) return this.#waiting.at(-1)?.logged;
    const { promise, resolve } = withResolvers();
    const { epoch, schema } = this.#leading;
    const seq = ++this.#seq;
    const entry = encode(recorded).then((bytes) => ({ seq, epoch, schema, bytes }));
    this.#waiting.push({ entry, logged: promise, resolve });
    if (!this.#isAppending) void this.#appendAll();
    return promise;
  }

  async #appendAll(): Promise<void> {
    this.#isAppending = true;
    while (this.#waiting.length > 0) {
      const count = this.#waiting.length;
      const entries = await Promise.all(this.#waiting.map(({ entry }) => entry));
      if (!(await this.#append(entries.slice(0, count)))) return this.#leading.lost();
      for (const { resolve } of this.#waiting.splice(0, count)) resolve();
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
          left = left.filter(({ seq }) => seq > end.seq);
          if (end.epoch > epoch) return false;
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

// The history of a service with several members: its leader sends what it has written to the database that they share, a moment later,
// and every member reads it from there. So the next leader has it.
import { reasonOf } from "../reasonOf.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { HistoryPart, SharedHistory } from "../replication/log.ts";
import { LogUnavailable } from "../replication/log.ts";
import type { Bounds, Position } from "./historyStore.ts";
import type { Keeper } from "./keeper.ts";

/** Milliseconds between two looks of a member that follows. */
const lookMs = 5000;
/** Pause after the database did not answer. */
const retryMs = 1000;
/** Entries that are added between two removals of old ones. */
const trimEvery = 5000;

/** Brings a member's own file to the end of the shared history. @throws LogUnavailable */
export async function catchUp(keeper: Keeper, shared: SharedHistory): Promise<void> {
  const { last, sent } = (await keeper.ask("position", [])) as Position;
  const { seq: end } = await shared.historyEnd();
  // Another leader has continued without what this one had not sent yet when it was killed.
  if (last > sent && end > sent) await keeper.ask("forget", [sent]);
  // The database was restored from an earlier backup: it gets again what it has lost.
  if (sent > end) await keeper.ask("sent", [end]);
  for (;;) {
    const { last: known } = (await keeper.ask("position", [])) as Position;
    const parts = await shared.readHistory(known);
    if (parts.length === 0) return;
    await keeper.ask("receive", [parts]);
  }
}

/** Follows the shared history while another member leads. */
export class FollowedHistory {
  readonly #keeper: Keeper;
  readonly #closing = new AbortController();
  readonly #ended: Promise<void>;

  /** `failed` gets why it cannot be followed. */
  constructor(keeper: Keeper, shared: SharedHistory, failed: (reason: string) => void) {
    this.#keeper = keeper;
    this.#ended = this.#follow(shared, failed);
  }

  async #follow(shared: SharedHistory, failed: (reason: string) => void): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        await catchUp(this.#keeper, shared);
      } catch (error) {
        if (!(error instanceof LogUnavailable) && !signal.aborted) failed(reasonOf(error));
      }
      await sleep(lookMs, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  /** Ends, so that another one can write the file. */
  async close(): Promise<void> {
    this.#closing.abort();
    // What is being read is whole parts, so it may end anywhere.
    await this.#keeper.close();
    await this.#ended;
  }
}

/** Sends what the leader has written. */
export class SentHistory {
  readonly #keeper: () => Keeper;
  readonly #shared: SharedHistory;
  readonly #epoch: number;
  readonly #bounds: Bounds;
  readonly #now: () => number;
  #sinceTrim = trimEvery;
  /** Whether the answer to the last part was lost: it may have been added. */
  #isUnsure = false;
  #isOver = false;

  constructor(options: {
    readonly keeper: () => Keeper;
    readonly shared: SharedHistory;
    readonly epoch: number;
    readonly bounds: Bounds;
    readonly now: () => number;
  }) {
    this.#keeper = options.keeper;
    this.#shared = options.shared;
    this.#epoch = options.epoch;
    this.#bounds = options.bounds;
    this.#now = options.now;
  }

  /** Reads what other leaders have added, however long the database does not answer. */
  async begin(): Promise<void> {
    for (;;)
      try {
        return await catchUp(this.#keeper(), this.#shared);
      } catch (error) {
        if (!(error instanceof LogUnavailable)) throw error;
        await sleep(retryMs, undefined, { ref: false });
      }
  }

  /** Sends all that is written. @throws LogUnavailable */
  async send(): Promise<void> {
    while (!this.#isOver) {
      if (this.#isUnsure) await this.#look();
      const part = (await this.#keeper().ask("unsent", [])) as Omit<HistoryPart, "epoch"> | undefined;
      if (!part) return;
      this.#isUnsure = true;
      // Another member leads: what follows is its history.
      if (!(await this.#shared.addHistory({ ...part, epoch: this.#epoch }))) return void (this.#isOver = true);
      await this.#keeper().ask("sent", [part.last]);
      this.#isUnsure = false;
      this.#sinceTrim += part.last - part.first + 1;
      if (this.#sinceTrim < trimEvery) continue;
      this.#sinceTrim = 0;
      await this.#shared.trimHistory(part.last - this.#bounds.entries, this.#now() - this.#bounds.ageMs);
    }
  }

  /** Notes what was added although its answer was lost. What another leader has added is not this one's. */
  async #look(): Promise<void> {
    const { seq, epoch } = await this.#shared.historyEnd();
    if (epoch === this.#epoch) await this.#keeper().ask("sent", [seq]);
    this.#isUnsure = false;
  }
}

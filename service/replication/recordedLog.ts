// A log that gets what each transaction of a store has changed.
import type { DatabaseSync } from "node:sqlite";
import { Recorder, type Position, type Recorded } from "./changes.ts";
import type { GroupLog } from "./groupLog.ts";

/** Records the transactions of a store. Its kinds make their changes durable. */
export abstract class RecordedLog implements GroupLog {
  readonly #recorder: Recorder;
  #recorded: Recorded | undefined;

  constructor(db: DatabaseSync) {
    this.#recorder = new Recorder(db);
  }

  abstract readonly unsure: Promise<void> | undefined;

  /** The position of the copy after the transaction that ends. */
  protected abstract readonly next: Position;

  begin(): void {
    this.#recorder.begin();
  }

  end(): void {
    this.#recorded = this.#recorder.end(this.next);
  }

  discard(): void {
    this.#recorder.discard();
    this.#recorded = undefined;
  }

  abstract committed(): Promise<void> | undefined;

  /** What the committed transaction has changed; undefined if that is nothing. */
  protected take(): Recorded | undefined {
    const recorded = this.#recorded;
    this.#recorded = undefined;
    return recorded;
  }
}

// The log of a command that changes a store which members share: the leader makes its changes.
import type { DatabaseSync } from "node:sqlite";
import { encode } from "./changes.ts";
import { RecordedLog } from "./recordedLog.ts";

/** Records the transactions of a draft of the store, and has the leader make them. */
export class RemoteLog extends RecordedLog {
  readonly #send: (changes: Uint8Array) => Promise<void>;
  readonly unsure = undefined;
  protected readonly next = { epoch: 0, seq: 0 };

  /** `send` rejects if the leader refuses, because the draft is not what the leader has. */
  constructor(db: DatabaseSync, send: (changes: Uint8Array) => Promise<void>) {
    super(db);
    // What a deletion takes with it, the leader deletes: recorded here as well, it would be gone before its turn.
    db.exec("PRAGMA foreign_keys = OFF");
    this.#send = send;
  }

  committed(): Promise<void> | undefined {
    const recorded = this.take();
    return recorded && encode(recorded).then((bytes) => this.#send(bytes));
  }
}

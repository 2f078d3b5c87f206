// The log of a command that changes a store which members share: the leader makes its changes.
import type { DatabaseSync } from "node:sqlite";
import { encode, Recorder, type Recorded } from "./changes.ts";
import type { GroupLog } from "./groupLog.ts";

/** Records the transactions of a draft of the store, and has the leader make them. */
export class RemoteLog implements GroupLog {
  readonly #recorder: Recorder;
  readonly #send: (changes: Uint8Array) => Promise<void>;
  #recorded: Recorded | undefined;

  /** `send` rejects if the leader refuses, because the draft is not what the leader has. */
  constructor(db: DatabaseSync, send: (changes: Uint8Array) => Promise<void>) {
    this.#recorder = new Recorder(db);
    this.#send = send;
  }

  readonly unsure = undefined;

  begin(): void {
    this.#recorder.begin();
  }

  end(): void {
    this.#recorded = this.#recorder.end({ epoch: 0, seq: 0 });
  }

  discard(): void {
    this.#recorder.discard();
    this.#recorded = undefined;
  }

  committed(): Promise<void> | undefined {
    const recorded = this.#recorded;
    this.#recorded = undefined;
    return recorded && encode(recorded).then((bytes) => this.#send(bytes));
  }
}

// The leader's way into the log: each transaction of its copy becomes an entry.
import type { DatabaseSync } from "node:sqlite";
import { Appender, type Leading } from "./appender.ts";
import { encode, lead, positionOf, prepareCopy, Recorder, type Recorded } from "./changes.ts";
import type { GroupLog } from "./groupLog.ts";

/** The schema that a copy has. */
export interface SchemaOfCopy {
  readonly schema: number;
  readonly triggers: readonly string[];
}

/** Records the transactions of a store, and appends them. */
export class LeaderLog implements GroupLog {
  readonly #appender: Appender;
  readonly #recorder: Recorder;
  readonly #epoch: number;
  readonly #schema: number;
  #seq: number;
  #recorded: Recorded | undefined;

  /** `schema` is the version of the copy's schema, `triggers` are those of a new store with it. */
  constructor(db: DatabaseSync, { schema, triggers }: SchemaOfCopy, leading: Leading) {
    prepareCopy(db);
    lead(db, triggers);
    this.#appender = new Appender(leading);
    this.#recorder = new Recorder(db);
    this.#epoch = leading.epoch;
    this.#schema = schema;
    this.#seq = positionOf(db).seq;
  }

  begin(): void {
    this.#recorder.begin();
  }

  end(): void {
    this.#recorded = this.#recorder.end({ epoch: this.#epoch, seq: this.#seq + 1 });
  }

  discard(): void {
    this.#recorder.discard();
    this.#recorded = undefined;
  }

  committed(): Promise<void> | undefined {
    const recorded = this.#recorded;
    this.#recorded = undefined;
    if (recorded === undefined) return this.#appender.unfinished;
    const head = { seq: ++this.#seq, epoch: this.#epoch, schema: this.#schema };
    return this.#appender.add(encode(recorded).then((bytes) => ({ ...head, bytes })));
  }
}

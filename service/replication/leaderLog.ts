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

/** What a leader has of its membership. */
export interface LeadingMember extends Leading {
  /** Undefined if what was read now may be sent; otherwise resolves once it may. */
  unsure(): Promise<void> | undefined;
}

/** Records the transactions of a store, and appends them. */
export class LeaderLog implements GroupLog {
  readonly #appender: Appender;
  readonly #recorder: Recorder;
  readonly #leading: LeadingMember;
  readonly #schema: number;
  #seq: number;
  #recorded: Recorded | undefined;

  /** `schema` is the version of the copy's schema, `triggers` are those of a new store with it. */
  constructor(db: DatabaseSync, { schema, triggers }: SchemaOfCopy, leading: LeadingMember) {
    prepareCopy(db);
    lead(db, triggers);
    this.#appender = new Appender(leading);
    this.#recorder = new Recorder(db);
    this.#leading = leading;
    this.#schema = schema;
    this.#seq = positionOf(db).seq;
  }

  get unsure(): Promise<void> | undefined {
    return this.#leading.unsure();
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
    if (recorded === undefined) return this.#appender.unfinished;
    const head = { seq: ++this.#seq, epoch: this.#leading.epoch, schema: this.#schema };
    return this.#appender.add(encode(recorded).then((bytes) => ({ ...head, bytes })));
  }
}

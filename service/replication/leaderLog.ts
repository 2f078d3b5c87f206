// The leader's way into the log: each transaction of its copy becomes an entry.
import type { DatabaseSync } from "node:sqlite";
import { Appender, type Leading } from "./appender.ts";
import { encode, lead, positionOf, prepareCopy, type Position } from "./changes.ts";
import { RecordedLog } from "./recordedLog.ts";

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
export class LeaderLog extends RecordedLog {
  readonly #appender: Appender;
  readonly #leading: LeadingMember;
  readonly #schema: number;
  #seq: number;

  /** `schema` is the version of the copy's schema, `triggers` are those of a new store with it. */
  constructor(db: DatabaseSync, { schema, triggers }: SchemaOfCopy, leading: LeadingMember) {
    prepareCopy(db);
    lead(db, triggers);
    super(db);
    this.#appender = new Appender(leading);
    this.#leading = leading;
    this.#schema = schema;
    this.#seq = positionOf(db).seq;
  }

  get unsure(): Promise<void> | undefined {
    return this.#leading.unsure();
  }

  protected get next(): Position {
    return { epoch: this.#leading.epoch, seq: this.#seq + 1 };
  }

  committed(): Promise<void> | undefined {
    const recorded = this.take();
    if (recorded === undefined) return this.#appender.unfinished;
    const head = { ...this.next, schema: this.#schema };
    this.#seq = head.seq;
    return this.#appender.add(encode(recorded).then((bytes) => ({ ...head, bytes })));
  }
}

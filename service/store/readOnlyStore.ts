// A store that is only read: one of a past moment.
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import type { Store } from "./database.ts";

/** What reads a store. */
export type StoreReader = Pick<Store, "get" | "all">;

/** A store in a file that no process changes. */
export class ReadOnlyStore implements StoreReader {
  readonly #db: DatabaseSync;

  constructor(file: string) {
    this.#db = new DatabaseSync(file, { readOnly: true });
  }

  /** The first row, if any. */
  get<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#db.prepare(sql).get(...values) as Row | undefined;
  }

  /** All rows. */
  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#db.prepare(sql).all(...values) as Row[];
  }

  close(): void {
    this.#db.close();
  }
}

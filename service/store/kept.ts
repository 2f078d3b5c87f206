// Rows that were read lately. Nearly every request asks for the same App and Machine, and reading them again would be a
// third of its work.

const most = 20_000;

/** Rows by a key, each until something about it changes. */
export class Kept<Row extends { readonly id: string }> {
  readonly #rows = new Map<string, Row>();
  readonly #keys = new Map<string, string>();

  /** The row of a key: the one that is kept, or the one that is found now. That there is none is not kept. */
  get(key: string, find: () => Row | undefined): Row | undefined {
    const kept = this.#rows.get(key);
    if (kept) return kept;
    const row = find();
    if (!row) return undefined;
    if (this.#rows.size >= most) this.clear();
    this.#rows.set(key, row);
    this.#keys.set(row.id, key);
    return row;
  }

  /** Something about the row with that id changes. */
  forget(id: string): void {
    const key = this.#keys.get(id);
    if (key === undefined) return;
    this.#rows.delete(key);
    this.#keys.delete(id);
  }

  clear(): void {
    this.#rows.clear();
    this.#keys.clear();
  }
}

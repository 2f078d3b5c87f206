// The latest version of each Machine that this process has written: a read with an older version is stale (F15).

/** Versions of Machines by id. Versions are ULIDs, so they sort by time (docs/interface.md#versions). */
export class StaleReads {
  readonly #latest = new Map<string, string>();

  /** Notes the version in the answer of a write. */
  note(machineId: string, version: string): void {
    if (!this.isStale(machineId, version)) this.#latest.set(machineId, version);
  }

  /** Whether an answer with this version is older than the last write. */
  isStale(machineId: string, version: string | undefined): boolean {
    const latest = this.#latest.get(machineId);
    return latest !== undefined && version?.length === latest.length && version < latest;
  }
}

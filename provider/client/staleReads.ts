// Which version of a Machine this process has made or seen: a read that shows an older one is behind (F15).

/** Versions of Machines by their ids. They are ULIDs: later ones sort behind earlier ones (spec 4.2). */
export class StaleReads {
  readonly #latest = new Map<string, string>();

  /** Notes a version a write has answered with. */
  note(machineId: string, version: string): void {
    if (!this.isStale(machineId, version)) this.#latest.set(machineId, version);
  }

  /** Whether what shows this version does not know yet what was written. */
  isStale(machineId: string, version: string | undefined): boolean {
    const latest = this.#latest.get(machineId);
    return latest !== undefined && version?.length === latest.length && version < latest;
  }
}

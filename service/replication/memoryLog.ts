// A log in memory, for tests and simulations of several members.
import type {
  Contents,
  End,
  Entry,
  Extent,
  HistoryPart,
  Leadership,
  Listed,
  Log,
  Logged,
  Member,
  Snapshot,
  Standing,
} from "./log.ts";

/** What a reader gets of a stored snapshot. */
const contentOf = (stored: Snapshot | undefined): Snapshot | undefined =>
  stored && { seq: stored.seq, bytes: stored.bytes };

/** A log by the given clock, in milliseconds since 1970. Every method takes effect before it returns. */
export class MemoryLog implements Log {
  readonly #now: () => number;
  readonly #entries: Logged[] = [];
  #snapshots: readonly (Snapshot & { readonly at: number; readonly id: string })[] = [];
  #identity: Uint8Array | undefined;
  #place: Uint8Array | undefined;
  readonly #members = new Map<string, Standing & { readonly at: number }>();
  #history: readonly HistoryPart[] = [];
  #latest: Leadership | undefined;
  #ids = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  async leadership(): Promise<Leadership | undefined> {
    return this.#latest;
  }

  get #next(): string {
    return String(++this.#ids);
  }

  async takeOver(from: number, leader: Member, leaseMs: number, renewal?: string): Promise<number | undefined> {
    const latest = this.#latest ?? { epoch: 0, leader: undefined, renewal: undefined, leaseMs: 0 };
    const isRepeated = latest.epoch === from + 1 && latest.leader?.id === leader.id;
    const isFree = latest.epoch === from && (latest.leaseMs === 0 || latest.renewal === renewal);
    if (!isRepeated && !isFree) return undefined;
    this.#latest = { epoch: from + 1, leader, renewal: this.#next, leaseMs };
    return from + 1;
  }

  async renew(epoch: number, leaseMs: number): Promise<boolean> {
    if (this.#latest?.epoch !== epoch) return false;
    this.#latest = { ...this.#latest, renewal: this.#next, leaseMs };
    return true;
  }

  async release(epoch: number): Promise<void> {
    if (this.#latest?.epoch === epoch) this.#latest = { ...this.#latest, leaseMs: 0 };
  }

  async append(entries: readonly Entry[]): Promise<boolean> {
    for (const [i, { epoch, seq }] of entries.entries()) {
      if (this.#latest?.epoch !== epoch) return false;
      const next = this.#end.seq + i + 1;
      if (seq !== next) throw new Error(`entry ${seq} cannot be appended: the next one is ${next}`);
    }
    for (const entry of entries) this.#entries.push({ ...entry, at: this.#now() });
    return true;
  }

  async read(after: number, most: number, mostBytes: number): Promise<readonly Logged[]> {
    const found: Logged[] = [];
    let bytes = 0;
    for (const entry of this.#entries) {
      if (entry.seq <= after) continue;
      if (found.length === most || bytes >= mostBytes) break;
      found.push(entry);
      bytes += entry.bytes.length;
    }
    return found;
  }

  get #end(): End {
    return this.#entries.at(-1) ?? { seq: 0, epoch: 0 };
  }

  async end(): Promise<End> {
    const { seq, epoch } = this.#end;
    return { seq, epoch };
  }

  async lastBefore(moment: number): Promise<number> {
    return this.#entries.findLast(({ at }) => at <= moment)?.seq ?? 0;
  }

  async extent(): Promise<Extent> {
    const bytesAfter = (seq: number): number =>
      this.#entries.reduce((sum, entry) => sum + (entry.seq > seq ? entry.bytes.length : 0), 0);
    const snapshots = this.#snapshots
      .filter(({ seq }, i, all) => seq !== all[i - 1]?.seq)
      .map(({ seq, bytes, at }) => ({ seq, bytes: bytes.length, at }));
    const bytesSince = bytesAfter(snapshots[0]?.seq ?? 0);
    return { seq: this.#end.seq, size: bytesAfter(0), bytesSince, snapshots, now: this.#now() };
  }

  async addSnapshot({ seq, bytes }: Snapshot): Promise<string> {
    const id = this.#next;
    this.#snapshots = [...this.#snapshots, { seq, bytes, id, at: this.#now() }].sort((a, b) => b.seq - a.seq);
    return id;
  }

  async snapshot(id: string): Promise<Snapshot | undefined> {
    return contentOf(this.#snapshots.find((one) => one.id === id));
  }

  async latestSnapshot(seq = Number.POSITIVE_INFINITY): Promise<Snapshot | undefined> {
    return contentOf(this.#snapshots.find((one) => one.seq <= seq));
  }

  async removeSnapshot(id: string): Promise<void> {
    this.#snapshots = this.#snapshots.filter((one) => one.id !== id);
  }

  async trim(seq: number): Promise<void> {
    const kept = this.#entries.findIndex((entry, i) => entry.seq > seq || i === this.#entries.length - 1);
    this.#entries.splice(0, Math.max(0, kept));
    this.#snapshots = this.#snapshots.filter((snapshot) => snapshot.seq >= seq);
  }

  async identity(): Promise<Uint8Array | undefined> {
    return this.#identity;
  }

  async addIdentity(bytes: Uint8Array): Promise<Uint8Array> {
    return (this.#identity ??= bytes);
  }

  async place(): Promise<Uint8Array | undefined> {
    return this.#place;
  }

  async addPlace(bytes: Uint8Array): Promise<Uint8Array> {
    return (this.#place ??= bytes);
  }

  async setPlace(epoch: number, bytes: Uint8Array): Promise<boolean> {
    if (this.#latest?.epoch !== epoch) return false;
    this.#place = bytes;
    return true;
  }

  async report(standing: Standing): Promise<void> {
    this.#members.set(standing.address, { ...standing, at: this.#now() });
  }

  async members(): Promise<readonly Listed[]> {
    return [...this.#members.values()]
      .map(({ at, ...standing }) => ({ ...standing, agoMs: Math.abs(this.#now() - at) }))
      .sort((a, b) => (a.address < b.address ? -1 : 1));
  }

  async removeMember(address: string): Promise<boolean> {
    return this.#members.delete(address);
  }

  async replaceAll(epoch: number, { identity, place, last, snapshot, history }: Contents): Promise<boolean> {
    if ((this.#latest?.epoch ?? 0) !== epoch || (epoch === 0 && this.#identity)) return false;
    const at = this.#now();
    const parts: HistoryPart[] = [];
    for await (const part of history) parts.push(part);
    this.#history = parts;
    this.#identity = identity;
    this.#place = place;
    this.#entries.splice(0, this.#entries.length, { ...last, at });
    this.#snapshots = [{ seq: last.seq, bytes: snapshot, id: this.#next, at }];
    return true;
  }

  async historyEnd(): Promise<End> {
    const { last = 0, epoch = 0 } = this.#history.at(-1) ?? {};
    return { seq: last, epoch };
  }

  async addHistory(part: HistoryPart): Promise<boolean> {
    if (this.#latest?.epoch !== part.epoch) return false;
    const end = this.#history.at(-1)?.last ?? part.first - 1;
    if (end !== part.first - 1) throw new Error(`entry ${part.first} of the history cannot follow ${end}`);
    this.#history = [...this.#history, part];
    return true;
  }

  async readHistory(after: number): Promise<readonly HistoryPart[]> {
    return this.#history.filter(({ last }) => last > after).slice(0, 2);
  }

  async trimHistory(last: number, before: number): Promise<void> {
    const { length } = this.#history;
    this.#history = this.#history.filter((part, i) => i === length - 1 || (part.last > last && part.at >= before));
  }

  async close(): Promise<void> {}
}

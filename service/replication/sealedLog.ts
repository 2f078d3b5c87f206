// A log whose database can be read by others: all that it keeps of the data is sealed with the key of the members.
import { hkdfSync } from "node:crypto";
import { nonceLength, openSealed, sealed } from "../crypto/sealed.ts";
import type { RandomBytes } from "../ids.ts";
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

/** What a log has was sealed with another key, or is damaged. */
export class CannotOpen extends Error {
  override readonly name = "CannotOpen";
}

/** Keys that are remembered. */
const mostDerived = 16;

/** Seals what goes into a log, and opens what comes out of it. */
export class SealedLog implements Log {
  readonly #log: Log;
  readonly #key: Uint8Array;
  readonly #random: RandomBytes;
  /** The latest keys by purpose: a leader seals many entries with the same. */
  readonly #derived = new Map<string, Uint8Array>();

  /** `key` has 32 bytes. */
  constructor(log: Log, key: Uint8Array, random: RandomBytes) {
    this.#log = log;
    this.#key = key;
    this.#random = random;
  }

  /** A key for each leadership: random nonces are safe for 2^32 values of one key, which years of entries exceed. */
  #keyFor(purpose: string): Uint8Array {
    const known = this.#derived.get(purpose);
    if (known) return known;
    if (this.#derived.size >= mostDerived) this.#derived.clear();
    const key = Buffer.from(hkdfSync("sha256", this.#key, "", `machines log: ${purpose}`, 32));
    this.#derived.set(purpose, key);
    return key;
  }

  #seal(purpose: string, name: string, bytes: Uint8Array): Uint8Array {
    return sealed(this.#keyFor(purpose), name, bytes, this.#random(nonceLength));
  }

  #open(purpose: string, name: string, bytes: Uint8Array): Uint8Array {
    try {
      return openSealed(this.#keyFor(purpose), name, bytes);
    } catch (error) {
      throw new CannotOpen(`${name} of the log cannot be opened with this key`, { cause: error });
    }
  }

  leadership(): Promise<Leadership | undefined> {
    return this.#log.leadership();
  }

  takeOver(from: number, member: Member, leaseMs: number, renewal?: string): Promise<number | undefined> {
    return this.#log.takeOver(from, member, leaseMs, renewal);
  }

  renew(epoch: number, leaseMs: number): Promise<boolean> {
    return this.#log.renew(epoch, leaseMs);
  }

  release(epoch: number): Promise<void> {
    return this.#log.release(epoch);
  }

  append(entries: readonly Entry[]): Promise<boolean> {
    return this.#log.append(entries.map((one) => this.#sealEntry(one)));
  }

  #sealEntry(entry: Entry): Entry {
    return { ...entry, bytes: this.#seal(`epoch ${entry.epoch}`, `entry ${entry.seq}`, entry.bytes) };
  }

  replaceAll(epoch: number, { identity, place, last, snapshot, history }: Contents): Promise<boolean> {
    return this.#log.replaceAll(epoch, {
      identity: this.#seal("identity", "identity", identity),
      place: place && this.#seal("place", "place", place),
      last: this.#sealEntry(last),
      snapshot: this.#seal("snapshots", `snapshot ${last.seq}`, snapshot),
      history: this.#sealHistory(history),
    });
  }

  async *#sealHistory(history: Contents["history"]): AsyncGenerator<HistoryPart> {
    for await (const part of history) yield this.#sealPart(part);
  }

  #sealPart(part: HistoryPart): HistoryPart {
    const { epoch, first, bytes } = part;
    return { ...part, bytes: this.#seal(`history ${epoch}`, `history ${first}`, bytes) };
  }

  async read(after: number, most: number, mostBytes: number): Promise<readonly Logged[]> {
    const found = await this.#log.read(after, most, mostBytes);
    return found.map((one) => ({ ...one, bytes: this.#open(`epoch ${one.epoch}`, `entry ${one.seq}`, one.bytes) }));
  }

  end(): Promise<End> {
    return this.#log.end();
  }

  addSnapshot({ seq, bytes }: Snapshot): Promise<string> {
    return this.#log.addSnapshot({ seq, bytes: this.#seal("snapshots", `snapshot ${seq}`, bytes) });
  }

  lastBefore(moment: number): Promise<number> {
    return this.#log.lastBefore(moment);
  }

  extent(): Promise<Extent> {
    return this.#log.extent();
  }

  removeSnapshot(id: string): Promise<void> {
    return this.#log.removeSnapshot(id);
  }

  async snapshot(id: string): Promise<Snapshot | undefined> {
    return this.#openSnapshot(await this.#log.snapshot(id));
  }

  async latestSnapshot(seq?: number): Promise<Snapshot | undefined> {
    return this.#openSnapshot(await this.#log.latestSnapshot(seq));
  }

  #openSnapshot(found: Snapshot | undefined): Snapshot | undefined {
    return found && { ...found, bytes: this.#open("snapshots", `snapshot ${found.seq}`, found.bytes) };
  }

  trim(seq: number): Promise<void> {
    return this.#log.trim(seq);
  }

  historyEnd(): Promise<End> {
    return this.#log.historyEnd();
  }

  addHistory(part: HistoryPart): Promise<boolean> {
    return this.#log.addHistory(this.#sealPart(part));
  }

  async readHistory(after: number): Promise<readonly HistoryPart[]> {
    const found = await this.#log.readHistory(after);
    return found.map((part) => ({
      ...part,
      bytes: this.#open(`history ${part.epoch}`, `history ${part.first}`, part.bytes),
    }));
  }

  trimHistory(last: number, before: number): Promise<void> {
    return this.#log.trimHistory(last, before);
  }

  async identity(): Promise<Uint8Array | undefined> {
    const found = await this.#log.identity();
    return found && this.#open("identity", "identity", found);
  }

  async addIdentity(bytes: Uint8Array): Promise<Uint8Array> {
    return this.#open("identity", "identity", await this.#log.addIdentity(this.#seal("identity", "identity", bytes)));
  }

  async place(): Promise<Uint8Array | undefined> {
    const found = await this.#log.place();
    return found && this.#open("place", "place", found);
  }

  async addPlace(bytes: Uint8Array): Promise<Uint8Array> {
    return this.#open("place", "place", await this.#log.addPlace(this.#seal("place", "place", bytes)));
  }

  setPlace(epoch: number, bytes: Uint8Array): Promise<boolean> {
    return this.#log.setPlace(epoch, this.#seal("place", "place", bytes));
  }

  report({ place, ...standing }: Standing): Promise<void> {
    const sealedPlace = place && this.#seal("place", `place of ${standing.address}`, place);
    return this.#log.report({ ...standing, place: sealedPlace });
  }

  async members(): Promise<readonly Listed[]> {
    const found = await this.#log.members();
    return found.map(({ place, ...listed }) => ({ ...listed, place: place && this.#placeOf(listed.address, place) }));
  }

  /** A member that runs no more may have had another key. */
  #placeOf(address: string, place: Uint8Array): Uint8Array | undefined {
    try {
      return this.#open("place", `place of ${address}`, place);
    } catch (error) {
      if (error instanceof CannotOpen) return undefined;
      throw error;
    }
  }

  removeMember(address: string): Promise<boolean> {
    return this.#log.removeMember(address);
  }

  close(): Promise<void> {
    return this.#log.close();
  }
}

// The log of a service with several members: the leader's changes, in order. A copy that has read it to its end contains every
// acknowledged change.

/** A group of changes that the leader committed together. */
export interface Entry {
  /** 1 for the first; no number is left out. */
  readonly seq: number;
  /** The leadership that appended it. */
  readonly epoch: number;
  /** Version of the schema that its changes belong to. */
  readonly schema: number;
  /** Its changes, as replication/changes.ts encodes them. */
  readonly bytes: Uint8Array;
}

/** An entry of the log, with when it was appended by the log's clock, in milliseconds since 1970. */
export interface Logged extends Entry {
  readonly at: number;
}

/** One process of the service. */
export interface Member {
  /** Identifies this run of the process. */
  readonly id: string;
  /** URL at which other members reach it. */
  readonly address: string;
}

/** What a member says about itself every second. */
export interface Standing {
  /** URL at which other members reach it; it has one entry for each address. */
  readonly address: string;
  /** Version of the service. */
  readonly version: string;
  /** A follower may not lead: what runs the Machines is elsewhere. */
  readonly role: "leader" | "standby" | "follower";
  /** The last entry that its copy contains. */
  readonly seq: number;
  /** What runs Machines and Postgres clusters at this member, and where. */
  readonly place?: Uint8Array | undefined;
}

/** A member that said nothing for so many milliseconds has ended. */
export const endedMs = 5000;

/** A member in the list of members. */
export interface Listed extends Standing {
  /**
   * How long ago it said so, in milliseconds by the log's clock. If that was set back meanwhile, the time is to come: then by how much,
   * so that a member which does not run does not seem to run until then.
   */
  readonly agoMs: number;
}

/** The latest leadership, as the log knows it. */
export interface Leadership {
  /** 1 for the first; each takeover raises it by one. */
  readonly epoch: number;
  readonly leader: Member;
  /** Another one after each renewal of its lease. */
  readonly renewal: string;
  /** How long its lease lasts from that renewal on, in milliseconds; 0 if the leader has ended it. */
  readonly leaseMs: number;
}

/** The end of a log or a history. */
export interface End {
  /** Number of the last entry; 0 if there is none. */
  readonly seq: number;
  /** The leadership that appended it; 0 if there is none. */
  readonly epoch: number;
}

/** How large a log is. */
export interface Extent {
  /** Number of the last entry that it shows; 0 if there is none. */
  readonly seq: number;
  /** Bytes on the disk of the log. */
  readonly size: number;
  /** Bytes of the entries after the latest snapshot. */
  readonly bytesSince: number;
  /** The snapshots, the latest first: their size, and when they were stored, in milliseconds since 1970 by the log's clock. */
  readonly snapshots: readonly { readonly seq: number; readonly bytes: number; readonly at: number }[];
  /** The time by the log's clock. */
  readonly now: number;
}

/** The copy that a member may start from, instead of from the first entry. */
export interface Snapshot {
  /** The last entry that it contains. */
  readonly seq: number;
  readonly bytes: Uint8Array;
}

/** The log cannot be reached, or did not answer in time: whether the request had an effect is unknown. */
export class LogUnavailable extends Error {
  override readonly name = "LogUnavailable";
}

/** All that a log has. */
export interface Contents {
  readonly identity: Uint8Array;
  readonly place: Uint8Array | undefined;
  /** Its only entry, which the snapshot contains. */
  readonly last: Entry;
  readonly snapshot: Uint8Array;
  /** The parts of its history, in order. */
  readonly history: Iterable<HistoryPart> | AsyncIterable<HistoryPart>;
}

/** What members know of each other and of their data, beside the log itself. */
export interface Members {
  /** What identifies the data; undefined before the first member has begun. */
  identity(): Promise<Uint8Array | undefined>;
  /** Stores it, unless there is one: returns what is stored. */
  addIdentity(bytes: Uint8Array): Promise<Uint8Array>;
  /** What runs Machines and Postgres clusters, and where; undefined before the first member has begun. */
  place(): Promise<Uint8Array | undefined>;
  /** Stores what runs Machines and Postgres clusters, and where, unless that is stored: returns what is stored. */
  addPlace(bytes: Uint8Array): Promise<Uint8Array>;
  /** Replaces what runs Machines and Postgres clusters, and where, if `epoch` is the latest leadership. False if it is not. */
  setPlace(epoch: number, bytes: Uint8Array): Promise<boolean>;
  /** Records what a member says about itself. */
  report(standing: Standing): Promise<void>;
  /** All members, by address. */
  members(): Promise<readonly Listed[]>;
  /** Removes a member from the list. False if it is not there. */
  removeMember(address: string): Promise<boolean>;
}

/** A part of the history of the service: entries that follow each other. */
export interface HistoryPart {
  /** Numbers of its first and its last entry. */
  readonly first: number;
  readonly last: number;
  /** When the last one happened, in milliseconds since 1970 by the clock of its leader. */
  readonly at: number;
  /** The leadership that added it. */
  readonly epoch: number;
  readonly bytes: Uint8Array;
}

/** The history that members share beside the log. It follows the log by a moment, so a leader that is killed may leave out its end. */
export interface SharedHistory {
  /** Its last entry, and the leadership that added it. */
  historyEnd(): Promise<End>;
  /** Adds a part after the last one, once. False if a later leadership exists: it was not added, and never will be. */
  addHistory(part: HistoryPart): Promise<boolean>;
  /** The parts that have entries after a number, in order: at most a few megabytes of them. */
  readHistory(after: number): Promise<readonly HistoryPart[]>;
  /** Removes the parts whose entries are up to `last` or before a moment, except for the last part. */
  trimHistory(last: number, before: number): Promise<void>;
}

/** All parts of a history, in order. */
export async function* partsOfHistory(shared: Pick<SharedHistory, "readHistory">): AsyncGenerator<HistoryPart> {
  for (let after = 0; ;) {
    const parts = await shared.readHistory(after);
    yield* parts;
    const last = parts.at(-1)?.last;
    if (last === undefined) return;
    after = last;
  }
}

/**
 * A log that all members share. Every method rejects with {@link LogUnavailable} when the log does not answer; nothing else makes
 * `append`, `renew` and `release` fail: that a later leadership exists is an answer.
 */
export interface Log extends Members, SharedHistory {
  /** The latest leadership; undefined before the first. */
  leadership(): Promise<Leadership | undefined>;
  /**
   * Takes the leadership for `leaseMs`, if the latest one is `from` (0: there was none) and its leader has ended its lease, or has not
   * renewed it since `renewal`; or if this member has taken it already: the first answer may be lost. Returns the new epoch, or undefined
   * if another member was faster or the lease was renewed.
   */
  takeOver(from: number, member: Member, leaseMs: number, renewal?: string): Promise<number | undefined>;
  /** Prolongs the lease to `leaseMs` from now. False if a later leadership exists. */
  renew(epoch: number, leaseMs: number): Promise<boolean>;
  /** Ends the lease now, so that another member takes over at once. */
  release(epoch: number): Promise<void>;
  /**
   * Appends entries of one leadership, whose numbers follow the last one: all of them or none. False if a later leadership exists:
   * they were not appended, and never will be.
   */
  append(entries: readonly Entry[]): Promise<boolean>;
  /** The entries after `seq`, in order: at most `most`, and no more after the first that reaches `mostBytes` together. */
  read(after: number, most: number, mostBytes: number): Promise<readonly Logged[]>;
  /**
   * Replaces everything in one step, if `epoch` is the latest leadership (0: there was none, and there is no identity). False if it
   * is not.
   */
  replaceAll(epoch: number, contents: Contents): Promise<boolean>;
  /** The end of the log: what it has up to there is durable, which is not so for everything that `leadership` and `read` show. */
  end(): Promise<End>;
  /** The last entry that was appended at a moment or before, in milliseconds since 1970; 0 if there is none. */
  lastBefore(moment: number): Promise<number>;
  extent(): Promise<Extent>;
  /** Stores a snapshot. Another member may store one with the same number, so each gets an id, which is returned. */
  addSnapshot(snapshot: Snapshot): Promise<string>;
  /** The snapshot with that id; undefined if it is not there. */
  snapshot(id: string): Promise<Snapshot | undefined>;
  /** The latest snapshot, or the latest one of `seq` or before; undefined if there is none. */
  latestSnapshot(seq?: number): Promise<Snapshot | undefined>;
  /** Removes the snapshot with that id. */
  removeSnapshot(id: string): Promise<void>;
  /** Removes the entries up to and including `seq`, except for the last entry of the log, and the snapshots before `seq`. */
  trim(seq: number): Promise<void>;
  close(): Promise<void>;
}

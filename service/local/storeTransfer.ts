// Moves data between a data folder and a store that members share, exports a past moment of a store, and changes its key.
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readPending } from "../backup/pending.ts";
import { historyFile, usualBounds } from "../history/history.ts";
import { HistoryStore } from "../history/historyStore.ts";
import { readUntil } from "../replication/catchUp.ts";
import { DoesNotApply, emptyEntry } from "../replication/changes.ts";
import { identityBytes, storedIdentity, type Identity } from "../replication/identity.ts";
import {
  partsOfHistory,
  type Contents,
  type HistoryPart,
  type Leadership,
  type Log,
  type Member,
} from "../replication/log.ts";
import { entryAt, firstMoment } from "../replication/moments.ts";
import { logSchema } from "../replication/postgresLog.ts";
import { LocalAuthority } from "../runtime/localAuthority.ts";
import { prepareFolder } from "../store/prepareFolder.ts";
import { companionFiles, movedStore, requireWhole, schemaOf, storeFile } from "../store/database.ts";
import { dataIdFile, dataIdOf } from "../store/dataId.ts";
import { lockData } from "../store/lock.ts";
import { becomeStore, isCopyFile, MemberCopy, snapshotOf, snapshotOfStore } from "../store/memberCopy.ts";
import { requireStore } from "../store/openForCommand.ts";
import { syncFolder, writePrivately } from "../store/privateFile.ts";
import { Problem } from "./problem.ts";
import { identityFiles, identityIn, openStore, withKey } from "./sharedStore.ts";

/** A store in a database. */
export interface StoreAddress {
  readonly url: string;
  readonly key: Uint8Array;
}

const leaseMs = 10_000;
// How often it looks whether a leader renews its lease.
const lookMs = 100;
// Entry 1 is left out: a member that has nothing would otherwise apply it to an empty copy.
const firstEntry = 2;

/** Moves the data of a folder, whose service is stopped, into an empty store. The folder keeps its store under another name. */
export async function moveIntoStore(folder: string, { url, key }: StoreAddress): Promise<void> {
  const file = requireStore(folder);
  const lock = lockData(folder);
  try {
    if (readPending(folder))
      throw new Problem(`${folder} was restored from a backup; start its service once without --store before`);
    if (isCopyFile(file))
      throw new Problem(`${folder} is a copy of a store that several members share; it has no data of its own`);
    const store = new DatabaseSync(file, { readOnly: true });
    requireWhole({ db: store }, file);
    const schema = schemaOf(store);
    store.close();
    // A service makes these when it first needs them; members need the same.
    dataIdOf(folder, randomBytes);
    await new LocalAuthority(folder).root();
    const log = await openStore(url, key);
    try {
      const { bytes } = await snapshotOfStore(file, { epoch: 0, seq: firstEntry });
      const last = { epoch: 0, seq: firstEntry, schema, bytes: await emptyEntry() };
      const identity = identityBytes(identityIn(folder));
      const contents = { ...{ identity, place: undefined, last, snapshot: bytes }, history: historyIn(folder) };
      if (!(await log.replaceAll(0, contents)))
        throw new Problem(
          `--store: the database has the data of a service already; drop its schema ${logSchema}, or use another database`,
        );
    } finally {
      await log.close();
    }
    // The folder must not be served beside the store: both would act for the same Machines.
    const kept = movedStore(folder);
    renameSync(file, kept);
    for (const one of companionFiles(file)) if (existsSync(one)) renameSync(one, one.replace(file, kept));
    syncFolder(file);
  } finally {
    lock.release();
  }
}

/** Moves the data of a store, whose members are stopped, into an empty folder. The store is not served again. */
export async function moveOutOfStore(folder: string, { url, key }: StoreAddress): Promise<void> {
  const log = await openStore(url, key);
  try {
    const identity = await requireIdentity(log);
    await asOnlyLeader(log, async (epoch) => {
      const { seq } = await log.end();
      await writeFolder(folder, log, seq, identity);
      await writeHistory(folder, log);
      const { last, snapshot } = await endOf(log);
      const moved = identityBytes({ ...identity, movedTo: folder });
      await replaceAsLeader(log, epoch, { identity: moved, place: undefined, last, snapshot, history: [] });
    });
  } finally {
    await log.close();
  }
}

/** Writes a folder with what a store had at a moment, in milliseconds since 1970. Members may be running. */
export async function exportMoment(folder: string, { url, key }: StoreAddress, moment: number): Promise<void> {
  const log = await openStore(url, key);
  try {
    const { files, ...identity } = await requireIdentity(log);
    const seq = await entryAt(log, moment);
    if (seq === undefined) {
      const first = await firstMoment(log);
      throw new Problem(
        `--at: the store has no entry of that time${first === undefined ? "" : `; its oldest one is of ${new Date(first).toISOString()}`}`,
      );
    }
    // A copy is another service: what runs for this one is not its own.
    const { [basename(dataIdFile(folder))]: _, ...others } = files;
    await writeFolder(folder, log, seq, { ...identity, files: others });
  } finally {
    await log.close();
  }
}

/** Seals everything of a store with another key. Its members are stopped. Moments before this can no longer be exported. */
export async function rotateKey({ url, key }: StoreAddress, next: Uint8Array): Promise<void> {
  const [log, renewed] = [await openStore(url, key), await openStore(url, next)];
  try {
    const identity = await requireIdentity(log);
    await asOnlyLeader(log, async (epoch) => {
      const [{ last, snapshot }, place] = [await endOf(log), await log.place()];
      const history = partsOfHistory(log);
      await replaceAsLeader(renewed, epoch, { identity: identityBytes(identity), place, last, snapshot, history });
    });
  } finally {
    await log.close();
    await renewed.close();
  }
}

/** The identity of the data of a store. Throws a Problem if it has none. */
export async function requireIdentity(log: Log): Promise<Identity> {
  const identity = await withKey(() => storedIdentity(log));
  if (!identity) throw new Problem("--store: the database has no data of a service");
  if (identity.movedTo !== undefined) throw new Problem(`--store: the data were moved to ${identity.movedTo}`);
  return identity;
}

/** Acts while no member can lead. */
async function asOnlyLeader(log: Log, act: (epoch: number) => Promise<void>): Promise<void> {
  const { epoch = 0, renewal, leader } = (await unrenewed(log)) ?? {};
  const mine = await log.takeOver(epoch, { id: randomBytes(8).toString("hex"), address: "" }, leaseMs, renewal);
  if (mine === undefined) throw leads(leader);
  const renewing = setInterval(() => void log.renew(mine, leaseMs).catch(() => {}), leaseMs / 10);
  try {
    await act(mine);
  } finally {
    clearInterval(renewing);
    await log.release(mine);
  }
}

const leads = (leader: Member | undefined): Problem =>
  new Problem(`--store: the member at ${leader?.address} leads; stop all members first`);

/** The latest leadership, once its lease has ended. Throws a Problem if it is renewed. */
export async function unrenewed(log: Log): Promise<Leadership | undefined> {
  const found = await log.leadership();
  const until = performance.now() + (found?.leaseMs ?? 0);
  while (performance.now() < until) {
    await sleep(lookMs);
    const next = await log.leadership();
    if (next?.leaseMs === 0) return next;
    if (next?.renewal !== found?.renewal) throw leads(next?.leader);
  }
  return found;
}

async function replaceAsLeader(log: Log, epoch: number, contents: Contents): Promise<void> {
  if (!(await log.replaceAll(epoch, contents)))
    throw new Problem("--store: a member was started meanwhile; stop it, and try again");
}

/** The last entry of a log, and a snapshot that contains it. */
async function endOf(log: Log): Promise<{ last: Awaited<ReturnType<Log["read"]>>[number]; snapshot: Uint8Array }> {
  const { seq } = await log.end();
  const [last] = await log.read(seq - 1, 1, 1);
  if (!last) throw new Problem("--store: the database has no data of a service");
  return inDraft(tmpdir(), async (file) => {
    const copy = new MemberCopy(file);
    await readUntil(copy, log, seq);
    copy.release();
    return { last, snapshot: (await snapshotOf(file)).bytes };
  });
}

/** Writes a data folder with the store as it was after an entry. */
async function writeFolder(folder: string, log: Log, seq: number, { files }: Identity): Promise<void> {
  const store = storeFile(prepareFolder(folder));
  const lock = lockData(folder);
  try {
    for (const file of [store, ...identityFiles.map((pathOf) => pathOf(folder))])
      if (existsSync(file)) throw new Problem(`${file} exists already; choose another --data folder`);
    await inDraft(folder, async (file) => {
      const copy = new MemberCopy(file);
      await readUntil(copy, log, seq);
      copy.close();
      becomeStore(file);
      for (const [name, contents] of Object.entries(files)) writePrivately(join(folder, name), contents);
      renameSync(file, store);
    });
    syncFolder(store);
  } catch (error) {
    throw error instanceof DoesNotApply ? new Problem(`--store: the log cannot be read: ${error.message}`) : error;
  } finally {
    lock.release();
  }
}

/** The history in a folder, whose service is stopped. */
function* historyIn(folder: string): Generator<HistoryPart> {
  const file = historyFile(folder);
  if (!existsSync(file)) return;
  const store = new HistoryStore(file, usualBounds);
  try {
    for (let part = store.partAfter(0); part; part = store.partAfter(part.last)) yield { ...part, epoch: 0 };
  } finally {
    store.close();
  }
}

/** Writes the history of a store into a folder. */
async function writeHistory(folder: string, log: Log): Promise<void> {
  const store = new HistoryStore(historyFile(folder), usualBounds);
  try {
    for await (const part of partsOfHistory(log)) store.receive([part]);
  } finally {
    store.close();
  }
}

/** Uses a file in a folder of its own below another one, which is removed afterwards. */
export async function inDraft<T>(parent: string, use: (file: string) => Promise<T>): Promise<T> {
  const draft = mkdtempSync(join(parent, "machines-draft-"));
  try {
    return await use(join(draft, "service.db"));
  } finally {
    rmSync(draft, { recursive: true });
  }
}

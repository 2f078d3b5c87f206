// The store that members share: how a process gets to it, and what its data folder has of it.
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createIds, systemRandom } from "../ids.ts";
import { identityOf, type Identity } from "../replication/identity.ts";
import { LogUnavailable, type Log, type Members } from "../replication/log.ts";
import { logSchema, openPostgresLog } from "../replication/postgresLog.ts";
import { CannotOpen, SealedLog } from "../replication/sealedLog.ts";
import { untilAnswered } from "../replication/untilAnswered.ts";
import { LocalAuthority, rootFile, rootKeyFile } from "../runtime/localAuthority.ts";
import { storeFile } from "../store/database.ts";
import { dataIdFile, dataIdOf } from "../store/dataId.ts";
import { keyBytes, keyText, readKey } from "../store/keyFile.ts";
import { isCopyFile } from "../store/memberCopy.ts";
import { writePrivately } from "../store/privateFile.ts";
import { tokenFile } from "../store/tokenFile.ts";
import { keyFile } from "../store/vault.ts";
import { Problem } from "./problem.ts";

/** The key of all members, from the file of an option. */
export function readStoreKey(file: string | undefined, option = "--key-file"): Uint8Array {
  if (file === undefined) throw new Problem(`--store needs ${option}, a file with the key that seals the data`);
  const make = "make one with `machines-service key new`";
  if (!existsSync(file)) throw new Problem(`${option}: there is no file ${file}; ${make}`);
  const key = readKey(file);
  if (key === undefined) throw new Problem(`${option}: ${file} holds no key; ${make}`);
  return key;
}

/** Refuses a folder with data of its own: a copy is replaced by what the log has. */
export function requireFreeFolder(folder: string): void {
  if (existsSync(storeFile(folder)) && !isCopyFile(storeFile(folder)))
    throw new Problem(
      `${folder} has data of its own; move them into the store with \`import\`, or choose another --data folder`,
    );
}

/** The log in a database. Throws a Problem if it cannot be used. */
export const openStore = async (url: string, key: Uint8Array): Promise<Log> =>
  new SealedLog(await openLog(url), key, systemRandom());

/** Uses what members know of each other, for which no key is needed. */
export async function withMembers<T>(url: string, use: (log: Members & Pick<Log, "extent">) => Promise<T>): Promise<T> {
  const log = await openLog(url);
  try {
    return await use(log);
  } finally {
    await log.close();
  }
}

async function openLog(url: string): Promise<Log> {
  if (!URL.canParse(url) || !/^postgres(?:ql)?:$/.test(new URL(url).protocol))
    throw new Problem("--store takes the URL of a PostgreSQL database, as postgres://user:password@host/name");
  try {
    return await openPostgresLog(url);
  } catch (error) {
    const { host, pathname } = new URL(url);
    const what = error instanceof LogUnavailable ? "cannot be reached" : "cannot be used";
    const why = error instanceof Error ? error.message : String(error);
    throw new Problem(`--store: the database ${pathname.slice(1)} at ${host} ${what}: ${why}`);
  }
}

/** The log in a database; the data folder gets what it needs to lead. The first member creates the identity of the data. */
export async function joinStore(url: string, key: Uint8Array, folder: string): Promise<Log> {
  const log = await openStore(url, key);
  const { files, movedTo } = await withKey(() => untilAnswered(() => identityOf(log, newIdentity)));
  if (movedTo !== undefined)
    throw new Problem(
      `--store: the data were moved to ${movedTo}; to begin with an empty store, drop the schema ${logSchema} of the database`,
    );
  if (
    existsSync(dataIdFile(folder)) &&
    readFileSync(dataIdFile(folder), "utf8") !== files[basename(dataIdFile(folder))]
  )
    throw new Problem(`${folder} belongs to another service; choose another --data folder`);
  for (const [name, contents] of Object.entries(files)) writePrivately(join(folder, name), contents);
  return log;
}

/** Says what a wrong key means. */
export async function withKey<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof CannotOpen)) throw error;
    throw new Problem("--key-file: this database belongs to another service, which has another key");
  }
}

/** The files of a data folder that identify its data, and that a store keeps for all members. */
export const identityFiles = [keyFile, tokenFile, dataIdFile, rootFile, rootKeyFile] as const;

/** The identity of a data folder. */
export function identityIn(folder: string): Identity {
  const there = identityFiles.map((pathOf) => pathOf(folder)).filter((file) => existsSync(file));
  return { files: Object.fromEntries(there.map((file) => [basename(file), readFileSync(file, "utf8")])) };
}

async function newIdentity(): Promise<Identity> {
  const folder = mkdtempSync(join(tmpdir(), "machines-identity-"));
  try {
    await new LocalAuthority(folder).root();
    dataIdOf(folder, randomBytes);
    writePrivately(keyFile(folder), keyText(randomBytes(keyBytes)));
    writePrivately(tokenFile(folder), `${createIds(systemRandom()).accessToken()}\n`);
    return identityIn(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

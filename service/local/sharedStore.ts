// The store that members share: how a process gets to it, and what its data folder has of it.
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createIds, systemRandom } from "../ids.ts";
import { identityOf, type Identity } from "../replication/identity.ts";
import { LogUnavailable, type Log } from "../replication/log.ts";
import { openPostgresLog } from "../replication/postgresLog.ts";
import { CannotOpen, SealedLog } from "../replication/sealedLog.ts";
import { LocalAuthority, rootFile, rootKeyFile } from "../runtime/localAuthority.ts";
import { storeFile } from "../store/database.ts";
import { dataIdFile, dataIdOf } from "../store/dataId.ts";
import { keyText, readKey } from "../store/keyFile.ts";
import { isCopyFile } from "../store/memberCopy.ts";
import { writePrivately } from "../store/privateFile.ts";
import { tokenFile } from "../store/tokenFile.ts";
import { keyFile } from "../store/vault.ts";
import { Problem } from "./problem.ts";

/** The key of all members, from the file of `--key-file`. */
export function readStoreKey(file: string | undefined): Uint8Array {
  if (file === undefined) throw new Problem("--store needs --key-file, a file with the key that seals the data");
  const make = "make one with `machines-service key new`";
  if (!existsSync(file)) throw new Problem(`--key-file: there is no file ${file}; ${make}`);
  const key = readKey(file);
  if (key === undefined) throw new Problem(`--key-file: ${file} holds no key; ${make}`);
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
export async function openStore(url: string, key: Uint8Array): Promise<Log> {
  if (!URL.canParse(url) || !/^postgres(?:ql)?:$/.test(new URL(url).protocol))
    throw new Problem("--store takes the URL of a PostgreSQL database, as postgres://user:password@host/name");
  try {
    return new SealedLog(await openPostgresLog(url), key, systemRandom());
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
  const identity = await identityOf(log, newIdentity).catch((error: unknown) => {
    if (!(error instanceof CannotOpen)) throw error;
    throw new Problem("--key-file: this database belongs to another service, which has another key");
  });
  if (existsSync(dataIdFile(folder)) && readFileSync(dataIdFile(folder), "utf8").trim() !== identity.dataId)
    throw new Problem(`${folder} belongs to another service; choose another --data folder`);
  for (const [file, contents] of filesOf(folder, identity, key)) writePrivately(file, contents);
  return log;
}

async function newIdentity(): Promise<Identity> {
  const folder = mkdtempSync(join(tmpdir(), "machines-identity-"));
  try {
    await new LocalAuthority(folder).root();
    return {
      dataId: dataIdOf(undefined, randomBytes),
      token: createIds(systemRandom()).accessToken(),
      authority: {
        certificate: readFileSync(rootFile(folder), "utf8"),
        key: readFileSync(rootKeyFile(folder), "utf8"),
      },
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** What a folder has of the identity, so that the service and its commands use it like that of a single process. */
const filesOf = (folder: string, { dataId, token, authority }: Identity, key: Uint8Array): [string, string][] => [
  [keyFile(folder), keyText(key)],
  [tokenFile(folder), `${token}\n`],
  [dataIdFile(folder), `${dataId}\n`],
  [rootFile(folder), authority.certificate],
  [rootKeyFile(folder), authority.key],
];

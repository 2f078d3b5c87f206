// The users of this computer that the programs of clusters run as. A service that is root gives each cluster two of its own, so that
// a client who becomes superuser of a server can reach nothing but its data.
import { execFile } from "node:child_process";
import { randomInt } from "node:crypto";
import { chmodSync, chownSync, existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { chmod, chown, lchown, lstat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { ownAll, removeLinks } from "./files.ts";
import { PostgresError } from "./postgresError.ts";
import { endProcessesOf, usersOfProcesses, worksElsewhere, type ProgramUser } from "./processes.ts";

const run = promisify(execFile);

/** A user of this computer, as which programs run. */
export interface Account extends ProgramUser {
  /** Gives it a folder and all that is in it; the folder itself last. */
  own(folder: string): Promise<void>;
  /** Gives it a single file or folder. */
  give(path: string): Promise<void>;
  /** Lets it read a file that remains the service's. */
  show(file: string): Promise<void>;
  /** Ends all its processes. */
  endProcesses(): Promise<void>;
}

/** The folders of a cluster that have an owner of their own. */
interface Folders {
  readonly folder: string;
  readonly data: string;
  readonly wal: string;
  readonly backups: string;
  readonly pooler: string;
  /** A file of root's beside the data. */
  readonly entryKey: string;
}

/** The users of the clusters in a folder. */
export interface Accounts {
  /** Lets the users reach the folder of all clusters. */
  reach(): void;
  /** Lets the users reach what they own in the folder of a cluster. */
  open(folder: string): Promise<void>;
  /** The user that writes empty clusters: the program for it wants one with a name. */
  readonly initial: Account;
  /** The user of the server of a cluster; undefined if the cluster has none yet. */
  known(folders: Folders): Account | undefined;
  /** The user of the server of a cluster, which gets one with its first start. No process may use its folder then. */
  serverOf(folders: Folders): Promise<Account>;
  /** The user of the pooler of a cluster that has a server. */
  poolerOf(folders: Folders): Account;
}

type Command = ProgramUser["command"];

/** The users of a service that is not root: the service's own. */
function ourselves(command: Command): Accounts {
  const nothing = (): Promise<void> => Promise.resolve();
  const account = { command, options: {}, own: nothing, give: nothing, show: nothing, endProcesses: nothing };
  return {
    reach: () => {},
    open: nothing,
    initial: account,
    known: () => account,
    serverOf: () => Promise.resolve(account),
    poolerOf: () => account,
  };
}

/** A user by its numbers. */
const accountOf = (command: Command, uid: number, gid: number): Account => ({
  command,
  options: { uid, gid },
  own: (folder) => ownAll(folder, uid, gid),
  give: (path) => chown(path, uid, gid),
  async show(file) {
    await chown(file, 0, gid);
    await chmod(file, 0o640);
  },
  endProcesses: () => endProcessesOf(uid, gid),
});

/** Numbers from the first to the last one. */
interface Range {
  readonly first: number;
  readonly last: number;
}

// Distributions and systemd give these numbers to no one (https://systemd.io/UIDS-GIDS). Containers without so many numbers have
// 65,536, and hardly any users.
const ranges: readonly Range[] = [
  { first: 0x70000000, last: 0x7ffffffd },
  { first: 30_000, last: 59_999 },
];

/** Whether a process of this namespace can have all numbers of a range. */
function isMapped(kind: "uid" | "gid", { first, last }: Range): boolean {
  const file = `/proc/self/${kind}_map`;
  if (!existsSync(file)) return true;
  return readFileSync(file, "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number))
    .some(([inside = 0, , count = 0]) => inside <= first && last < inside + count);
}

const usersFile = (): readonly string[] => readFileSync("/etc/passwd", "utf8").split("\n");

/** The first of these users that exists. */
function userOf(...names: readonly string[]): { readonly name: string; readonly uid: number; readonly gid: number } {
  for (const wanted of names) {
    const line = usersFile().find((one) => one.startsWith(`${wanted}:`));
    const [name, , uid, gid] = line?.split(":") ?? [];
    if (name !== undefined) return { name, uid: Number(uid), gid: Number(gid) };
  }
  throw new PostgresError(`PostgreSQL does not run as root, and there is no user ${names.join(" or ")}.`);
}

/** Root's choice of users for the clusters in a folder: an even number for the server, and the next one for its pooler. */
class OwnUsers implements Accounts {
  readonly initial: Account;
  readonly #folder: string;
  readonly #command: Command;
  readonly #range: Range;
  /** The clusters of the users that were seen. */
  readonly #clusters = new Map<number, string>();

  constructor(folder: string, command: Command, initial: { readonly uid: number; readonly gid: number }, range: Range) {
    this.initial = accountOf(command, initial.uid, initial.gid);
    this.#folder = folder;
    this.#command = command;
    this.#range = range;
  }

  reach(): void {
    // Others may pass through these folders, but not read them; what is in them remains private.
    chmodSync(dirname(this.#folder), 0o711);
    chownSync(this.#folder, 0, 0);
    chmodSync(this.#folder, 0o711);
  }

  async open(folder: string): Promise<void> {
    await lchown(folder, 0, 0);
    await chmod(folder, 0o711);
  }

  known(folders: Folders): Account | undefined {
    const uid = this.#ownerOf(folders);
    return uid === undefined ? undefined : accountOf(this.#command, uid, uid);
  }

  /** Its data says whose it is. A copy that someone made of a cluster's folder does not keep the owner: both servers would be one user. */
  #ownerOf({ folder, data, entryKey }: Folders): number | undefined {
    const uid = existsSync(data) ? lstatSync(data).uid : 0;
    if (uid < this.#range.first || uid > this.#range.last) return undefined;
    if (!this.#clusters.has(uid)) {
      if (worksElsewhere(uid, data, basename(entryKey))) return undefined;
      this.#clusters.set(uid, folder);
    }
    return this.#clusters.get(uid) === folder ? uid : undefined;
  }

  async serverOf(folders: Folders): Promise<Account> {
    const { folder, data, wal, backups, pooler } = folders;
    await this.open(folder);
    if (existsSync(backups)) await lchown(backups, 0, 0);
    const known = this.#ownerOf(folders);
    if (known === undefined) {
      // In a cluster of an earlier version, all of it was the server's user's.
      await removeLinks(folder);
      if (existsSync(pooler)) {
        await lchown(pooler, 0, 0);
        await removeLinks(pooler);
      }
    }
    const uid = known ?? this.#unused(folder);
    const account = accountOf(this.#command, uid, uid);
    // The data is last: it says that the rest is done.
    for (const owned of [wal, data]) if ((await lstat(owned)).uid !== uid) await account.own(owned);
    return account;
  }

  poolerOf(folders: Folders): Account {
    const uid = this.#ownerOf(folders);
    if (uid === undefined) throw new PostgresError("the cluster has no server");
    // It reads the key of the server's certificate, which the server's group may.
    return accountOf(this.#command, uid + 1, uid);
  }

  /** A number that no one has. */
  #unused(folder: string): number {
    const used = new Set([
      ...usersFile().map((line) => Number(line.split(":")[2])),
      ...usersOfProcesses(),
      ...readdirSync(this.#folder)
        .map((name) => join(this.#folder, name, "data"))
        .flatMap(ownersOf),
      ...this.#clusters.keys(),
    ]);
    const { first, last } = this.#range;
    for (;;) {
      // Other services on this computer choose from the same numbers.
      const uid = first + 2 * randomInt(Math.floor((last + 1 - first) / 2));
      if (used.has(uid) || used.has(uid + 1)) continue;
      this.#clusters.set(uid, folder);
      return uid;
    }
  }
}

const ownersOf = (path: string): number[] => (existsSync(path) ? [lstatSync(path).uid] : []);

/** How programs are started: so that they cannot become root by a program that is allowed to, such as `sudo`. */
async function commandHere(): Promise<Command> {
  if (!(await succeeds("setpriv", ["--no-new-privs", "true"]))) return (program, args) => [program, [...args]];
  return (program, args) => ["setpriv", ["--no-new-privs", program, ...args]];
}

/**
 * The users for servers whose data is in a folder.
 * @throws PostgresError if this is root and no other user can reach the folder, or start the programs.
 */
export async function findAccounts(folder: string, programs: readonly string[] = []): Promise<Accounts> {
  const command = await commandHere();
  if (process.getuid?.() !== 0) return ourselves(command);
  const range = ranges.find((one) => isMapped("uid", one) && isMapped("gid", one));
  // Nothing but the groups of the new user may remain.
  const becomes = `test "$(id -u) $(id -G)" = "${range?.first} ${range?.first}"`;
  if (!range || !(await succeeds("sh", ["-c", becomes], { uid: range.first, gid: range.first })))
    throw new PostgresError(
      "Each Postgres cluster runs as a user of its own, and this root may not start programs as other users (in a container, these are the capabilities SETUID and SETGID). Allow it, or start the service as another user than root.",
    );
  const { name, uid, gid } = userOf("postgres", "nobody");
  const accounts = new OwnUsers(folder, command, { uid, gid }, range);
  accounts.reach();
  if (!(await succeeds("test", ["-x", folder], { uid, gid })))
    throw new PostgresError(
      `PostgreSQL does not run as root, and the user ${name} cannot reach ${folder}. Choose a data folder that it can reach with --data.`,
    );
  // Packages that were installed in a home folder, or with a strict umask, are for their owner alone.
  for (const program of programs)
    if (existsSync(program) && !(await succeeds("test", ["-x", program], { uid, gid })))
      throw new PostgresError(
        `PostgreSQL does not run as root, and the user ${name} cannot start ${program}. Install it where that user can read it, or use --postgres simulated.`,
      );
  return accounts;
}

const succeeds = (program: string, args: readonly string[], options: object = {}): Promise<boolean> =>
  run(program, [...args], options).then(
    () => true,
    () => false,
  );

// The account that servers run as. PostgreSQL refuses to run as root, so root starts it as another user.
import { execFile, type SpawnOptions } from "node:child_process";
import { chmodSync, chownSync, readFileSync } from "node:fs";
import { readdir, lchown } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { PostgresError } from "./postgresError.ts";

const run = promisify(execFile);

/** How programs are started, and who owns their files. */
export interface Account {
  /** The program and the arguments that start a program. */
  readonly command: (program: string, args: readonly string[]) => readonly [string, string[]];
  readonly options: Pick<SpawnOptions, "uid" | "gid">;
  /** Lets the account reach the folder of all clusters. */
  reach(): void;
  /** Gives a folder and all that is in it to the account. */
  own(folder: string): Promise<void>;
}

const plainCommand = (program: string, args: readonly string[]): readonly [string, string[]] => [program, [...args]];

const ourselves: Account = {
  command: plainCommand,
  options: {},
  reach: () => {},
  own: () => Promise.resolve(),
};

// A namespace in which root is the user `nobody`; outside of it, the files remain root's.
const namespace = ["--user", "--map-user=65534", "--map-group=65534"];

/** The ids of the first of these users that exists. */
function idsOf(...users: readonly string[]): { readonly name: string; readonly uid: number; readonly gid: number } {
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  for (const user of users) {
    const [name, , uid, gid] = lines.find((line) => line.startsWith(`${user}:`))?.split(":") ?? [];
    if (name !== undefined) return { name, uid: Number(uid), gid: Number(gid) };
  }
  throw new PostgresError(`PostgreSQL does not run as root, and there is no user ${users.join(" or ")}.`);
}

async function ownAll(folder: string, uid: number, gid: number): Promise<void> {
  await lchown(folder, uid, gid);
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true }))
    await lchown(join(entry.parentPath, entry.name), uid, gid);
}

/**
 * The account for servers whose data is in a folder.
 * @throws PostgresError if this is root and no other user can reach the folder, or start the programs.
 */
export async function findAccount(
  folder: string,
  { namespaces, programs = [] }: { readonly namespaces: boolean; readonly programs?: readonly string[] },
): Promise<Account> {
  if (process.getuid?.() !== 0) return ourselves;
  if (namespaces && (await succeeds("unshare", [...namespace, "true"])))
    return { ...ourselves, command: (program, args) => ["unshare", [...namespace, program, ...args]] };
  const { name, uid, gid } = idsOf("postgres", "nobody");
  const reach = (): void => {
    // Others may pass through the data folder, but not read it; its files remain private.
    chmodSync(dirname(folder), 0o711);
    chownSync(folder, uid, gid);
  };
  reach();
  if (!(await succeeds("test", ["-x", folder], { uid, gid })))
    throw new PostgresError(
      `PostgreSQL does not run as root, and the user ${name} cannot reach ${folder}. Choose a data folder that it can reach with --data.`,
    );
  // Packages that were installed in a home folder, or with a strict umask, are for their owner alone.
  for (const program of programs)
    if (!(await succeeds("test", ["-x", program], { uid, gid })))
      throw new PostgresError(
        `PostgreSQL does not run as root, and the user ${name} cannot start ${program}. Install it where that user can read it, or use --postgres simulated.`,
      );
  return {
    command: plainCommand,
    options: { uid, gid },
    reach,
    own: (owned) => ownAll(owned, uid, gid),
  };
}

const succeeds = (program: string, args: readonly string[], options: object = {}): Promise<boolean> =>
  run(program, [...args], options).then(
    () => true,
    () => false,
  );

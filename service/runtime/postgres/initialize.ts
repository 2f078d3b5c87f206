// Creates empty clusters of databases.
import { execFile } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { promisify } from "node:util";
import type { Binaries } from "./binaries.ts";
import { PostgresError } from "./postgresError.ts";
import { endProcessesIn, environment, lastLine } from "./processes.ts";
import type { Installation } from "./installation.ts";
import type { Paths } from "./paths.ts";
import { superuser } from "./settings.ts";

const run = promisify(execFile);

/**
 * Creates an empty cluster of databases in the draft folder. It is tried twice: a program that a killed service has left may write
 * into the folder once more.
 */
export async function initialize(installation: Installation, binaries: Binaries, paths: Paths): Promise<void> {
  await writeEmpty(installation, binaries, paths).catch(() => writeEmpty(installation, binaries, paths));
}

async function writeEmpty({ accounts }: Installation, binaries: Binaries, paths: Paths): Promise<void> {
  const { draft, folder } = paths;
  // A service that was killed leaves the program running.
  await endProcessesIn(draft);
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { mode: 0o700 });
  await accounts.open(folder);
  await accounts.initial.give(draft);
  // Nobody enters by these rules, and no role has a password.
  const [program, args] = accounts.initial.command(binaries.initdb, [
    ...["--pgdata", draft, "--username", superuser, "--auth", "reject"],
    ...["--encoding", "UTF8", "--no-locale", "--no-sync", "--no-instructions"],
  ]);
  try {
    await run(program, args, { ...accounts.initial.options, env: environment() });
  } catch (error) {
    const text = (error as { readonly stderr?: string }).stderr ?? String(error);
    throw new PostgresError(lastLine(text, /(?:error|FATAL): +(.*)/));
  }
}

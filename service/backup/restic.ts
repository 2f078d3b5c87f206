// Runs restic, which keeps the backups: encrypted, deduplicated and verified, in a folder or at a provider. Its secrets are only in
// its environment, because others see the arguments of a process.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { BackupError } from "./backupError.ts";
import { variablesIn } from "./variables.ts";

/** Where the backups are, and how restic opens them. */
export interface Repository {
  /** A folder, or an address that restic knows, such as `s3:https://s3.example.com/bucket`. */
  readonly at: string;
  /** The program. Default: `restic` on PATH. */
  readonly restic?: string | undefined;
  /** File with the passphrase. */
  readonly passphraseFile?: string | undefined;
  /** Command that prints the passphrase. */
  readonly passphraseCommand?: string | undefined;
  /** File with further variables, such as the credentials of a provider: `NAME=value` on each line. */
  readonly environmentFile?: string | undefined;
}

/** What restic says about a stored snapshot. */
export interface Stored {
  readonly id: string;
  /** When it was begun, in milliseconds since 1970. */
  readonly time: number;
  readonly tags: readonly string[];
  /** The paths that it has. */
  readonly paths: readonly string[];
}

/** A snapshot as restic lists it. */
interface Listed {
  readonly id: string;
  readonly time: string;
  readonly tags?: readonly string[];
  readonly paths?: readonly string[];
}

/** The result of storing something. */
export interface Added {
  readonly snapshot: string;
  /** Bytes that the repository has grown by. */
  readonly bytes: number;
}

/** Exit codes of restic (https://restic.readthedocs.io/en/stable/075_scripting.html#exit-codes). */
const codes = { noRepository: 10, locked: 11, wrongPassphrase: 12 } as const;

const installation =
  "install restic 0.17 or newer (apt-get install restic, brew install restic, or https://restic.net), or name the program with --restic";

/** One run of restic. */
interface Run {
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly input?: Readable;
  /** Exit codes that are answers. */
  readonly allowed?: readonly number[];
}

/** A repository of restic. */
export class Restic {
  readonly #repository: Repository;
  readonly #cache: string;
  readonly #signal: AbortSignal | undefined;

  /** `cache` is a folder for what restic keeps of the repository. The signal ends what runs. */
  constructor(repository: Repository, cache: string, signal?: AbortSignal) {
    this.#repository = repository;
    this.#cache = cache;
    this.#signal = signal;
    requireProgram(this.#program);
    if (repository.passphraseFile === undefined && repository.passphraseCommand === undefined)
      throw new BackupError(
        `the backups in ${shown(repository.at)} need a passphrase: add --backup-passphrase-file or --backup-passphrase-command`,
      );
  }

  get #program(): string {
    return this.#repository.restic ?? "restic";
  }

  /** Creates the repository unless it exists, and removes locks that killed processes have left. */
  async prepare(): Promise<void> {
    const { code } = await this.#run({ args: ["cat", "config"], allowed: [0, codes.noRepository] });
    if (code === codes.noRepository) await this.#run({ args: ["init"] });
    else await this.#run({ args: ["unlock"] });
  }

  /** Stores the contents of a folder. */
  async storeFolder(folder: string, tags: readonly string[]): Promise<Added> {
    return addedBy(await this.#run({ args: [...storing(tags), "."], cwd: folder }));
  }

  /** Stores files and folders by their paths. */
  async storePaths(paths: readonly string[], tags: readonly string[]): Promise<Added> {
    return addedBy(await this.#run({ args: [...storing(tags), ...paths] }));
  }

  /** Stores a stream as a file. */
  async storeStream(input: Readable, name: string, tags: readonly string[]): Promise<Added> {
    return addedBy(await this.#run({ args: [...storing(tags), "--stdin", "--stdin-filename", name], input }));
  }

  /** The stored snapshots with all of these tags, oldest first. */
  async snapshots(...tags: readonly string[]): Promise<readonly Stored[]> {
    const filter = tags.length === 0 ? [] : ["--tag", tags.join(",")];
    const { stdout } = await this.#run({ args: ["snapshots", "--json", "--no-lock", ...filter] });
    const found = JSON.parse(stdout) as readonly Listed[] | null;
    return (found ?? [])
      .map(({ id, time, tags: of = [], paths = [] }) => ({ id, time: Date.parse(time), tags: of, paths }))
      .sort((a, b) => a.time - b.time);
  }

  /** A stored file as text. */
  async text(snapshot: string, file: string): Promise<string> {
    const { stdout } = await this.#run({ args: ["dump", "--no-lock", snapshot, `/${file}`] });
    return stdout;
  }

  /** Uses the bytes of a stored file. Restic compares them with their hashes. */
  async read<T>(snapshot: string, file: string, use: (bytes: Readable) => Promise<T>): Promise<T> {
    const child = this.#spawn({ args: ["dump", snapshot, `/${file}`] });
    const ended = ending(child, false);
    try {
      const [used] = await Promise.all([use(child.stdout as Readable), ended.then((end) => this.#check(end, [0]))]);
      return used;
    } finally {
      child.kill("SIGINT");
      await ended.catch(() => {});
    }
  }

  /** Writes a stored folder below a target. */
  async restore(snapshot: string, folder: string, target: string): Promise<void> {
    mkdirSync(target, { recursive: true, mode: 0o700 });
    await this.#run({ args: ["restore", `${snapshot}:${folder}`, "--target", target, "--quiet"] });
  }

  /** Removes snapshots, and the data that nothing else needs. */
  async remove(snapshots: readonly string[]): Promise<void> {
    // Arguments have a limit.
    for (let i = 0; i < snapshots.length; i += 500)
      await this.#run({ args: ["forget", "--quiet", ...snapshots.slice(i, i + 500)] });
    if (snapshots.length > 0) await this.#run({ args: ["prune", "--quiet"] });
  }

  /** Compares the structure of the repository with what it should be. */
  async check(): Promise<void> {
    await this.#run({ args: ["check", "--quiet"] });
  }

  async #run(run: Run): Promise<Ended> {
    const child = this.#spawn(run);
    const ended = ending(child);
    const { input } = run;
    if (input) {
      const stdin = child.stdin as NonNullable<ChildProcess["stdin"]>;
      // A stream that breaks must not look like its end: restic would store the beginning as if it were all.
      await pipeline(input, stdin).catch(async (error: unknown) => {
        child.kill("SIGINT");
        const end = await ended;
        if (end.code !== 0 && end.code !== null && !isInterrupted(end)) this.#check(end, [0]);
        throw error;
      });
    }
    const end = await ended;
    this.#check(end, run.allowed ?? [0]);
    return end;
  }

  #spawn({ args, cwd, input }: Run): ChildProcess {
    this.#signal?.throwIfAborted();
    mkdirSync(this.#cache, { recursive: true, mode: 0o700 });
    const child = spawn(this.#program, ["--retry-lock", "10m", ...args], {
      cwd: cwd ?? this.#cache,
      env: environmentOf(this.#repository, this.#cache),
      stdio: [input ? "pipe" : "ignore", "pipe", "pipe"],
    });
    const stop = (): void => void child.kill("SIGINT");
    this.#signal?.addEventListener("abort", stop);
    child.once("close", () => this.#signal?.removeEventListener("abort", stop));
    return child;
  }

  #check({ code, stderr }: Ended, allowed: readonly number[]): void {
    if (code !== null && allowed.includes(code)) return;
    this.#signal?.throwIfAborted();
    const at = shown(this.#repository.at);
    if (code === codes.noRepository) throw new BackupError(`there are no backups in ${at}`);
    if (code === codes.wrongPassphrase) throw new BackupError(`the passphrase does not open the backups in ${at}`);
    if (code === codes.locked) throw new BackupError(`another process works on the backups in ${at}; try again`);
    throw new BackupError(`restic failed on ${at}: ${lastWords(stderr)}`);
  }
}

/** How a process ended, with what it wrote. */
interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const isInterrupted = ({ code }: Ended): boolean => code === 130;

/** Waits for its end. Its output is either text, or read elsewhere. */
async function ending(child: ChildProcess, isText = true): Promise<Ended> {
  let [stdout, stderr] = ["", ""];
  if (isText) child.stdout?.setEncoding("utf8").on("data", (part: string) => (stdout += part));
  child.stderr?.setEncoding("utf8").on("data", (part: string) => (stderr = `${stderr}${part}`.slice(-8192)));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout, stderr };
}

const storing = (tags: readonly string[]): string[] => [
  ...["backup", "--json", "--quiet", "--host", "machines-service"],
  ...tags.flatMap((tag) => ["--tag", tag]),
];

function addedBy({ stdout }: Ended): Added {
  const line = stdout.split("\n").find((one) => one.includes('"message_type":"summary"'));
  if (line === undefined) throw new BackupError("restic has stored nothing");
  const { snapshot_id, data_added_packed } = JSON.parse(line) as { snapshot_id: string; data_added_packed?: number };
  return { snapshot: snapshot_id, bytes: data_added_packed ?? 0 };
}

/** Its last line, which has the reason. Restic writes no passphrases and keys. */
const lastWords = (text: string): string =>
  text
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .at(-1)
    ?.replace(/^Fatal: /, "") ?? "it said nothing";

/** A repository in messages: addresses may have a password. */
export const shown = (at: string): string => at.replace(/\/\/[^/@]*@/, "//");

function requireProgram(program: string): void {
  const found = program.includes("/")
    ? existsSync(program)
    : (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)));
  if (!found) throw new BackupError(`backups need the program restic, and ${program} was not found: ${installation}`);
}

function environmentOf(repository: Repository, cache: string): NodeJS.ProcessEnv {
  const { at, passphraseFile, passphraseCommand, environmentFile } = repository;
  // Settings of restic that the user has for other repositories must not apply.
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("RESTIC_"));
  return {
    ...Object.fromEntries(own),
    ...(environmentFile === undefined ? {} : variablesIn("--backup-environment", environmentFile)),
    RESTIC_REPOSITORY: at,
    RESTIC_CACHE_DIR: cache,
    ...(passphraseFile === undefined ? {} : { RESTIC_PASSWORD_FILE: passphraseFile }),
    ...(passphraseCommand === undefined ? {} : { RESTIC_PASSWORD_COMMAND: passphraseCommand }),
  };
}

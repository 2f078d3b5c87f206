// One server: its folder, its process, and the service's connection to it.
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { bind } from "../bind.ts";
import { codeOf } from "../errorCode.ts";
import type { EngineHost } from "../postgresEngine.ts";
import type { Account } from "./account.ts";
import type { Binaries } from "./binaries.ts";
import { PostgresError, ServerKilled } from "./postgresError.ts";
import { endProcess, endProcessesIn, environment, lastLine, launch, runs } from "./processes.ts";
import { scramVerifier } from "./scram.ts";
import { optionsOf, sessions, type Session } from "./sessions.ts";
import { accessRules, configurationOf, superuser, type Recovery, type ServerSettings } from "./settings.ts";
import { certify } from "./tls.ts";

const run = promisify(execFile);

/** Pause between two attempts to connect to a server that is starting. */
const connectPause = 5;

// ASSUMED: a server that is to stop ends its connections at once; after a minute it ends without a checkpoint, and recovers at
// its next start.
const stopMs = 60_000;

/** The folders and files of a cluster. */
export const pathsOf = (folder: string) => ({
  folder,
  data: join(folder, "data"),
  /** The data while it is being written. */
  draft: join(folder, "data.draft"),
  wal: join(folder, "wal"),
  backups: join(folder, "backups"),
  log: join(folder, "server.log"),
  pooler: join(folder, "pooler"),
  recovery: join(folder, "recovery.json"),
  certificate: join(folder, "tls.crt"),
  key: join(folder, "tls.key"),
});

/** The folders and files of a cluster. */
export type Paths = ReturnType<typeof pathsOf>;

/** What every server of an engine needs. */
export interface Installation {
  readonly account: Account;
  /** Password of the service's own role. */
  readonly password: string;
  /** Password of the service's role in the databases of a cluster's clients. */
  readonly visitorPassword: (cluster: string) => string;
  /** Addresses to listen at; the first is 127.0.0.1. */
  readonly addresses: readonly string[];
  /** Issues a certificate for these names and addresses, until a time. */
  readonly certificate: EngineHost["certificate"];
}

/**
 * Creates an empty cluster of databases in the draft folder. It is tried twice: a program that a killed service has left may write
 * into the folder once more.
 */
export async function initialize(installation: Installation, binaries: Binaries, paths: Paths): Promise<void> {
  await writeEmpty(installation, binaries, paths).catch(() => writeEmpty(installation, binaries, paths));
}

async function writeEmpty({ account, password }: Installation, binaries: Binaries, paths: Paths): Promise<void> {
  // A service that was killed leaves the program running.
  await endProcessesIn(paths.draft);
  await rm(paths.draft, { recursive: true, force: true });
  // The program takes the form in which it stores the password.
  const passwordFile = join(paths.folder, "initial");
  await writeFile(passwordFile, await scramVerifier(password), { mode: 0o600 });
  await account.own(paths.folder);
  const options = ["--pgdata", paths.draft, "--username", superuser, "--pwfile", passwordFile];
  const [program, args] = account.command(binaries.initdb, [
    ...options,
    ...["--auth", "scram-sha-256", "--encoding", "UTF8", "--no-locale", "--no-sync", "--no-instructions"],
  ]);
  try {
    await run(program, args, { ...account.options, env: environment() });
  } catch (error) {
    const text = (error as { readonly stderr?: string }).stderr ?? String(error);
    throw new PostgresError(lastLine(text, /(?:error|FATAL): +(.*)/));
  } finally {
    await rm(passwordFile, { force: true });
  }
}

/** The draft is complete: it becomes the data. */
export const finishDraft = ({ draft, data }: Paths): Promise<void> => finish(draft, data);

/** Gives a folder its final name, once all that was written in it is on the disk. */
export async function finish(draft: string, target: string): Promise<void> {
  await run("sync", process.platform === "linux" ? ["-f", draft] : []);
  await rename(draft, target);
  const parent = await open(dirname(target));
  await parent.sync();
  await parent.close();
}

/** A running server. */
export interface Running {
  readonly port: number;
  /** The service's own connection; it ends when the server ends. */
  readonly admin: pg.Client;
}

/** The process of a server; undefined if none runs. */
export function processOf({ data }: Pick<Paths, "data">): { readonly pid: number; readonly port: number } | undefined {
  const file = join(data, "postmaster.pid");
  if (!existsSync(file)) return undefined;
  const [pid, , , port] = readFileSync(file, "utf8").split("\n");
  return runs(Number(pid), data) ? { pid: Number(pid), port: Number(port) } : undefined;
}

/** A connection of the service. */
export async function connect(
  { password }: Pick<Installation, "password">,
  port: number,
  database: string,
  session: Session,
): Promise<pg.Client> {
  const client = new pg.Client({
    ...{ host: "127.0.0.1", port, user: session.user, password, database },
    application_name: "machines-service",
    keepAlive: true,
    ssl: false,
    sslnegotiation: "postgres",
  });
  // The library takes what it is not given from variables such as PGOPTIONS, which users set for servers of their own. It takes an empty
  // text as not given.
  (client as unknown as { connectionParameters: { options: unknown } }).connectionParameters.options =
    optionsOf(session);
  // The end of a connection is noticed by its user, or by the next query.
  client.on("error", () => {});
  await client.connect();
  return client;
}

/** Times that a server is started on another port, because another process was faster. */
const mostPorts = 3;

/**
 * Starts a server, or continues with the one that runs, and waits until it can be used.
 * @throws PostgresError if it ends instead, with its last words.
 */
export async function start(
  installation: Installation,
  binaries: Binaries,
  paths: Paths,
  cluster: ServerSettings["cluster"],
  wantedPort: number | undefined,
  signal: AbortSignal,
): Promise<Running> {
  const known = processOf(paths);
  if (known) return untilUsable(installation, paths, known.port, () => processOf(paths) !== undefined, signal);
  // Two servers would destroy the data. One that was killed leaves its children; a killed service leaves one that just starts.
  await endProcessesIn(paths.data);
  const { addresses } = installation;
  const { wal: walFolder, certificate, key } = paths;
  const settings = { cluster, addresses, walFolder, certificate, key };
  for (let attempt = 1; ; attempt++) {
    const port = await freePort(wantedPort);
    try {
      return await startAt(installation, binaries, paths, { ...settings, port }, signal);
    } catch (error) {
      if (!isTaken(error) || attempt === mostPorts) throw error;
      await stop(paths);
    }
  }
}

const isTaken = (error: unknown): boolean =>
  error instanceof PostgresError && /could not create any TCP|has become another program's/.test(error.message);

async function startAt(
  installation: Installation,
  binaries: Binaries,
  paths: Paths,
  settings: ServerSettings,
  signal: AbortSignal,
): Promise<Running> {
  const { account } = installation;
  await mkdir(paths.wal, { recursive: true, mode: 0o700 });
  await certify(installation, paths);
  const recovery = await recoveryOf(paths);
  const configuration = configurationOf({ ...settings, ...(recovery ? { recovery } : {}) });
  await writeFile(join(paths.data, "postgresql.conf"), configuration, { mode: 0o600 });
  await writeFile(join(paths.data, "pg_hba.conf"), accessRules, { mode: 0o600 });
  await account.own(paths.folder);
  // A file of a process that was killed, whose number another process may have by now.
  await rm(join(paths.data, "postmaster.pid"), { force: true });
  const { isAlive } = launch(account, binaries.postgres, ["-D", paths.data], {
    log: paths.log,
    reason: /(?:FATAL|PANIC): +(.*)/,
  });
  return untilUsable(installation, paths, settings.port, isAlive, signal);
}

/** A server that begins to listen, or a pooler. */
export interface Beginning {
  readonly port: number;
  readonly database: string;
  readonly session: Session;
  /** Codes of errors that pass while it begins. */
  readonly passing: readonly string[];
  /** Whether it runs; may throw the reason why it does not. */
  readonly isAlive: () => boolean;
  /** Whether a connection leads to it: another program may have the port. */
  readonly isIt: (client: pg.Client) => Promise<boolean>;
}

/** Connects as soon as it can be used. Undefined if it has ended, without a reason. */
export async function connectOnce(
  installation: Installation,
  { port, database, session, passing, isAlive, isIt }: Beginning,
  signal: AbortSignal,
): Promise<pg.Client | undefined> {
  while (isAlive()) {
    try {
      const client = await connect(installation, port, database, session);
      if (await isIt(client)) return client;
      await client.end();
      throw new PostgresError(`port ${port} has become another program's`);
    } catch (error) {
      if (!passing.includes(codeOf(error))) throw error;
    }
    await sleep(connectPause, undefined, { signal });
  }
  return undefined;
}

async function untilUsable(
  installation: Installation,
  paths: Paths,
  port: number,
  isAlive: () => boolean,
  signal: AbortSignal,
): Promise<Running> {
  const isIt = async (client: pg.Client): Promise<boolean> =>
    (await client.query<{ data_directory: string }>("SHOW data_directory")).rows[0]?.data_directory === paths.data;
  // 57P03: it is starting, or recovering.
  const passing = ["ECONNREFUSED", "ECONNRESET", "57P03"];
  const beginning = { port, database: superuser, session: sessions.superuser, passing, isAlive, isIt };
  const admin = await connectOnce(installation, beginning, signal);
  if (!admin) throw new ServerKilled("the server has ended");
  return { port, admin };
}

/** Stops a server, and waits until its process has ended. */
export async function stop(paths: Paths): Promise<void> {
  const found = processOf(paths);
  if (found) await endProcess(found.pid, paths.data, { signal: "SIGINT", last: "SIGQUIT", patienceMs: stopMs });
  await endProcessesIn(paths.data);
}

/** Keeps where a copy finds the changes since its backup. */
export const writeRecovery = ({ recovery }: Paths, wanted: Recovery): Promise<void> =>
  writeFile(recovery, JSON.stringify(wanted), { mode: 0o600 });

async function recoveryOf({ recovery }: Paths): Promise<Recovery | undefined> {
  return existsSync(recovery) ? (JSON.parse(await readFile(recovery, "utf8")) as Recovery) : undefined;
}

async function listening(port: number): Promise<number> {
  const server = createServer();
  const bound = await bind(server, "127.0.0.1", port);
  await new Promise((resolve) => void server.close(resolve));
  return bound;
}

/** A port of this computer at which nothing listens: the wanted one if possible. */
export const freePort = (wanted = 0): Promise<number> => listening(wanted).catch(() => listening(0));

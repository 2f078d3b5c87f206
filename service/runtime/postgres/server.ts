// One server: its folder, its process, and the service's connection to it.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { bind } from "../bind.ts";
import { codeOf } from "../errorCode.ts";
import type { Account } from "./account.ts";
import type { Binaries } from "./binaries.ts";
import { readSmall } from "./files.ts";
import type { Installation } from "./installation.ts";
import type { Paths } from "./paths.ts";
import { PostgresError, ServerKilled } from "./postgresError.ts";
import { endProcess, endProcessesIn, launch, runs, userOfProcess, worksIn } from "./processes.ts";
import { recoveryFor } from "./recovery.ts";
import { optionsOf, sessions, type Session } from "./sessions.ts";
import { accessRules, configurationOf, superuser, type ServerSettings } from "./settings.ts";
import { certify, certifyEntry, entryOf, isForeign, pinned } from "./tls.ts";

const run = promisify(execFile);

/** Pause between two attempts to connect to a server that is starting. */
const connectPause = 5;

// ASSUMED: a server that is to stop ends its connections at once; after a minute it ends without a checkpoint, and recovers at
// its next start.
const stopMs = 60_000;

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

/** The process of a server; undefined if none runs. One in a folder that was at this path before is another one. */
export function processOf({ data }: Pick<Paths, "data">): { readonly pid: number; readonly port: number } | undefined {
  const [pid, , , port] = (readSmall(join(data, "postmaster.pid")) ?? "").split("\n").map(Number);
  if (pid === undefined || !runs(pid, data) || !worksIn(pid, data)) return undefined;
  return { pid, port: port ?? 0 };
}

// ASSUMED: a program that accepts a connection and says nothing for half a minute is no server.
const answerMs = 30_000;

/**
 * A connection of the service: to a server with its certificate, or to a pooler with its password.
 * @throws PostgresError if another program listens at the port.
 */
export async function connect(
  paths: Paths,
  port: number,
  database: string,
  session: Session,
  password?: string,
): Promise<pg.Client> {
  const client = new pg.Client({
    ...{ host: "127.0.0.1", port, user: session.user, password, database },
    application_name: "machines-service",
    connectionTimeoutMillis: answerMs,
    keepAlive: true,
    ssl: { ...pinned(paths), ...(password === undefined ? entryOf(paths) : {}) },
    sslnegotiation: "postgres",
  });
  // The library takes what it is not given from variables such as PGOPTIONS, which users set for servers of their own. It takes an empty
  // text as not given.
  (client as unknown as { connectionParameters: { options: unknown } }).connectionParameters.options =
    optionsOf(session);
  // The end of a connection is noticed by its user, or by the next query.
  client.on("error", () => {});
  await client.connect().catch((error: unknown) => {
    throw isForeign(error) ? new PostgresError(`port ${port} has become another program's`) : error;
  });
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
  if (known && isCurrent(installation, paths, known.pid)) {
    const isAlive = (): boolean => processOf(paths) !== undefined;
    // Its certificate may have ended, or another program may answer in its place: then it is started anew.
    const running = await untilUsable(paths, known.port, isAlive, signal).catch(unlessTaken);
    if (running) return running;
  }
  // Two servers would destroy the data. One that was killed leaves its children; a killed service leaves one that just starts.
  await stop(installation, paths);
  const { addresses } = installation;
  const { certificate, key, entry, rules } = paths;
  // A server whose folder is moved must not write into the one that takes its place.
  const walFolder = relative(paths.data, paths.wal);
  const settings = { cluster, addresses, walFolder, certificate, key, entry, rules };
  for (let attempt = 1; ; attempt++) {
    const port = await freePort(wantedPort);
    try {
      return await startAt(installation, binaries, paths, { ...settings, port }, signal);
    } catch (error) {
      if (!isTaken(error) || attempt === mostPorts) throw error;
      await stop(installation, paths);
    }
  }
}

function unlessTaken(error: unknown): undefined {
  if (!isTaken(error)) throw error;
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
  await mkdir(paths.wal, { recursive: true, mode: 0o700 });
  const account = await installation.accounts.serverOf(paths);
  await certify(installation, paths);
  await certifyEntry(paths);
  const recovery = await recoveryFor(paths, account);
  const { configuration, rules, certificate, key, entry } = paths;
  await writeFile(configuration, configurationOf({ ...settings, ...(recovery && { recovery }) }), { mode: 0o600 });
  await writeFile(rules, accessRules, { mode: 0o600 });
  for (const file of [configuration, rules, certificate, key, entry]) await account.show(file);
  // A file of a process that was killed, whose number another process may have by now.
  await rm(join(paths.data, "postmaster.pid"), { force: true });
  const args = ["-D", paths.data, "-c", `config_file=${configuration}`];
  const { isAlive } = launch(account, binaries.postgres, args, { log: paths.log, reason: /(?:FATAL|PANIC): +(.*)/ });
  return untilUsable(paths, settings.port, isAlive, signal);
}

/** A server that begins to listen, or a pooler. */
export interface Beginning {
  readonly port: number;
  readonly database: string;
  readonly session: Session;
  /** For a pooler: the service enters a server without one. */
  readonly password?: string;
  /** Codes of errors that pass while it begins. */
  readonly passing: readonly string[];
  /** Whether it runs; may throw the reason why it does not. */
  readonly isAlive: () => boolean;
  /** Whether a connection leads to it: another program may have the port. */
  readonly isIt: (client: pg.Client) => Promise<boolean>;
}

/** Connects as soon as it can be used. Undefined if it has ended, without a reason. */
export async function connectOnce(
  paths: Paths,
  { port, database, session, password, passing, isAlive, isIt }: Beginning,
  signal: AbortSignal,
): Promise<pg.Client | undefined> {
  while (isAlive()) {
    try {
      const client = await connect(paths, port, database, session, password);
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

async function untilUsable(paths: Paths, port: number, isAlive: () => boolean, signal: AbortSignal): Promise<Running> {
  const isIt = async (client: pg.Client): Promise<boolean> =>
    (await client.query<{ data_directory: string }>("SHOW data_directory")).rows[0]?.data_directory === paths.data;
  // 57P03: it is starting, or recovering.
  const passing = ["ECONNREFUSED", "ECONNRESET", "57P03"];
  const beginning = { port, database: superuser, session: sessions.superuser, passing, isAlive, isIt };
  const admin = await connectOnce(paths, beginning, signal);
  if (!admin) throw new ServerKilled("the server has ended");
  return { port, admin };
}

/** Ends the process of a server. False if none runs. */
export async function end(paths: Paths): Promise<boolean> {
  const found = processOf(paths);
  if (found) await endProcess(found.pid, paths.data, { signal: "SIGINT", last: "SIGQUIT", patienceMs: stopMs });
  return found !== undefined;
}

/** Stops a server, and waits until its process has ended, and all that it has started. */
export async function stop({ accounts }: Installation, paths: Paths): Promise<void> {
  await end(paths);
  const account = accounts.known(paths);
  await endProcessesIn(paths.data, usersOf(accounts.initial, account));
  await account?.endProcesses();
}

/** The users that may have processes of a cluster; undefined for a service that is not root. */
function usersOf(initial: Account, own: Account | undefined): number[] | undefined {
  if (initial.options.uid === undefined) return undefined;
  return [0, initial.options.uid, ...(own?.options.uid === undefined ? [] : [own.options.uid])];
}

/** Whether a server was started by this version, as the user that owns its data. */
function isCurrent({ accounts }: Installation, paths: Paths, pid: number): boolean {
  const account = accounts.known(paths);
  if (account === undefined || !existsSync(paths.entryKey)) return false;
  const { uid } = account.options;
  return uid === undefined || uid === userOfProcess(pid);
}

async function listening(port: number): Promise<number> {
  const server = createServer();
  const bound = await bind(server, "127.0.0.1", port);
  await new Promise((resolve) => void server.close(resolve));
  return bound;
}

/** A port of this computer at which nothing listens: the wanted one if possible. */
export const freePort = (wanted = 0): Promise<number> => listening(wanted).catch(() => listening(0));

// The pooler of a cluster: a PgBouncer process in front of its server, which clients enter with the passwords of the server.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";
import type { Cluster } from "../postgresEngine.ts";
import { loginsOf } from "./contents.ts";
import { reasonOf } from "../../reasonOf.ts";
import { PostgresError } from "./postgresError.ts";
import { endProcess, launch, runs } from "./processes.ts";
import { scramVerifier } from "./scram.ts";
import { sessions } from "./sessions.ts";
import type { Installation } from "./installation.ts";
import type { Paths } from "./paths.ts";
import { connectOnce, freePort, type Running } from "./server.ts";
import { connectionsOf, superuser } from "./settings.ts";
import { fingerprintOf } from "./tls.ts";

/** The name for a service without a pooler. */
const noPooler = "none";

/** The database of PgBouncer's console, which no database of a server can replace. */
const consoleDatabase = "pgbouncer";

/** An installed PgBouncer. */
export interface PoolerProgram {
  readonly program: string;
  /** The second number of its version; the first one is 1. */
  readonly minor: number;
}

/** A running pooler. */
export interface RunningPooler {
  readonly port: number;
  /** The service's own connection; it ends when the pooler ends. */
  readonly console: pg.Client;
}

// Debian installs it in a folder that is not on the PATH of every user.
const usualPrograms = ["pgbouncer", "/usr/sbin/pgbouncer"];

/**
 * The versions that began to log in to a server with the keys of a client, to keep prepared statements across transactions, and
 * to end a single client.
 */
export const since = { keys: 14, prepare: 21, killClient: 24 };

/**
 * The named PgBouncer, or the installed one; undefined if there is none, or if the name is `none`.
 * @throws PostgresError if the named one does not run.
 */
export function findPooler(named?: string): PoolerProgram | undefined {
  if (named === noPooler) return undefined;
  for (const program of named === undefined ? usualPrograms : [named]) {
    // There is no output if the program does not exist.
    const { stdout } = spawnSync(program, ["--version"]) as { readonly stdout: Buffer | null };
    const [, major, minor] = /PgBouncer\D*(\d+)\.(\d+)/.exec(stdout?.toString() ?? "") ?? [];
    if (major === "1" && Number(minor) >= since.keys) return { program, minor: Number(minor) };
  }
  if (named === undefined) return undefined;
  throw new PostgresError(
    `--pgbouncer: ${named} is not PgBouncer 1.${since.keys} or newer; install it, or use --pgbouncer ${noPooler}`,
  );
}

const filesOf = ({ pooler }: Paths) => ({
  configuration: join(pooler, "pgbouncer.ini"),
  databases: join(pooler, "databases.ini"),
  users: join(pooler, "users.txt"),
  pid: join(pooler, "pgbouncer.pid"),
  log: join(pooler, "pgbouncer.log"),
});

/** The number of the process of a pooler; undefined if none runs. */
function processOf(paths: Paths): number | undefined {
  const { pid, configuration } = filesOf(paths);
  if (!existsSync(pid)) return undefined;
  const number = Number(readFileSync(pid, "utf8"));
  return runs(number, configuration) ? number : undefined;
}

/** What a pooler is started with. */
interface PoolerSettings {
  readonly cluster: Pick<Cluster, "memoryMb" | "poolMode">;
  readonly port: number;
  readonly addresses: readonly string[];
  readonly minor: number;
}

// Connections of a server that no pool takes: those of the service, of backups and of clients that use the direct address.
const spared = 20;

/**
 * The text of `pgbouncer.ini`. ASSUMED: in the mode `transaction`, a user has at most a quarter of the server's connections in a
 * database; in the mode `session`, where each client keeps its connection, nearly all.
 */
function configurationOf(paths: Paths, { cluster, port, addresses, minor }: PoolerSettings): string {
  const files = filesOf(paths);
  const most = connectionsOf(cluster.memoryMb) - spared;
  const settings: Readonly<Record<string, string | number>> = {
    listen_addr: addresses.join(","),
    listen_port: port,
    unix_socket_dir: "",
    pidfile: files.pid,
    client_tls_sslmode: "allow",
    client_tls_cert_file: paths.certificate,
    client_tls_key_file: paths.key,
    auth_type: "scram-sha-256",
    auth_file: files.users,
    admin_users: superuser,
    pool_mode: cluster.poolMode,
    default_pool_size: cluster.poolMode === "session" ? most : Math.ceil(most / 4),
    max_db_connections: most,
    max_client_conn: 1000,
    // Clients are refused until the next attempt. Without any pause, old versions try as fast as they can.
    server_login_retry: 0.1,
    // Drivers for Java always send it.
    ignore_startup_parameters: "extra_float_digits",
    log_connections: 0,
    log_disconnections: 0,
    log_stats: 0,
    ...(minor >= since.prepare && { max_prepared_statements: 200 }),
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  // A pooler of another version is not continued with, nor one that shows another certificate.
  return [
    `; PgBouncer 1.${minor}, certificate ${fingerprintOf(paths)}`,
    "[pgbouncer]",
    ...lines,
    `%include ${files.databases}`,
    "",
  ].join("\n");
}

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;

/** Writes a file at once, because a pooler also reads its files unasked. */
async function write({ accounts }: Installation, paths: Paths, file: string, text: string): Promise<void> {
  await writeFile(`${file}.draft`, text, { mode: 0o600 });
  await accounts.poolerOf(paths).give(`${file}.draft`);
  await rename(`${file}.draft`, file);
}

/** Writes which databases the server has, and how its users log in. */
async function writeLogins(installation: Installation, paths: Paths, { admin, port }: Running): Promise<void> {
  const { databases, users } = await loginsOf(admin);
  const files = filesOf(paths);
  // No client can create a database with another name.
  const entries = databases
    .filter((name) => /^[\w-]+$/.test(name) && name !== consoleDatabase)
    .map((name) => `${name} = host=127.0.0.1 port=${port}\n`);
  await write(installation, paths, files.databases, `[databases]\n${entries.join("")}`);
  // The service connects to the console as this role. It has no password in the server, so no client can use the pooler as this role.
  const own = { name: superuser, verifier: await scramVerifier(installation.poolerPassword(paths.id)) };
  const lines = [own, ...users].map(({ name, verifier }) => `${quoted(name)} ${quoted(verifier)}\n`);
  await write(installation, paths, files.users, lines.join(""));
}

/**
 * Starts a pooler, or continues with the one that runs, and waits until it can be used.
 * @throws PostgresError if it ends instead, with its last words.
 */
export async function start(
  installation: Installation,
  { program, minor }: PoolerProgram,
  paths: Paths,
  cluster: PoolerSettings["cluster"],
  server: Running,
  wantedPort: number | undefined,
  signal: AbortSignal,
): Promise<RunningPooler> {
  const files = filesOf(paths);
  const { accounts, addresses } = installation;
  const account = accounts.poolerOf(paths);
  const textFor = (port: number): string => configurationOf(paths, { cluster, port, addresses, minor });
  await mkdir(paths.pooler, { recursive: true, mode: 0o700 });
  await account.give(paths.pooler);
  const before = existsSync(files.configuration) ? readFileSync(files.configuration, "utf8") : "";
  const lastPort = Number(/^listen_port = (\d+)$/m.exec(before)?.[1]);
  if (processOf(paths) !== undefined && before === textFor(lastPort)) {
    const running = await untilUsable(installation, paths, lastPort, () => processOf(paths) !== undefined, signal);
    try {
      await refresh(installation, paths, server, running);
      return running;
    } catch (error) {
      await running.console.end();
      throw error;
    }
  }
  await stop(paths);
  await writeLogins(installation, paths, server);
  const port = await freePort(wantedPort);
  await write(installation, paths, files.configuration, textFor(port));
  // A file of a process that was killed, whose number another process may have by now.
  await rm(files.pid, { force: true });
  const { isAlive, kill } = launch(account, program, [files.configuration], {
    log: files.log,
    reason: /(?:ERROR|FATAL(?! cannot load)) (.*)/,
  });
  try {
    return await untilUsable(installation, paths, port, isAlive, signal);
  } catch (error) {
    // It may not have written its number yet, by which it is found.
    kill();
    throw error;
  }
}

async function untilUsable(
  { poolerPassword }: Installation,
  paths: Paths,
  port: number,
  isAlive: () => boolean,
  signal: AbortSignal,
): Promise<RunningPooler> {
  const isIt = async (client: pg.Client): Promise<boolean> => {
    const { rows } = await client.query<{ key: string; value: string }>("SHOW CONFIG");
    return rows.some(({ key, value }) => key === "pidfile" && value === filesOf(paths).pid);
  };
  const passing = ["ECONNREFUSED", "ECONNRESET"];
  const password = poolerPassword(paths.id);
  const beginning = { port, database: consoleDatabase, session: sessions.console, password, passing, isAlive, isIt };
  const console = await connectOnce(paths, beginning, signal);
  if (!console) throw new PostgresError("the pooler has ended");
  return { port, console };
}

/** Lets a pooler know the databases and users that its server has now. */
export async function refresh(
  installation: Installation,
  paths: Paths,
  server: Running,
  { console }: RunningPooler,
): Promise<void> {
  await writeLogins(installation, paths, server);
  await console.query("RELOAD");
  // The service may have ended in the middle of `endSessions`.
  await resume(console);
}

interface PooledClient {
  readonly user: string;
  readonly database: string;
  readonly id: string;
}

/**
 * Ends the sessions of a user in a pooler. ASSUMED: PgBouncer before 1.24 cannot end the sessions of one user, so all sessions end
 * in the databases that the user is connected to. No session may continue with a replaced password.
 */
export async function endSessions({ minor }: PoolerProgram, { console }: RunningPooler, user: string): Promise<void> {
  const { rows } = await console.query<PooledClient>("SHOW CLIENTS");
  const found = rows.filter((row) => row.user === user);
  if (minor >= since.killClient) {
    for (const { id } of found) await killClient(console, id);
    return;
  }
  for (const database of new Set(found.map((row) => row.database))) await console.query(`KILL ${quoted(database)}`);
  await resume(console);
}

async function killClient(console: pg.Client, id: string): Promise<void> {
  await console.query(`KILL_CLIENT ${id}`).catch((error: unknown) => {
    // It has gone meanwhile.
    if (!/client not found/.test(reasonOf(error))) throw error;
  });
}

/** Lets clients use the databases again whose sessions were ended. */
async function resume(console: pg.Client): Promise<void> {
  const { rows } = await console.query<{ name: string; paused: unknown }>("SHOW DATABASES");
  for (const { name, paused } of rows) if (Number(paused) === 1) await console.query(`RESUME ${quoted(name)}`);
}

// ASSUMED: a pooler that is to stop gives its clients half a second; it has nothing to lose.
const stopMs = 500;

/** Stops a pooler, and waits until its process has ended. */
export async function stop(paths: Paths): Promise<void> {
  const found = processOf(paths);
  if (found === undefined) return;
  const { configuration } = filesOf(paths);
  await endProcess(found, configuration, { signal: "SIGTERM", last: "SIGKILL", patienceMs: stopMs });
}

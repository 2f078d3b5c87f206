// A PostgreSQL of its own for the log of a service, as an operator would have it: one server, or two with synchronous replication.
import { execFile, spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { chownSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual, promisify } from "node:util";
import pg from "pg";
import { findBinaries, type Binaries } from "../../../service/runtime/postgres/binaries.ts";
import { freePort } from "../../support/freePort.ts";
import { hang } from "../../support/patience.mts";

const run = promisify(execFile);

/** Tries until it succeeds. Not by vitest: a bench starts servers as well. */
async function succeeds<T>(attempt: () => Promise<T>): Promise<T> {
  for (const until = performance.now() + hang; ; await sleep(20))
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > until) throw error;
    }
}

/** A running server with one empty database. */
export interface TestPostgres {
  readonly url: string;
  /** Whether its process runs. A server whose disk is full may end by itself. */
  readonly isRunning: boolean;
  /** Sends a query with a connection of its own. */
  query(sql: string): Promise<pg.QueryResult>;
  /** Ends the server at once, as a crash does. */
  stop(): Promise<void>;
  /** Starts it again at the same address, with its data. */
  start(): Promise<void>;
  /** Ends it, and removes its data. */
  remove(): Promise<void>;
}

/** Two servers: a commit is acknowledged only when the standby has it. */
export interface PostgresPair extends Omit<TestPostgres, "url" | "isRunning"> {
  /** Port of the primary now. */
  readonly port: number;
  /** Kills the primary, and promotes the standby. The killed one becomes the next standby. */
  failOver(): Promise<void>;
  /** Ends the standby until `startStandby`: until then nothing is acknowledged. */
  stopStandby(): Promise<void>;
  startStandby(): Promise<void>;
}

type Settings = Readonly<Record<string, string | number>>;

/** Where the programs run, and as which user: PostgreSQL refuses to run as root. */
interface Place {
  readonly binaries: Binaries;
  readonly user: { readonly uid: number; readonly gid: number } | { readonly uid?: undefined };
  readonly folder: string;
  /** Variables of its environment, and a descriptor for what it says. */
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly said?: number | undefined;
}

async function newPlace(parent = tmpdir()): Promise<Place> {
  const binaries = (await findBinaries()).get("18");
  if (!binaries) throw new Error("no PostgreSQL 18 is installed for the tests");
  const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  const folder = mkdtempSync(join(parent, "machines-log-"));
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
  return { binaries, user, folder };
}

/** A server with its data in a folder. */
class Server {
  readonly port: number;
  readonly #place: Place;
  readonly #settings: Settings;
  #process: ChildProcess | undefined;

  constructor(place: Place, port: number, settings: Settings) {
    this.#place = place;
    this.port = port;
    const usual = { port, listen_addresses: "127.0.0.1", unix_socket_directories: "", fsync: "off" };
    this.#settings = { ...usual, ...settings };
  }

  get data(): string {
    return join(this.#place.folder, `data-${this.port}`);
  }

  async create(): Promise<void> {
    const { binaries, user, folder } = this.#place;
    const initial = ["--username", "postgres", "--auth", "trust", "--no-sync", "--encoding", "UTF8"];
    await run(binaries.initdb, ["--pgdata", this.data, ...initial], { ...user, cwd: folder });
  }

  async connect(): Promise<pg.Client> {
    const client = new pg.Client(`postgres://postgres@127.0.0.1:${this.port}/postgres`);
    client.on("error", () => {});
    await client.connect();
    return client;
  }

  async query(sql: string): Promise<pg.QueryResult> {
    const client = await this.connect();
    try {
      return await client.query(sql);
    } finally {
      await client.end();
    }
  }

  async start(): Promise<void> {
    const { binaries, user, folder, env, said } = this.#place;
    const args = Object.entries(this.#settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const stdio: StdioOptions = ["ignore", "ignore", said ?? "ignore"];
    const options = { ...user, cwd: folder, stdio, env: { ...process.env, ...env } };
    this.#process = spawn(binaries.postgres, ["-D", this.data, ...args], options);
    await succeeds(() => this.query("SELECT 1"));
  }

  get isRunning(): boolean {
    return this.#process?.exitCode === null && this.#process.signalCode === null;
  }

  /** Ends at once, as in a crash. */
  async stop(): Promise<void> {
    const running = this.#process;
    if (!running || !this.isRunning) return;
    const ended = once(running, "exit");
    running.kill("SIGQUIT");
    await ended;
  }

  /** Replaces its data by a copy of a server that runs, which it follows from its next start. */
  async copy(from: Server): Promise<void> {
    const client = await from.connect();
    await client.query("SELECT pg_backup_start('copy', fast => true)");
    const { user, folder } = this.#place;
    const copyFiles = async (): Promise<void> => {
      rmSync(this.data, { recursive: true, force: true });
      // It fails when the server removes a file in between.
      await run("cp", ["-a", from.data, this.data], { ...user, cwd: folder });
    };
    await succeeds(copyFiles);
    const { rows } = await client.query<{ label: string }>("SELECT labelfile AS label FROM pg_backup_stop(false)");
    await client.end();
    rmSync(join(this.data, "postmaster.pid"), { force: true });
    for (const name of readdirSync(join(this.data, "pg_wal")).filter((one) => /^[0-9A-F]{24}/.test(one)))
      rmSync(join(this.data, "pg_wal", name));
    for (const [name, text] of Object.entries({ backup_label: rows[0]?.label ?? "", "standby.signal": "" })) {
      writeFileSync(join(this.data, name), text);
      if (user.uid !== undefined) chownSync(join(this.data, name), user.uid, user.gid);
    }
  }
}

/** How a server is special. */
export interface Special {
  /** Only what is measured has to wait for the disk. */
  readonly fsync?: "on" | "off";
  /** A folder for its data. */
  readonly parent?: string;
  /** Variables of its environment. */
  readonly env?: NodeJS.ProcessEnv;
  /** A descriptor for what it says. */
  readonly said?: number;
}

/** Starts a server. */
export async function startPostgres({ fsync = "off", parent, env, said }: Special = {}): Promise<TestPostgres> {
  const place = { ...(await newPlace(parent)), env, said };
  const server = new Server(place, await freePort(), { fsync });
  await server.create();
  await server.start();
  return {
    url: `postgres://postgres@127.0.0.1:${server.port}/postgres`,
    get isRunning() {
      return server.isRunning;
    },
    query: (sql) => server.query(sql),
    start: () => server.start(),
    stop: () => server.stop(),
    async remove() {
      await server.stop();
      rmSync(place.folder, { recursive: true, force: true });
    },
  };
}

/** The settings of one of two servers, each of which may be the primary. Without a standby, a commit waits. */
const settingsOfPair = (other: number): Settings => ({
  synchronous_standby_names: "*",
  primary_conninfo: `host=127.0.0.1 port=${other} user=postgres`,
  wal_retrieve_retry_interval: "100ms",
  wal_keep_size: "1GB",
});

/** Starts a primary and its standby. */
export async function startPair(): Promise<PostgresPair> {
  const place = await newPlace();
  const [one, two] = [await freePort(), await freePort()];
  let primary = new Server(place, one, settingsOfPair(two));
  let standby = new Server(place, two, settingsOfPair(one));
  const startStandby = async (): Promise<void> => {
    await standby.start();
    const states = "SELECT sync_state FROM pg_stat_replication";
    await succeeds(async () => {
      const { rows } = await primary.query(states);
      if (!isDeepStrictEqual(rows, [{ sync_state: "sync" }])) throw new Error("the standby does not follow yet");
    });
  };
  await primary.create();
  await primary.start();
  await standby.copy(primary);
  await startStandby();
  return {
    get port() {
      return primary.port;
    },
    query: (sql) => primary.query(sql),
    start: () => primary.start(),
    stop: () => primary.stop(),
    startStandby,
    stopStandby: () => standby.stop(),
    async failOver() {
      await primary.stop();
      await standby.query("SELECT pg_promote()");
      [primary, standby] = [standby, primary];
      await standby.copy(primary);
      await startStandby();
    },
    async remove() {
      await Promise.all([primary.stop(), standby.stop()]);
      rmSync(place.folder, { recursive: true, force: true });
    },
  };
}

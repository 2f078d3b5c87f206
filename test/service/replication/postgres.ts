// A PostgreSQL of its own for the log of a service, as an operator would have it.
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { vi } from "vitest";
import { findBinaries } from "../../../service/runtime/postgres/binaries.ts";
import { freePort } from "../../../service/runtime/postgres/server.ts";
import { hang } from "../../support/patience.mts";

const run = promisify(execFile);

/** A running server with one empty database. */
export interface TestPostgres {
  readonly url: string;
  /** Sends a query with a connection of its own. */
  query(sql: string): Promise<pg.QueryResult>;
  /** Ends the server at once, as a crash does. */
  stop(): Promise<void>;
  /** Starts it again at the same address, with its data. */
  start(): Promise<void>;
  /** Ends it, and removes its data. */
  remove(): Promise<void>;
}

/** Starts a server; PostgreSQL refuses to run as root, and runs as nobody then. */
export async function startPostgres(): Promise<TestPostgres> {
  const binaries = (await findBinaries()).get("18");
  if (!binaries) throw new Error("no PostgreSQL 18 is installed for the tests");
  const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  const folder = mkdtempSync(join(tmpdir(), "machines-log-"));
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
  const data = join(folder, "data");
  const initial = ["--pgdata", data, "--username", "postgres", "--auth", "trust", "--no-sync", "--encoding", "UTF8"];
  await run(binaries.initdb, initial, { ...user, cwd: folder });
  const port = await freePort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  let server: ChildProcess | undefined;

  const query = async (sql: string): Promise<pg.QueryResult> => {
    const client = new pg.Client(url);
    client.on("error", () => {});
    await client.connect();
    try {
      return await client.query(sql);
    } finally {
      await client.end();
    }
  };
  const start = async (): Promise<void> => {
    const settings = { port, listen_addresses: "127.0.0.1", unix_socket_directories: "", fsync: "off" };
    const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    server = spawn(binaries.postgres, ["-D", data, ...args], { ...user, cwd: folder, stdio: "ignore" });
    await vi.waitFor(() => query("SELECT 1"), { timeout: hang });
  };
  const stop = async (): Promise<void> => {
    if (server?.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "exit");
    server.kill("SIGQUIT");
    await ended;
  };
  await start();
  return {
    ...{ url, query, start, stop },
    async remove() {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

// A PgBouncer between the members of a service and their PostgreSQL.
import { spawn } from "node:child_process";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, vi } from "vitest";
import pg from "pg";
import type { PoolerProgram } from "../../../service/runtime/postgres/pooler.ts";
import { freePort } from "../../support/freePort.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { hang } from "../../support/patience.mts";
import type { TestPostgres } from "./postgres.ts";

/** How long a client of the pooler keeps a connection to the server. */
export type PoolMode = "session" | "transaction" | "statement";

/** Starts a pooler in front of a server, until the end of the test. Returns the URL of the database behind it. */
export async function startPooler(
  { program }: PoolerProgram,
  server: Pick<TestPostgres, "url">,
  mode: PoolMode,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "machines-pooler-"));
  afterThisTest(() => rmSync(folder, { recursive: true, force: true }));
  const port = await freePort();
  const behind = new URL(server.url);
  const users = join(folder, "users.txt");
  writeFileSync(users, '"postgres" ""\n');
  const settings = {
    ...{ listen_addr: "127.0.0.1", listen_port: port, unix_socket_dir: "", auth_type: "trust", auth_file: users },
    pool_mode: mode,
    // Members share connections, unless each keeps those that it has.
    default_pool_size: mode === "session" ? 20 : 3,
  };
  const lines = [
    ...["[databases]", `postgres = host=${behind.hostname} port=${behind.port} dbname=postgres`, "[pgbouncer]"],
    ...Object.entries(settings).map(([name, value]) => `${name} = ${value}`),
  ];
  const file = join(folder, "pgbouncer.ini");
  writeFileSync(file, `${lines.join("\n")}\n`);
  // It refuses to run as root.
  const nobody = 65_534;
  const isRoot = process.getuid?.() === 0;
  if (isRoot) chownSync(folder, nobody, nobody);
  const user = isRoot ? { uid: nobody, gid: nobody } : {};
  const child = spawn(program, ["--quiet", file], { ...user, cwd: folder, stdio: "ignore" });
  const ended = once(child, "exit");
  afterThisTest(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const look = async (): Promise<void> => {
    const client = new pg.Client(url);
    client.on("error", () => {});
    await client.connect();
    expect((await client.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
    await client.end();
  };
  await vi.waitFor(look, { timeout: hang, interval: 20 });
  return url;
}

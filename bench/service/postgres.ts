// Measures Postgres clusters as real servers: `npm run bench:postgres [-- --rounds N]`. The time from the request that creates a
// cluster until it is ready is compared with `initdb` and a start by hand, of the same programs with the same settings, until the
// server answers. Both alternate.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import pg from "pg";
import { LocalAuthority } from "../../service/runtime/localAuthority.ts";
import { findAccounts } from "../../service/runtime/postgres/account.ts";
import { findBinaries } from "../../service/runtime/postgres/binaries.ts";
import { configurationOf, superuser } from "../../service/runtime/postgres/settings.ts";
import { freePort } from "../../test/support/freePort.ts";
import { root } from "../workbench.ts";

const { rounds } = parseArgs({ options: { rounds: { type: "string", default: "15" } } }).values;
const main = join(root, "service/dist/service/main.js");
const authority = new LocalAuthority(undefined);
const password = "of the bench";
const version = "17";
/** Pause between two looks at a cluster or server. */
const pause = 5;

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

async function answers(port: number): Promise<boolean> {
  const client = new pg.Client({ host: "127.0.0.1", port, user: superuser, password, database: superuser });
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query("SELECT 1");
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}

/** Milliseconds of `initdb`, and of both steps until the server answers. */
async function byHand(folder: string): Promise<{ readonly initdb: number; readonly all: number }> {
  const binaries = (await findBinaries()).get(version);
  if (!binaries) throw new Error(`PostgreSQL ${version} is not installed`);
  const [data, walFolder, secret] = [join(folder, "data"), join(folder, "wal"), join(folder, "password")];
  mkdirSync(walFolder, { recursive: true });
  writeFileSync(secret, password);
  const { chain, key } = await authority.issue(["127.0.0.1"], Date.now() + 3600_000);
  const files = { certificate: join(folder, "tls.crt"), key: join(folder, "tls.key") };
  writeFileSync(files.certificate, chain, { mode: 0o600 });
  writeFileSync(files.key, key, { mode: 0o600 });
  const { initial: account } = await findAccounts(folder);
  await account.own(folder);
  const port = await freePort();
  const begun = performance.now();
  const [initdb, options] = account.command(binaries.initdb, [
    ...["--pgdata", data, "--username", superuser, "--pwfile", secret],
    ...["--auth", "scram-sha-256", "--encoding", "UTF8", "--no-locale", "--no-instructions"],
  ]);
  execFileSync(initdb, options, { ...account.options, stdio: "pipe" });
  const initialized = performance.now() - begun;
  const cluster = { id: "by-hand", cpus: 2, memoryMb: 1024 };
  const rules = join(data, "pg_hba.conf");
  const settings = { cluster, port, addresses: ["127.0.0.1"], walFolder, ...files, entry: files.certificate, rules };
  writeFileSync(join(data, "postgresql.conf"), configurationOf(settings));
  writeFileSync(rules, "host all all 127.0.0.1/32 scram-sha-256\n");
  const [program, args] = account.command(binaries.postgres, ["-D", data]);
  const server = spawn(program, args, { ...account.options, stdio: "ignore" });
  while (!(await answers(port))) await sleep(pause);
  const all = performance.now() - begun;
  server.kill("SIGINT");
  await once(server, "exit");
  rmSync(folder, { recursive: true });
  return { initdb: initialized, all };
}

async function bench(): Promise<void> {
  const data = mkdtempSync(join(tmpdir(), "machines-bench-"));
  const service = (...args: string[]): string =>
    execFileSync(process.execPath, [main, ...args, "--data", data], { encoding: "utf8" });
  try {
    // By hand there is no pooler either.
    const engine = ["--postgres", "embedded", "--pgbouncer", "none"];
    const started = service("start", "--detach", "--json", ...engine, "--listen", "127.0.0.1:0");
    const { url } = JSON.parse(started) as { readonly url: string };
    const authorization = `Bearer ${readFileSync(join(data, "token"), "utf8").trim()}`;
    /** The cluster of an answer; undefined if there is none, or none any more. */
    const call = async (method: string, path: string, body?: object) => {
      const sent = { method, headers: { authorization }, ...(body ? { body: JSON.stringify(body) } : {}) };
      const text = await (await fetch(`${url}/v1/postgres${path}`, sent)).text();
      return text === "" ? undefined : (JSON.parse(text) as { data?: { id: string; status: string } }).data;
    };
    const ours: number[] = [];
    const hands: number[] = [];
    const initdbs: number[] = [];
    for (let round = 0; round < Number(rounds); round++) {
      const { initdb, all } = await byHand(join(data, "by-hand"));
      initdbs.push(initdb);
      hands.push(all);
      const begun = performance.now();
      const wanted = { org_slug: "personal", region: "ams", plan: "basic", pg_major_version: version };
      const id = (await call("POST", "", wanted))?.id;
      while ((await call("GET", `/${id}`))?.status !== "ready") await sleep(pause);
      ours.push(performance.now() - begun);
      await call("DELETE", `/${id}`);
      while (await call("GET", `/${id}`)) await sleep(pause);
    }
    const [ready, hand] = [median(ours), median(hands)];
    console.log(`from the request until the cluster is ready: ${ready.toFixed(0)} ms`);
    console.log(`  initdb and start by hand: ${hand.toFixed(0)} ms, ratio ${(ready / hand).toFixed(2)}`);
    console.log(`  of that initdb: ${median(initdbs).toFixed(0)} ms`);
  } finally {
    service("stop");
    rmSync(data, { recursive: true, force: true });
  }
}

bench().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});

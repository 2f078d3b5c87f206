// What a cluster that is a real server shows when something on the computer fails, and that it continues afterwards.
import { execFileSync } from "node:child_process";
import { readdirSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { bind } from "../../../service/runtime/bind.ts";
import { findBinaries, type Binaries } from "../../../service/runtime/postgres/binaries.ts";
import { isRefusal } from "../../../service/runtime/postgres/postgresError.ts";
import { processesIn, userOfProcess } from "../../../service/runtime/postgres/processes.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { mountSmall } from "../../support/smallDisk.ts";
import { dataFolder, rowsOf, withServers } from "./servers.ts";

const isRoot = process.getuid?.() === 0;
const mib = 2 ** 20;

/** A log that can be read. */
function logged() {
  const lines: string[] = [];
  return {
    log: { write: (line: string) => void lines.push(line) },
    /** The reasons in lines about a cluster. */
    reasons: (id: string): readonly string[] =>
      lines
        .map((line) => JSON.parse(line) as { readonly cluster?: string; readonly reason?: string })
        .flatMap(({ cluster, reason }) => (cluster === id && reason !== undefined ? [reason] : [])),
  };
}

/** The installed version, with another program as its server. */
async function withProgram(postgres: string): Promise<ReadonlyMap<string, Binaries>> {
  return new Map([...(await findBinaries())].map(([version, binaries]) => [version, { ...binaries, postgres }]));
}

test("without space a cluster is failed, and so is a backup; with space the next ones succeed", async ({ skip }) => {
  const data = dataFolder();
  const folder = join(data, "postgres");
  const small = mountSmall(folder, 20 * mib);
  if (!small) return skip("this user cannot mount a file system");
  const { log, reasons } = logged();
  const app = await withServers({ data, service: { log } });
  const created = await app.create();
  expect(created.status).toBe(201);
  const { id } = created.body.data;
  expect(await app.settled(id)).toMatchObject({ status: "failed", endpoints: {} });
  expect(reasons(id)).toEqual([expect.stringMatching(/No space left on device|Check free disk space/)]);
  expect((await app.call("DELETE", `/postgres/${id}`)).status).toBe(202);

  small.resize(500 * mib);
  const ready = await app.cluster();
  const client = await app.connect(ready);
  await client.query("CREATE TABLE items AS SELECT 1 AS id");
  const ballast = join(folder, "ballast");
  const { bavail, bsize } = statfsSync(folder);
  writeFileSync(ballast, Buffer.alloc(bavail * bsize - 20 * mib));
  const base = `/postgres/${ready.id}`;
  expect((await app.call("POST", `${base}/backups`, { type: "full" })).status).toBe(202);
  await expect.poll(async () => (await app.get(`${base}/backups`))[0].status).toBe("failed");
  // The server fails first, or the copy.
  expect(reasons(ready.id)).not.toEqual([]);
  expect(readdirSync(join(folder, ready.id, "backups"))).toEqual([]);

  rmSync(ballast);
  // The server may still recover.
  await expect.poll(async () => (await app.call("POST", `${base}/databases`, { name: "shop" })).status).toBe(201);
  await app.backUp(ready.id);
  expect(await rowsOf(await app.connect(ready))).toBe(1);
});

test("only a server refuses a change for good: a lost connection and a server that ends do not", () => {
  const refusal = new pg.DatabaseError("the extension does not exist", 0, "error");
  refusal.code = "42704";
  const ending = new pg.DatabaseError("the server is shutting down", 0, "error");
  ending.code = "57P01";
  const lost = Object.assign(new Error("write EPIPE"), { code: "EPIPE" });
  expect([refusal, ending, lost].map(isRefusal)).toEqual([true, false, false]);
});

test("a cluster whose port another process took gets another one, and says so", async () => {
  const first = await withServers();
  const ready = await first.cluster();
  await (await first.connect(ready)).query("CREATE TABLE items AS SELECT 1 AS id");
  await first.service.close();
  const { host, port } = ready.endpoints.primary.direct;
  const other = createServer();
  await bind(other, host, port);
  afterThisTest(() => void other.close());
  const second = await withServers({ data: first.data });
  const portNow = async () => (await second.get(`/postgres/${ready.id}`)).endpoints.primary.direct.port;
  await expect.poll(portNow).not.toBe(port);
  expect(await rowsOf(await second.connect(await second.get(`/postgres/${ready.id}`)))).toBe(1);
});

test("a new cluster whose server does not start is failed, and the log has the server's last words", async () => {
  const { log, reasons } = logged();
  const app = await withServers({ versions: await withProgram("/bin/false"), service: { log } });
  const { id } = (await app.create()).body.data;
  expect(await app.settled(id)).toMatchObject({ status: "failed", endpoints: {} });
  expect(reasons(id)).toEqual(["it ended without a message"]);
  expect(processesIn(app.data)).toEqual([]);
});

test("a ready cluster whose server does not start is 503 with the reason in the log, and continues when it does", async () => {
  const first = await withServers();
  const ready = await first.cluster();
  await (await first.connect(ready)).query("CREATE TABLE items AS SELECT 1 AS id");
  await first.service.close();
  const { log, reasons } = logged();
  const missing = join(first.data, "missing");
  const second = await withServers({
    data: first.data,
    versions: await withProgram(missing),
    service: { log },
  });
  await expect.poll(() => reasons(ready.id)).toContainEqual(expect.stringContaining(missing));
  expect(ready.primary_available).toBe(true);
  const { endpoints } = ready;
  const unavailable = { status: "ready", endpoints, primary_available: false };
  expect(await second.get(`/postgres/${ready.id}`)).toMatchObject(unavailable);
  expect(await second.call("GET", `/postgres/${ready.id}/queries/active`)).toMatchObject({
    status: 503,
    body: { error: "The server of the cluster does not answer" },
  });
  await second.service.close();
  const third = await withServers({ data: first.data });
  await expect.poll(() => third.connect(ready).then(rowsOf, () => undefined)).toBe(1);
});

test.runIf(isRoot)("root runs each server as a user of its own, which owns its data", async () => {
  const app = await withServers();
  const [ready, other] = [await app.cluster(), await app.cluster()];
  const client = await app.connect(ready);
  await client.query("CREATE TABLE items AS SELECT 1 AS id");
  const ownerOf = (id: string): string => {
    const data = join(app.data, "postgres", id, "data");
    const owners = execFileSync("find", [data, "-printf", "%U\\n"], { encoding: "utf8" }).trim().split("\n");
    const users = processesIn(data).map((pid) => String(userOfProcess(pid)));
    const [owner, ...more] = new Set([...owners, ...users]);
    expect(more).toEqual([]);
    return owner ?? "";
  };
  expect(Number(ownerOf(ready.id))).toBeGreaterThan(65_534);
  expect(ownerOf(other.id)).not.toBe(ownerOf(ready.id));
  const backup = await app.backUp(ready.id);
  const copy = (await app.call("POST", `/postgres/${ready.id}/restore`, { backup_id: backup })).body.data.id;
  expect(await rowsOf(await app.connect(await app.settled(copy)))).toBe(1);
  expect(ownerOf(copy)).not.toBe(ownerOf(ready.id));
  expect((await app.call("DELETE", `/postgres/${ready.id}`)).status).toBe(202);
  await expect.poll(async () => (await app.call("GET", `/postgres/${ready.id}`)).text).toContain("has been deleted");
});

test.runIf(isRoot)(
  "a cluster of an earlier version, whose files are root's, gets a user with its next start",
  async () => {
    const first = await withServers();
    const ready = await first.cluster();
    await (await first.connect(ready)).query("CREATE TABLE items AS SELECT 1 AS id");
    await first.service.close();
    const folder = join(first.data, "postgres", ready.id);
    execFileSync("chown", ["-R", "0:0", folder]);
    for (const name of ["superuser.key", "superuser.crt", "postgresql.conf", "pg_hba.conf"]) rmSync(join(folder, name));
    const second = await withServers({ data: first.data });
    await expect.poll(() => second.connect(ready).then(rowsOf, () => undefined)).toBe(1);
    expect(statSync(join(folder, "data", "PG_VERSION")).uid).toBeGreaterThan(65_534);
  },
);

test.runIf(isRoot)("a folder that this user cannot reach is refused with what to do", async () => {
  const outer = dataFolder();
  const data = join(outer, "data");
  await expect(withServers({ data })).rejects.toThrow(
    /PostgreSQL does not run as root, and the user \w+ cannot reach .*Choose a data folder that it can reach with --data/,
  );
});

test.runIf(isRoot)("programs that another user cannot start are refused with what to do", async () => {
  const postgres = join(dataFolder(), "postgres");
  writeFileSync(postgres, "#!/bin/sh\n", { mode: 0o755 });
  const versions = await withProgram(postgres);
  await expect(withServers({ versions })).rejects.toThrow(
    /PostgreSQL does not run as root, and the user \w+ cannot start \/.*Install it where that user can read it/,
  );
});

// A client who has become superuser of a Postgres server runs programs there with COPY. They reach nothing but its own cluster.
import { execFileSync, spawn } from "node:child_process";
import { lstatSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createSecureContext, TLSSocket } from "node:tls";
import pg from "pg";
import { expect, test, vi } from "vitest";
import { bind } from "../../service/runtime/bind.ts";
import { pathsOf, type Paths } from "../../service/runtime/postgres/paths.ts";
import { processOf, connect } from "../../service/runtime/postgres/server.ts";
import { sessions } from "../../service/runtime/postgres/sessions.ts";
import { processesIn, userOfProcess, usersOfProcesses } from "../../service/runtime/postgres/processes.ts";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { caller, type Call } from "../service/client.ts";
import { folder, foreground, released } from "../service/command.ts";
import { requestsOfClusters, rowsOf, type Ready } from "../service/postgres/servers.ts";
import { isThorough } from "../support/extent.mts";
import { afterThisTest } from "../support/leftovers.ts";
import { hang } from "../support/patience.mts";
import { kill } from "../support/processes.ts";

const isRoot = process.platform === "linux" && process.getuid?.() === 0;
if (!isRoot) leaveOut("the walls between Postgres servers", "this is not root on Linux");

const secret = "known-to-the-operator-alone";

/** A service in a process of its own, with real servers. */
async function serving(data = folder()) {
  afterThisTest(() => kill(processesIn(data)));
  const begin = () => foreground(data, ["--postgres", "embedded"], { OPERATORS_SECRET: secret });
  let running = await begin();
  const call: Call = (...request) => caller(running.url, running.token)(...request);
  return {
    ...{ data, call, ...requestsOfClusters(call) },
    pid: () => running.pid,
    said: () => running.said(),
    pathsOf: ({ id }: { readonly id: string }) => pathsOf(join(data, "postgres", id)),
    async kill(): Promise<void> {
      process.kill(running.pid, "SIGKILL");
      await released(data);
    },
    async start(): Promise<void> {
      running = await begin();
    },
    async stop(): Promise<void> {
      process.kill(running.pid, "SIGTERM");
      await released(data);
    },
  };
}

type App = Awaited<ReturnType<typeof serving>>;

/** The first user of a cluster, as one who has found a way to become superuser. */
async function superuserOf(app: App, ready: Ready): Promise<pg.Client> {
  const { port } = ready.endpoints.primary.direct;
  const admin = await connect(app.pathsOf(ready), port, "postgres", sessions.superuser);
  await admin.query('ALTER ROLE "fly-user" SUPERUSER');
  await admin.end();
  const client = await app.connect(ready);
  await client.query('SET ROLE "fly-user"');
  return client;
}

/** Runs a program in a server; returns what it printed, also if it failed. */
async function runIn(client: pg.Client, script: string): Promise<readonly string[]> {
  await client.query("CREATE TEMPORARY TABLE IF NOT EXISTS said (line text)");
  await client.query("TRUNCATE said");
  const program = `{ ${script}\n} 2>&1 | tr '\\000\\\\\\t' '\\n/ '; true`;
  await client.query(`COPY said FROM PROGRAM ${client.escapeLiteral(program)}`);
  return (await client.query<{ line: string }>("SELECT line FROM said")).rows.map(({ line }) => line);
}

/** All files and folders below a folder. */
const below = (path: string): string[] =>
  readdirSync(path, { withFileTypes: true, recursive: true }).map((entry) => join(entry.parentPath, entry.name));

const isIn = (path: string, above: string): boolean => `${path}/`.startsWith(`${above}/`);

const quoted = (path: string): string => `'${path.replaceAll("'", `'\\''`)}'`;

test.runIf(isRoot)(
  "F66: programs of a superuser read and change no file of the service or of another cluster, and see none of its secrets",
  async () => {
    const app = await serving();
    const [own, other]: Ready[] = [await app.cluster(), await app.cluster()];
    if (!own || !other) throw new Error("no cluster");
    const client = await superuserOf(app, own);
    const paths = app.pathsOf(own);
    // The files that the server needs, and those that it writes.
    const needed = [paths.configuration, paths.rules, paths.certificate, paths.key, paths.entry];
    const foreign = [app.data, ...below(app.data)].filter(
      (path) => path !== paths.folder && !isIn(path, paths.data) && !isIn(path, paths.wal),
    );
    expect(foreign.length).toBeGreaterThan(1000);
    const tests = foreign.map(
      (path) => `test -r ${quoted(path)} && echo r ${quoted(path)}; test -w ${quoted(path)} && echo w ${quoted(path)}`,
    );
    // The list is longer than the arguments of a program may be.
    writeFileSync(join(paths.data, "tests"), tests.join("\n"), { mode: 0o644 });
    expect(await runIn(client, ". ./tests")).toEqual(needed.map((path) => `r ${path}`).sort());

    const proc = `/proc/${app.pid()}`;
    for (const file of ["environ", "mem", "maps", "fd", "cwd/.", "root/."])
      expect(await runIn(client, `cp -r ${proc}/${file} stolen`), file).toEqual([
        expect.stringMatching(/Permission denied/),
      ]);
    const seen = (
      await runIn(client, "cat /proc/self/environ; ls -l /proc/$PPID/fd; ls -l /proc/self/fd; cat /proc/$PPID/environ")
    ).join("\n");
    expect(seen).toContain("PATH=");
    expect(seen).not.toContain(secret);
    // Its own files, and none of the service.
    for (const [, path = ""] of seen.matchAll(/-> (\/.*)/g))
      expect(path).toMatch(new RegExp(`^(/dev/|/proc/|/memfd|${paths.data}/|${paths.log}$)`));
    const status = (await runIn(client, "cat /proc/self/status")).join("\n");
    expect(status).toMatch(/^NoNewPrivs:\s1$/m);
    expect(status).toMatch(/^CapEff:\s0+$/m);
    const { uid } = statSync(paths.data);
    expect(status).toMatch(new RegExp(`^Uid:\\s${uid}\\s${uid}\\s${uid}\\s${uid}$`, "m"));
    expect(status).toMatch(new RegExp(`^Groups:\\s(${uid} )?\\s*$`, "m"));

    const { pid = 0 } = processOf(app.pathsOf(other)) ?? {};
    for (const one of [app.pid(), pid])
      expect((await runIn(client, `kill -KILL ${one}`)).join()).toMatch(/not permitted/);
    expect(await rowsOfOne(app, other)).toBe(1);
    await app.stop();
  },
);

/** Whether a cluster works. */
async function rowsOfOne(app: App, ready: Ready): Promise<number> {
  const client = await app.connect(ready);
  await client.query("CREATE TABLE items AS SELECT 1 AS id");
  return rowsOf(client);
}

/** A client of a cluster after a restart of the service, as soon as its server accepts one. */
const againOn = (app: App, { id }: Ready): Promise<pg.Client> =>
  vi.waitFor(async () => app.connect(await app.get(`/postgres/${id}`)), { timeout: hang });

test.runIf(isRoot && isThorough)(
  "F67: a server that runs in a folder that was moved away is ended, and the older copy in its place is served",
  async () => {
    const app = await serving();
    const ready: Ready = await app.cluster();
    expect(await rowsOfOne(app, ready)).toBe(1);
    // The copy is taken while the server runs, with its `postmaster.pid`.
    await app.kill();
    const moved = `${app.data}.moved`;
    execFileSync("cp", ["-a", app.data, `${app.data}.copy`]);
    await app.start();
    await (await againOn(app, ready)).query("INSERT INTO items VALUES (2)");
    await app.kill();
    const { pid = 0 } = processOf(app.pathsOf(ready)) ?? {};
    expect(userOfProcess(pid)).toBeGreaterThan(0);
    renameSync(app.data, moved);
    renameSync(`${app.data}.copy`, app.data);
    await app.start();
    const client = await againOn(app, ready);
    // The row of the moved folder is not there, and what is written now is in the folder of the service.
    expect(await rowsOf(client)).toBe(1);
    // Its number may remain until the init process has taken note of its end.
    expect(userOfProcess(pid)).toBeUndefined();
    const server = processOf(app.pathsOf(ready))?.pid ?? 0;
    expect(statSync(`/proc/${server}/cwd`).ino).toBe(statSync(app.pathsOf(ready).data).ino);
    expect(app.said()).toContain("a Postgres server still ran in a folder that was moved away");
    await client.query("INSERT INTO items VALUES (3)");
    await app.stop();
    await app.start();
    const again = await againOn(app, ready);
    expect((await again.query("SELECT id FROM items ORDER BY id")).rows).toEqual([{ id: 1 }, { id: 3 }]);
    await app.stop();
    expect(processesIn(app.data)).toEqual([]);
    if (!isThorough) return;
    // The moved folder has its rows.
    renameSync(app.data, `${app.data}.copy`);
    renameSync(moved, app.data);
    await app.start();
    const first = await againOn(app, ready);
    expect((await first.query("SELECT id FROM items ORDER BY id")).rows).toEqual([{ id: 1 }, { id: 2 }]);
    await app.stop();
  },
);

test.runIf(isRoot && isThorough)(
  "F68: links and pipes that a superuser puts into the folder of a cluster lead the service nowhere else",
  async () => {
    const app = await serving();
    const own: Ready = await app.cluster();
    const paths = app.pathsOf(own);
    const token = join(app.data, "token");
    const before = readFileSync(token, "utf8");
    const client = await superuserOf(app, own);
    await client.query("CREATE TABLE items AS SELECT 1 AS id; ALTER TABLE items OWNER TO _schema_admin");
    const [file, link] = [quoted(token), (name: string) => `ln -sfn ${quoted(token)} ${name}`];
    // What the service writes or reads in the folder of the cluster, or beside its data.
    const said = await runIn(
      client,
      [
        ...[
          "../postgresql.conf",
          "../server.log",
          "../tls.key",
          "../tls.crt",
          "../recovery.json",
          "../superuser.key",
        ].map(link),
        `ln -sfn ${quoted(app.data)} ../backups; mv ../wal ../wal.old; mv ../data ../data.old`,
        `ln ${file} base/hard`,
        ...["base/1/token", "postgresql.conf", "pg_hba.conf", "backup_label.old", "global/token"].map(link),
        `ln -sfn ${quoted(app.data)} base/1/folder`,
        `mkdir sub; mkfifo sub/pipe; mv postmaster.pid kept; mkfifo postmaster.pid`,
      ].join("\n"),
    );
    expect(said.filter((line) => /Permission denied|not permitted/.test(line)).length).toBeGreaterThanOrEqual(9);
    const backup = await app.backUp(own.id);
    const fork = (await app.call("POST", `/postgres/${own.id}/fork`, { name: "fork" })).body.data.id;
    expect(await rowsOf(await app.connect(await app.settled(fork)))).toBe(1);
    for (const copy of [join(paths.backups, backup), app.pathsOf({ id: fork }).data])
      for (const path of below(copy)) {
        const stat = lstatSync(path);
        expect(stat.isFile() || stat.isDirectory(), path).toBe(true);
        if (stat.isFile() && stat.size === before.length) expect(readFileSync(path, "utf8"), path).not.toBe(before);
      }
    // A service that is killed finds the pipe in the place of the number of the server.
    await app.kill();
    await app.start();
    expect(await rowsOf(await againOn(app, own))).toBe(1);
    await app.stop();
    expect(readFileSync(token, "utf8")).toBe(before);
    expect(statSync(token).uid).toBe(0);
    expect(processesIn(app.data)).toEqual([]);
    // Nothing of the user is left, also no program that has left its server.
    const { uid } = statSync(paths.data);
    expect(usersOfProcesses()).not.toContain(uid);
  },
);

/** What clients of a listener have sent as a password, in place of a server. It may show the certificate of one. */
async function pretend(
  paths: Paths,
): Promise<{ readonly port: number; readonly met: () => number; readonly sent: string[] }> {
  const sent: string[] = [];
  let met = 0;
  const context = createSecureContext({ key: readFileSync(paths.key), cert: readFileSync(paths.certificate) });
  const serve = (socket: Socket): void => {
    socket.on("error", () => {});
    socket.once("data", (startup: Buffer) => {
      if (startup.readInt32BE(4) === 80877103) {
        socket.write("S");
        serve(
          new TLSSocket(socket, {
            isServer: true,
            secureContext: context,
            requestCert: true,
            rejectUnauthorized: false,
          }),
        );
        return;
      }
      met++;
      // It asks for the password itself.
      socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]));
      socket.once("data", (answer: Buffer) => {
        sent.push(answer.toString("utf8", 5).replaceAll("\0", ""));
        socket.destroy();
      });
    });
  };
  const server = createServer(serve);
  const port = await bind(server, "127.0.0.1", 0);
  afterThisTest(() => void server.close());
  return { port, met: () => met, sent };
}

test.runIf(isRoot && isThorough)(
  "F69: a superuser who answers in place of the server learns nothing that opens another cluster or the pooler",
  async () => {
    const app = await serving();
    const [own, other]: Ready[] = [await app.cluster(), await app.cluster()];
    if (!own || !other) throw new Error("no cluster");
    const paths = app.pathsOf(own);
    await app.kill();
    const { pid = 0 } = processOf(paths) ?? {};
    kill([pid]);
    const { port, met, sent } = await pretend(paths);
    // A program of the server's user, with the name and in the folder of the server.
    const { uid, gid } = statSync(paths.data);
    const script = `sleep 3600; : ${quoted(paths.data)}`;
    const instead = spawn("sh", ["-c", script], { uid, gid, cwd: paths.data, stdio: "ignore" });
    afterThisTest(() => void instead.kill("SIGKILL"));
    writeFileSync(join(paths.data, "postmaster.pid"), [instead.pid, paths.data, 0, port, ""].join("\n"));
    await app.start();
    await vi.waitFor(() => expect(met()).toBeGreaterThan(0), { timeout: hang });
    await vi.waitFor(
      () => expect(sent.length + Number(instead.exitCode !== null || instead.signalCode !== null)).toBeGreaterThan(0),
      { timeout: hang },
    );
    for (const password of sent) await expectUseless(app, other, password);
    // Without the certificate of the service, nobody enters another server as superuser, from this computer either.
    const { key, entry } = paths;
    await expectUseless(app, other, "", { cert: readFileSync(entry, "utf8"), key: readFileSync(key, "utf8") });
    await app.kill();
    kill(processesIn(app.data));
  },
);

/** That a password and a certificate do not open a cluster, nor its pooler. */
async function expectUseless(app: App, { id }: Ready, password: string, ssl?: object): Promise<void> {
  const { direct, pooler } = (await app.get(`/postgres/${id}`)).endpoints.primary;
  for (const [at, database] of [
    [direct, "postgres"],
    [pooler, "pgbouncer"],
  ] as const) {
    const more = ssl === undefined ? {} : { ssl: { ...ssl, rejectUnauthorized: false } };
    const client = new pg.Client({ ...at, user: "postgres", password, database, ...more });
    client.on("error", () => {});
    await expect(client.connect()).rejects.toThrow();
    await client.end().catch(() => {});
  }
}

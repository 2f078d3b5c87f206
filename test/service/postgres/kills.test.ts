// kill -9 of the service, of a server and of its processes while clients write: no acknowledged row is lost, and every cluster
// comes to rest with one server or none.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { expect, test, vi } from "vitest";
import { processesIn, runs } from "../../../service/runtime/postgres/processes.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { diceOf } from "../../support/organizations.ts";
import { hang } from "../../support/patience.mts";
import { kill } from "../../support/processes.ts";
import { caller, type Call } from "../client.ts";
import { folder, foreground, released } from "../command.ts";
import { requestsOfClusters, type Ready } from "./servers.ts";

const rounds = 30;
/** `SEED=… npx vitest …` draws the rounds of another seed. */
const seed = process.env["SEED"] ?? "20260101";

/** A service that can be killed and started again on the same data. */
async function killable() {
  const data = folder();
  afterThisTest(() => kill(processesIn(data)));
  const begin = () => foreground(data, ["--postgres", "embedded"]);
  let running = await begin();
  const call: Call = (...request) => caller(running.url, running.token)(...request);
  /** The processes of a cluster that are servers. */
  const servers = (id: string) => processesIn(join(data, "postgres", id)).filter((pid) => runs(pid, " -D "));
  return {
    ...{ data, call, servers, ...requestsOfClusters(call) },
    pathOf: (...path: readonly string[]) => join(data, "postgres", ...path),
    said: () => running.said(),
    kill: () => process.kill(running.pid, "SIGKILL"),
    async restart(): Promise<void> {
      await released(data);
      running = await begin();
    },
    async stop(): Promise<void> {
      process.kill(running.pid, "SIGTERM");
      await released(data);
    },
    // A child of a server has its command line at first.
    hasOneServer: (id: string, because: string) =>
      vi.waitFor(() => expect(servers(id), because).toHaveLength(1), { timeout: hang }),
  };
}

/** Writes rows until it is over, over new connections after a kill; keeps the numbers of those that were acknowledged. */
function writer(connect: () => Promise<pg.Client>) {
  const acknowledged: number[] = [];
  const over = new AbortController();
  let number = 0;
  const writeOver = async (client: pg.Client): Promise<void> => {
    while (!over.signal.aborted) {
      // After a lost connection, the row of the last number may be there or not.
      number++;
      await client.query("INSERT INTO items VALUES ($1)", [number]);
      acknowledged.push(number);
    }
  };
  const writing = (async () => {
    while (!over.signal.aborted) {
      const client = await connect().catch(() => undefined);
      if (!client) continue;
      await writeOver(client).catch(() => {});
      await client.end().catch(() => {});
    }
  })();
  const end = async (): Promise<readonly number[]> => {
    over.abort();
    await writing;
    return acknowledged;
  };
  return { acknowledged, end };
}

test(`${rounds} rounds under load`, async () => {
  const app = await killable();
  const [busy, neighbour]: Ready[] = [await app.cluster({ name: "busy" }), await app.cluster({ name: "neighbour" })];
  if (!busy || !neighbour) throw new Error("no cluster");
  for (const ready of [busy, neighbour]) await (await app.connect(ready)).query("CREATE TABLE items (id int)");
  const quiet = await app.connect(neighbour);
  await quiet.query("INSERT INTO items VALUES (1)");
  const { password } = await app.get(`/postgres/${busy.id}/users/fly-user/credentials`);
  const connectTo = { ...busy.endpoints.primary.direct, user: "fly-user", password, database: "fly-db" };
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client(connectTo);
    client.on("error", () => {});
    await client.connect();
    return client;
  };
  await app.hasOneServer(neighbour.id, "the other cluster");
  const [before] = app.servers(neighbour.id);
  const { acknowledged, end } = writer(connect);
  const isWriting = (): Promise<void> => {
    const known = acknowledged.length;
    return vi.waitFor(() => expect(acknowledged.length).toBeGreaterThan(known), { timeout: hang, interval: 5 });
  };
  const dice = diceOf(seed);
  const kills = {
    service: async () => {
      app.kill();
      // Servers continue meanwhile.
      await isWriting();
      await app.restart();
    },
    server: () => kill(app.servers(busy.id)),
    process: () => {
      const children = processesIn(app.pathOf(busy.id)).filter((pid) => !app.servers(busy.id).includes(pid));
      const victim = dice.below(children.length);
      kill(children.filter((_, index) => index === victim));
    },
  };
  const chosen: string[] = [];
  for (let round = 0; round < rounds; round++) {
    await isWriting();
    const choice = dice.one(["service", "server", "process"] as const);
    chosen.push(choice);
    await kills[choice]();
    await isWriting();
    expect(await app.settled(busy.id), `seed ${seed}: ${chosen.join(", ")}`).toEqual(
      expect.objectContaining({ status: "ready", endpoints: busy.endpoints }),
    );
    await app.hasOneServer(busy.id, `seed ${seed}: ${chosen.join(", ")}`);
  }
  const known = await end();
  // The server may still recover from the last kill.
  const rows = await vi.waitFor(
    async () => (await app.connect(busy).then((client) => client.query<{ id: number }>("SELECT id FROM items"))).rows,
    { timeout: hang },
  );
  const found = new Set(rows.map(({ id }) => id));
  expect(
    known.filter((id) => !found.has(id)),
    `seed ${seed}: ${chosen.join(", ")}`,
  ).toEqual([]);
  expect(known.length).toBeGreaterThan(rounds);
  // The other cluster has the same server, and the same connection.
  expect(app.servers(neighbour.id)).toContain(before);
  expect((await quiet.query("SELECT id FROM items")).rows).toEqual([{ id: 1 }]);
  await app.stop();
  expect(processesIn(app.data)).toEqual([]);
});

/** A time at which the service is killed: while a file exists, or as soon as it exists. */
interface Moment {
  readonly name: string;
  readonly has: (path: (...parts: readonly string[]) => string, id: string) => boolean;
}

const exists = (...parts: readonly string[]): Moment => ({
  name: parts.join("/"),
  has: (path, id) => existsSync(path(id, ...parts)),
});
const anyIn = (suffix: string): Moment => ({
  name: `a backup${suffix}`,
  has: (path, id) =>
    existsSync(path(id, "backups")) && readdirSync(path(id, "backups")).some((name) => name.endsWith(suffix)),
});

/** The moments of each operation, one after the other; `npm test` has the first. */
const moments = {
  create: [exists("data.draft"), exists("data.draft", "global"), exists("data"), exists("data", "postmaster.pid")],
  backUp: [anyIn(".draft"), exists("backups")],
  restore: [exists("data.draft"), exists("recovery.json"), exists("data"), exists("data", "postmaster.pid")],
  fork: [exists("data.draft.draft"), exists("data"), exists("data", "postmaster.pid")],
  remove: [
    { name: "its end", has: (path, id) => !existsSync(path(id, "data", "postmaster.pid")) },
    { name: "its move", has: (path, id) => existsSync(path("deleted", id)) },
  ],
} as const satisfies Record<string, readonly Moment[]>;

test("a server that is killed while its cluster is set up or copied starts again, and the cluster is ready", async () => {
  const app = await killable();
  const source: Ready = await app.cluster({ name: "source" });
  await (await app.connect(source)).query("CREATE TABLE items AS SELECT 1 AS id");
  const killed = async (victim: string, id: string, has: Moment["has"]) => {
    await vi.waitFor(() => expect(has(app.pathOf, id)).toBe(true), { timeout: hang, interval: 1 });
    kill(app.servers(victim));
    const ready: Ready = await app.settled(id);
    expect(ready.status).toBe("ready");
    await app.hasOneServer(id, "after the kill");
    return ready;
  };
  const created = (await app.create()).body.data.id;
  await killed(created, created, exists("data", "postmaster.pid").has);
  const fork = (await app.call("POST", `/postgres/${source.id}/fork`)).body.data.id;
  const ready = await killed(source.id, fork, exists("data.draft.draft").has);
  expect((await (await app.connect(ready)).query("SELECT id FROM items")).rows).toEqual([{ id: 1 }]);
  await app.stop();
});

test("a kill at any time of a creation, backup, restore, fork or deletion leaves nothing half done", async () => {
  const app = await killable();
  const source: Ready = await app.cluster({ name: "source" });
  const client = await app.connect(source);
  await client.query("CREATE TABLE items (id int)");
  await client.query("INSERT INTO items VALUES (1)");
  const backup = await app.backUp(source.id);
  const base = `/postgres/${source.id}`;
  const begin = {
    create: async () => (await app.create()).body.data.id,
    restore: async () => (await app.call("POST", `${base}/restore`, { backup_id: backup })).body.data.id,
    fork: async () =>
      (await app.call("POST", `${base}/fork`, { name: `fork-${Math.random().toString(36).slice(2)}` })).body.data.id,
    backUp: async () => {
      await app.call("POST", `${base}/backups`, { type: "full" });
      return source.id;
    },
    remove: async () => {
      const { id } = await app.cluster();
      await app.call("DELETE", `/postgres/${id}`);
      return id;
    },
  };
  const rowsIn = async (ready: Ready) => (await (await app.connect(ready)).query("SELECT id FROM items")).rows;
  for (const kind of ["create", "backUp", "restore", "fork", "remove"] as const)
    for (const { name, has } of moments[kind]) {
      const because = `killed at ${name} of ${kind}`;
      const id = await begin[kind]();
      await vi.waitFor(() => expect(has(app.pathOf, id), because).toBe(true), { timeout: hang, interval: 1 });
      app.kill();
      await app.restart();
      if (kind === "remove") {
        const status = async () => (await app.call("GET", `/postgres/${id}`)).text;
        await expect.poll(status, { message: because }).toContain("has been deleted");
        expect(existsSync(app.pathOf(id)), because).toBe(false);
        expect(processesIn(app.pathOf(id)), because).toEqual([]);
        expect(readFileSync(app.pathOf("deleted", id, "PG_VERSION"), "utf8"), because).toMatch(/^1[678]\n$/);
        continue;
      }
      const ready = await app.settled(id);
      expect(ready.status, because + app.said()).toBe("ready");
      await app.hasOneServer(id, because);
      if (kind === "backUp") {
        const newest = async () => (await app.get(`${base}/backups`))[0].status;
        await expect.poll(newest, { message: because }).toBe("completed");
        expect(
          readdirSync(app.pathOf(id, "backups")).filter((file) => file.includes("draft")),
          because,
        ).toEqual([]);
      } else {
        if (kind !== "create") expect(await rowsIn(ready), because).toEqual([{ id: 1 }]);
        const unfinished = readdirSync(app.pathOf(id)).filter((file) => /draft|initial|recovery/.test(file));
        expect(unfinished, because).toEqual([]);
        await app.call("DELETE", `/postgres/${id}`);
      }
    }
  expect(await rowsIn(source)).toEqual([{ id: 1 }]);
  await app.call("DELETE", base);
  await expect.poll(() => readdirSync(app.pathOf())).toEqual(["deleted"]);
  expect(processesIn(app.data)).toEqual([]);
  await app.stop();
});

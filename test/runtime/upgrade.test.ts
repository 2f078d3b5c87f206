// The service is replaced by a newer version, with other tables, while a container answers requests and a client of a Postgres server
// writes rows: nothing is interrupted. Then it returns to the version before.
import { readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { firstSchema, migrations } from "../../service/store/schema.ts";
import { caller, type Call } from "../service/client.ts";
import { command, folder } from "../service/command.ts";
import { serviceMain } from "../support/built.ts";
import { canHoldSockets, holdSockets, type Holder } from "../support/heldSockets.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { asVersion, otherBuild } from "../support/otherBuild.ts";
import { steadyLoad } from "../support/steadyLoad.ts";
import { removeStored } from "./cleaning.ts";
import { image } from "./image.ts";
import { docker, hasEngine } from "./runtimes.ts";

const schema = firstSchema + migrations.length;
const newer = "0.9.0";

/** A service at ports that its parent holds, with containers and Postgres servers. */
async function running() {
  const data = folder();
  const held = await holdSockets({ api: 0, http: 0, https: 0 });
  afterThisTest(async () => {
    held.end();
    await removeStored(data);
  });
  const args = ["start", "--data", data, "--json", "--runtime", "docker", "--postgres", "embedded"];
  const start = async (main: string): Promise<Holder> => {
    const holder = await held.start(process.execPath, [main, ...args, "--apps-domain", "apps.example.com"]);
    expect(await holder.ready, held.said()).toMatchObject({ pid: holder.pid });
    return holder;
  };
  const call: Call = (...of) =>
    caller(`http://127.0.0.1:${held.ports.api}`, readFileSync(join(data, "token"), "utf8").trim())(...of);
  return { data, start, call, ports: held.ports };
}

/** Creates a Machine that answers requests, and returns its id. */
async function deploy(call: Call, name: string): Promise<string> {
  const ports = [{ port: 80, handlers: ["http"] }];
  const services = [{ protocol: "tcp", internal_port: 8080, ports }];
  const { body } = await call("POST", "/apps/web/machines", { name, config: { image, services } });
  await expect.poll(async () => (await call("GET", `/apps/web/machines/${body.id}`)).body.state).toBe("started");
  return body.id;
}

/** A client of a new cluster. */
async function clientOf(call: Call): Promise<pg.Client> {
  const cluster = { name: "data", region: "ams", org_slug: "personal", plan: "basic" };
  const { id } = (await call("POST", "/postgres", cluster)).body.data;
  const get = async () => (await call("GET", `/postgres/${id}`)).body.data;
  await expect.poll(async () => (await get()).status).toBe("ready");
  const { password } = (await call("GET", `/postgres/${id}/users/fly-user/credentials`)).body.data;
  const { host, port } = (await get()).endpoints.primary.direct;
  const client = new pg.Client({ host, port, user: "fly-user", password, database: "fly-db" });
  await client.connect();
  afterThisTest(() => client.end().catch(() => {}));
  return client;
}

/** Writes rows one after the other until `end` is called, which returns their number. */
function writing(client: pg.Client): { readonly end: () => Promise<number> } {
  const over = new AbortController();
  const write = async (): Promise<number> => {
    for (let count = 0; ; count++) {
      if (over.signal.aborted) return count;
      await client.query("INSERT INTO rows VALUES ($1)", [count]);
    }
  };
  const done = write();
  return {
    end: () => {
      over.abort();
      return done;
    },
  };
}

/** The containers of a data folder, by Machine: which one it is, and when it was started. */
async function containers(data: string): Promise<unknown[][]> {
  const label = `machines-service.data=${readFileSync(join(data, "data-id"), "utf8").trim()}`;
  const listed = await docker.listContainers({ all: true, filters: { label: [label] } });
  const shown = await Promise.all(listed.map(({ Id }) => docker.getContainer(Id).inspect()));
  const machineOf = ({ Config }: (typeof shown)[number]): string => Config.Labels["machines-service.machine"] ?? "";
  return shown.map((one) => [machineOf(one), one.Id, one.RestartCount, one.State.StartedAt, one.State.Pid]).sort();
}

/** The process of a session, and that of its server. */
async function processesOf(client: pg.Client): Promise<[number, string]> {
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  const { pid = 0 } = rows[0] ?? {};
  return [pid, /^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? ""];
}

const stop = async ({ pid, ended }: Holder): Promise<void> => {
  process.kill(pid, "SIGTERM");
  expect(await ended).toBe(0);
};

const appsOf = async (call: Call): Promise<string[]> =>
  (await call("GET", "/apps?org_slug=personal")).body.apps.map(({ name }: { name: string }) => name).sort();

describe.runIf(hasEngine && canHoldSockets())("an upgrade of a service with containers and databases", () => {
  test("no request, container or connection is lost, and the version before has everything from before", async () => {
    const next = otherBuild(serviceMain, asVersion(newer));
    afterThisTest(() => next.remove());
    const { data, start, call, ports } = await running();
    const old = await start(serviceMain);
    await call("POST", "/apps", { name: "web", org_slug: "personal" });
    const id = await deploy(call, "first");
    const destroyed = await deploy(call, "destroyed");
    const client = await clientOf(call);
    await client.query("CREATE TABLE rows (number int PRIMARY KEY)");
    const before = { containers: await containers(data), processes: await processesOf(client) };
    const { body: machine } = await call("GET", `/apps/web/machines/${id}`);

    const rows = writing(client);
    const { outcome, done } = steadyLoad({
      targets: [
        { port: ports.http, host: "web.apps.example.com", path: "/" },
        { port: ports.api, host: "localhost", path: "/v1/platform/regions" },
      ],
      ...{
        requests: 2000,
        clients: 4,
        headers: { authorization: `Bearer ${readFileSync(join(data, "token"), "utf8").trim()}` },
      },
      isRight: (status) => status === 200,
    });
    await expect.poll(() => outcome.answered + outcome.lost.length).toBeGreaterThan(500);
    await stop(old);
    const upgraded = await start(next.main);
    expect(await done).toMatchObject({ answered: 2000, lost: [] });

    const count = await rows.end();
    const { rows: found } = await client.query("SELECT count(*)::int AS count, max(number) AS last FROM rows");
    expect(found).toEqual([{ count, last: count - 1 }]);
    expect({ containers: await containers(data), processes: await processesOf(client) }).toEqual(before);
    expect((await call("GET", `/apps/web/machines/${id}`)).body).toEqual(machine);
    expect(JSON.parse(readFileSync(join(data, "service.json"), "utf8"))).toMatchObject({ version: newer });
    expect(readdirSync(data).filter((name) => name.includes("backup-"))).toEqual([`service.db.backup-${schema}`]);

    // What happens afterwards is lost by a return, and only that.
    await call("POST", "/apps", { name: "later", org_slug: "personal" });
    await deploy(call, "second");
    expect((await call("DELETE", `/apps/web/machines/${destroyed}?force=true`)).status).toBe(200);
    await expect.poll(() => containers(data)).toHaveLength(2);
    await stop(upgraded);
    const { code, err } = await command(["start", "--data", data]);
    expect([code, err]).toEqual([1, expect.stringContaining(`was written by machines-service ${newer}`)]);
    for (const name of readdirSync(data).filter((one) => one === "service.db" || one.startsWith("service.db-")))
      rmSync(join(data, name));
    renameSync(join(data, `service.db.backup-${schema}`), join(data, "service.db"));
    const again = await start(serviceMain);
    expect(await appsOf(call)).toEqual(["web"]);
    expect((await call("GET", `/apps/web/machines/${id}`)).body).toEqual(machine);
    // The container of the later Machine is removed, and the destroyed one has another. The first one never noticed.
    await expect.poll(async () => (await containers(data)).map(([machine]) => machine)).toEqual([id, destroyed].sort());
    expect(await containers(data)).toContainEqual(before.containers.find(([machine]) => machine === id));
    await expect.poll(async () => (await call("GET", `/apps/web/machines/${destroyed}`)).body.state).toBe("started");
    expect(await processesOf(client)).toEqual(before.processes);
    await stop(again);
  });
});

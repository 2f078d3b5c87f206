// Postgres clusters by the operator CloudNativePG, with real servers on the real node.
import { PatchStrategy, setHeaderOptions, type V1Pod } from "@kubernetes/client-node";
import { describe, expect, inject, test } from "vitest";
import { storeOf } from "../../service/local/postgresBackup.ts";
import { nameOf, operatorKinds, postgresLabels } from "../../service/runtime/cnpg/names.ts";
import { clusterPrograms, startCluster } from "../../tools/setup/kubernetes.mjs";
import { catalogOf, images } from "../../tools/setup/kubernetesPostgres.mjs";
import { command, folder } from "../service/command.ts";
import { rowsOf } from "../service/postgres/servers.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { startS3 } from "../support/restic.ts";
import { eventually, hasPostgres, onOperator } from "./postgres.ts";

type App = Awaited<ReturnType<typeof onOperator>>;

/** How to name a cluster's object to the API. */
async function clusterOf(app: App, id?: string) {
  const all = await app.objects("cluster");
  const object = id === undefined ? all[0] : all.find(({ metadata }) => metadata.name === nameOf(id));
  const [group = "", version = ""] = operatorKinds.cluster.apiVersion.split("/");
  const { name = "", namespace = "" } = object?.metadata ?? {};
  return { group, version, plural: "clusters", name, namespace };
}

/** Whether a Pod is a server of a cluster. */
const isServerOf = ({ metadata }: V1Pod, id: string): boolean =>
  metadata?.labels?.[postgresLabels.cluster] === id && metadata.labels["cnpg.io/instanceName"] !== undefined;

/** Changes the object of a cluster, as someone else than the service. */
async function change(app: App, body: object): Promise<void> {
  const merge = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);
  await app.custom.patchNamespacedCustomObject({ ...(await clusterOf(app)), body }, merge);
}

test("without the operator the service does not start, and says so in one sentence", async () => {
  const { found } = await clusterPrograms(process.env);
  const cluster = await startCluster(found ?? {});
  afterThisTest(() => cluster.remove());
  const args = [
    "start",
    "--data",
    folder(),
    "--listen",
    "127.0.0.1:0",
    "--runtime",
    "kubernetes",
    "--postgres",
    "cnpg",
  ];
  const { code, out, err } = await command(args, { ...process.env, KUBECONFIG: cluster.kubeconfig });
  expect([code, out]).toEqual([1, ""]);
  expect(err).toMatch(/^machines-service: --postgres cnpg needs the operator CloudNativePG, which .* install it/);
  expect(err.trim().split("\n")).toHaveLength(1);
});

describe.runIf(hasPostgres)("clusters of the operator", () => {
  test("a cluster is a Cluster with a Pooler, and clients reach it by both; deletion leaves nothing", async () => {
    const app = await onOperator();
    const { ready } = await app.filled({ name: "shop" });
    expect(await app.objects("cluster")).toHaveLength(1);
    expect(await app.objects("pooler")).toHaveLength(1);
    expect(await rowsOf(await app.connect(ready, "fly-user", "fly-db", "pooler"))).toBe(1);
    expect((await app.call("DELETE", `/postgres/${ready.id}`)).status).toBe(202);
    await expect.poll(async () => (await app.call("GET", `/postgres/${ready.id}`)).text).toContain("has been deleted");
    for (const kind of ["cluster", "pooler", "backup"] as const) expect(await app.objects(kind)).toEqual([]);
    const { core, selector } = app;
    await expect.poll(async () => (await core.listNamespace(selector)).items).toEqual([]);
    expect((await core.listPersistentVolumeClaimForAllNamespaces(selector)).items).toEqual([]);
    expect((await core.listSecretForAllNamespaces(selector)).items).toEqual([]);
  });

  test("users can do what their role says, databases and extensions follow the requests, and changes are answered when they are done", async () => {
    const app = await onOperator();
    const ready = await app.cluster();
    const users = `/postgres/${ready.id}/users`;
    for (const role of ["writer", "reader"])
      expect((await app.call("POST", users, { username: role, role })).status).toBe(201);
    const [owner, writer, reader] = [
      await app.connect(ready),
      await app.connect(ready, "writer"),
      await app.connect(ready, "reader", "fly-db", "pooler"),
    ];
    await owner.query("CREATE TABLE items (id serial PRIMARY KEY, text text)");
    await writer.query("INSERT INTO items (text) VALUES ('one')");
    expect(await rowsOf(reader)).toBe(1);
    await expect(reader.query("INSERT INTO items (text) VALUES ('two')")).rejects.toThrow(/permission denied/);
    expect((await app.call("PATCH", `${users}/writer`, { role: "reader" })).status).toBe(204);
    await expect(writer.query("SELECT 1")).rejects.toThrow();
    expect((await app.call("POST", `/postgres/${ready.id}/databases`, { name: "more" })).status).toBe(201);
    await app.connect(ready, "fly-user", "more");
    const extensions = `/postgres/${ready.id}/databases/fly-db/extensions`;
    expect((await app.call("POST", extensions, { name: "citext" })).status).toBe(204);
    await owner.query("CREATE TABLE words (text citext)");
    expect(await app.call("DELETE", `${extensions}/citext`)).toMatchObject({ status: 409 });
    const { body } = await app.call("POST", `${users}/fly-user/rotate_password`, { kill_sessions: true });
    expect(body.data.password).toBeTruthy();
    await expect(owner.query("SELECT 1")).rejects.toThrow();
    expect(await rowsOf(await app.connect(ready, "fly-user", "fly-db", "pooler"))).toBe(1);
    // No client is the superuser, and the service's own roles are no users of clients.
    expect((await app.get(users)).map(({ username }: { username: string }) => username).sort()).toEqual([
      "fly-user",
      "reader",
      "writer",
    ]);
  });

  test("a backup and a fork give the rows of then; what has no archive is refused by name", async () => {
    const app = await onOperator();
    const { ready, client } = await app.filled();
    const backup = await app.backUp(ready.id);
    await client.query("INSERT INTO items VALUES (2)");
    for (const [path, body, rows] of [
      ["restore", { backup_id: backup }, 1],
      ["fork", {}, 2],
    ] as const) {
      const created = await app.call("POST", `/postgres/${ready.id}/${path}`, body);
      expect(created.status).toBe(201);
      const copy = await app.settled(created.body.data.id);
      expect(copy.status).toBe("ready");
      expect(await rowsOf(await app.connect(copy))).toBe(rows);
    }
    // The backup of the fork is no longer needed.
    await expect.poll(() => app.objects("backup")).toHaveLength(1);
    const time = await app.call("POST", `/postgres/${ready.id}/restore`, { pitr_time: new Date().toISOString() });
    expect(time).toMatchObject({
      status: 422,
      body: { error: expect.stringMatching(/^invalid pitr_time, .*archive/) },
    });
  });

  test("with object storage, backups are in it, and a cluster is restored to a time, also if its servers are lost", async ({
    skip,
  }) => {
    const { services = "" } = inject("postgres") ?? {};
    // Pods reach this computer at the addresses of Services.
    const s3 = await startS3(`${services}.0.1`);
    if (!s3) return skip("no server with the interface of S3");
    const app = await onOperator({}, { store: storeOf(`${s3.url}/clusters`, s3.variables) });
    const { ready, client } = await app.filled();
    const backup = await app.backUp(ready.id);
    await client.query("INSERT INTO items VALUES (2)");
    // A time has milliseconds here, and those of transactions have microseconds.
    const now = async () => {
      const sql = "SELECT date_trunc('milliseconds', clock_timestamp()) + interval '1 millisecond' AS now";
      const time = (await client.query<{ now: Date }>(sql)).rows[0]?.now;
      const isPast = async () => (await client.query("SELECT clock_timestamp() > $1 AS past", [time])).rows[0].past;
      await expect.poll(isPast).toBe(true);
      return time;
    };
    const two = await now();
    await client.query("INSERT INTO items VALUES (3)");
    const three = await now();
    const copied = async (path: string, body: object) => {
      const created = await app.call("POST", `/postgres/${ready.id}/${path}`, body);
      expect(created.status).toBe(201);
      return app.settled(created.body.data.id);
    };
    const rows = async (path: string, body: object) => {
      const copy = await copied(path, body);
      expect(copy.status).toBe("ready");
      return rowsOf(await app.connect(copy));
    };
    expect(await rows("restore", { backup_id: backup })).toBe(1);
    // Nothing has changed since.
    expect(await rows("restore", { pitr_time: three?.toISOString() })).toBe(3);
    expect(await rows("fork", {})).toBe(3);
    await app.custom.deleteNamespacedCustomObject(await clusterOf(app, ready.id));
    await expect.poll(async () => (await app.call("GET", `/postgres/${ready.id}/queries/active`)).status).toBe(503);
    await expect.poll(async () => (await app.pods()).filter((pod) => isServerOf(pod, ready.id))).toEqual([]);
    expect(await rows("restore", { pitr_time: two?.toISOString() })).toBe(2);
    const late = await copied("restore", { pitr_time: new Date().toISOString() });
    expect(late.status).toBe("failed");
  });

  test("a replica takes over from a primary that is lost, at the same address, with every row", async () => {
    const app = await onOperator();
    const { ready, client } = await app.filled({ plan: "starter" });
    const status = async () => (await app.objects("cluster"))[0]?.status ?? {};
    await expect.poll(async () => (await status())["readyInstances"]).toBe(2);
    const primary = String((await status())["currentPrimary"]);
    const before = await app.get(`/postgres/${ready.id}`);
    expect(before.primary_available).toBe(true);
    const { namespace } = await clusterOf(app);
    await app.core.deleteNamespacedPod({ name: primary, namespace, gracePeriodSeconds: 0 });
    await expect(client.query("SELECT pg_sleep(600)")).rejects.toThrow();
    await expect.poll(async () => (await status())["currentPrimary"]).not.toBe(primary);
    await eventually(async () => rowsOf(await app.connect(ready))).toBe(1);
    await eventually(async () => rowsOf(await app.connect(ready, "fly-user", "fly-db", "pooler"))).toBe(1);
    // The service has found the new primary.
    await expect
      .poll(async () => (await app.call("POST", `/postgres/${ready.id}/databases`, { name: "more" })).status)
      .toBe(201);
    const after = await app.get(`/postgres/${ready.id}`);
    expect(after.endpoints).toEqual(ready.endpoints);
    // The answer tells of it.
    expect(after).toMatchObject({ status: "ready", primary_available: true });
    expect(Date.parse(after.primary_since)).toBeGreaterThan(Date.parse(before.primary_since));
  });

  test("what others change in a Cluster is repaired, and a Cluster that they delete is not replaced by an empty one", async () => {
    const app = await onOperator();
    const ready = await app.cluster();
    const [before] = await app.objects("cluster");
    await change(app, { spec: { enableSuperuserAccess: false, postgresql: { pg_hba: ["host all all all trust"] } } });
    const spec = async () => (await app.objects("cluster"))[0]?.spec;
    await expect.poll(spec).toEqual(before?.spec);
    await app.custom.deleteNamespacedCustomObject(await clusterOf(app));
    await expect.poll(() => app.objects("cluster")).toEqual([]);
    const queries = () => app.call("GET", `/postgres/${ready.id}/queries/active`);
    await expect.poll(async () => (await queries()).status).toBe(503);
    expect(await app.objects("cluster")).toEqual([]);
    expect(await app.get(`/postgres/${ready.id}`)).toMatchObject({ status: "ready", primary_available: false });
    expect((await app.call("DELETE", `/postgres/${ready.id}`)).status).toBe(202);
    await expect.poll(async () => (await app.call("GET", `/postgres/${ready.id}`)).text).toContain("has been deleted");
  });

  test("a new minor version of the catalog is installed, and the rows remain", async () => {
    // Clusters of other tests follow another catalog.
    const own = "upgraded";
    const app = await onOperator({}, { catalog: own });
    const { custom } = app;
    const [group = "", version = ""] = operatorKinds.cluster.apiVersion.split("/");
    const plural = "clusterimagecatalogs";
    await custom.createClusterCustomObject({ group, version, plural, body: catalogOf(own, images.postgres) });
    afterThisTest(() => custom.deleteClusterCustomObject({ group, version, plural, name: own }));
    const ready = await app.cluster();
    const client = await app.connect(ready);
    await client.query("CREATE TABLE items AS SELECT 1 AS id");
    const { spec } = catalogOf(own, images.nextPostgres);
    const merge = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);
    await custom.patchClusterCustomObject({ group, version, plural, name: own, body: { spec } }, merge);
    const imageOf = async () =>
      (await app.pods()).flatMap(({ metadata, spec }) =>
        metadata?.labels?.["cnpg.io/instanceName"] === undefined ? [] : (spec?.containers[0]?.image ?? []),
      );
    await expect.poll(imageOf).toEqual([images.nextPostgres]);
    await eventually(async () => rowsOf(await app.connect(ready))).toBe(1);
  });
});

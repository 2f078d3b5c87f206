// Postgres clusters whose API server is killed with its etcd, and restored from a backup: nothing is lost, there twice or left over.
import { describe, expect, test } from "vitest";
import { nameOf } from "../../service/runtime/cnpg/names.ts";
import { rowsOf } from "../service/postgres/servers.ts";
import { eventually, hasPostgres, onOperator, ownOperator } from "./postgres.ts";

describe.runIf(hasPostgres)("the API server and etcd", () => {
  test("are killed while clusters are made, copied and deleted: they converge, and a database serves meanwhile", async () => {
    const cluster = await ownOperator("127.0.0.21");
    const app = await onOperator({}, {}, { on: cluster });
    const { core, selector } = app;
    const created = await app.create();
    await expect.poll(() => app.objects("cluster")).toHaveLength(1);
    await cluster.down();
    await cluster.up();
    const ready = await app.settled(created.body.data.id);
    expect(ready.status).toBe("ready");
    const client = await app.connect(ready);
    await client.query("CREATE TABLE items AS SELECT 1 AS id");
    await cluster.down();
    await client.query("INSERT INTO items VALUES (2)");
    const fork = await app.call("POST", `/postgres/${ready.id}/fork`, {});
    expect(fork.status).toBe(201);
    await cluster.up();
    await expect.poll(() => app.objects("backup")).toHaveLength(1);
    await cluster.down();
    await cluster.up();
    const copy = await app.settled(fork.body.data.id);
    expect(copy.status).toBe("ready");
    expect(await rowsOf(await app.connect(copy))).toBe(2);
    for (const { id } of [ready, copy]) expect((await app.call("DELETE", `/postgres/${id}`)).status).toBe(202);
    await cluster.down();
    await cluster.up();
    await expect.poll(async () => (await core.listNamespace(selector)).items).toEqual([]);
    for (const kind of ["cluster", "pooler", "backup"] as const) expect(await app.objects(kind)).toEqual([]);
  });

  test("are restored from an earlier backup: rows stay, a deleted cluster stays deleted, and a newer one is reported as missing", async () => {
    const cluster = await ownOperator("127.0.0.22");
    const app = await onOperator({}, {}, { on: cluster });
    const { core, selector } = app;
    const remove = async (id: string) => {
      expect((await app.call("DELETE", `/postgres/${id}`)).status).toBe(202);
      await expect.poll(async () => (await app.call("GET", `/postgres/${id}`)).text).toContain("has been deleted");
    };
    const { ready: kept, client } = await app.filled();
    const { ready: deleted } = await app.filled();
    await cluster.backUp();
    await client.query("INSERT INTO items VALUES (2)");
    await remove(deleted.id);
    const { ready: newer } = await app.filled();
    const begun = await app.create();
    await expect.poll(() => app.objects("cluster")).toHaveLength(3);
    const named = async () => (await app.objects("cluster")).map(({ metadata }) => metadata.name).sort();
    await cluster.restore();
    const { id } = await app.settled(begun.body.data.id);
    await expect.poll(named).toEqual([nameOf(kept.id), nameOf(id)].sort());
    await eventually(async () => rowsOf(await app.connect(kept))).toBe(2);
    const shown = () => app.get(`/postgres/${newer.id}`);
    await expect.poll(shown).toMatchObject({ status: "ready", primary_available: false });
    for (const each of [newer.id, kept.id, id]) await remove(each);
    await expect.poll(async () => (await core.listNamespace(selector)).items).toEqual([]);
  });
});

// Postgres clusters whose service loses requests, answers and watches of the API server: nothing is there twice, and nothing is left over.
import { describe, expect, inject, test } from "vitest";
import { rowsOf } from "../service/postgres/servers.ts";
import { faultyApi, targetOf, type Fault } from "./apiProxy.ts";
import { hasPostgres, onOperator } from "./postgres.ts";

describe.runIf(hasPostgres)("clusters of the operator are made, copied and deleted", () => {
  test.each<{ readonly name: string; readonly treat: Fault }>([
    {
      name: "a third of the answers is lost",
      treat: ({ isWatch }, random) => (!isWatch && random < 0.33 ? "cutAnswer" : "pass"),
    },
    {
      name: "a third of the requests is lost, and every watch ends after one event",
      treat: ({ isWatch }, random) => (isWatch ? "cutWatch" : random < 0.33 ? "cutRequest" : "pass"),
    },
    {
      name: "a third of the requests gets 429",
      treat: ({ isWatch }, random) => (!isWatch && random < 0.33 ? "throttle" : "pass"),
    },
  ])("while $name", async ({ treat }) => {
    const target = targetOf(inject("postgres")?.kubeconfig ?? "");
    const { kubeconfig, faults } = await faultyApi(target, treat);
    const app = await onOperator({}, {}, { through: kubeconfig });
    faults.isOn = true;
    const { ready } = await app.filled();
    await app.backUp(ready.id);
    const fork = await app.call("POST", `/postgres/${ready.id}/fork`, {});
    expect(fork.status).toBe(201);
    const copy = await app.settled(fork.body.data.id);
    expect(copy.status).toBe("ready");
    expect(await rowsOf(await app.connect(copy))).toBe(1);
    // The backup of the fork is no longer needed.
    await expect.poll(() => app.objects("backup")).toHaveLength(1);
    expect(await app.objects("cluster")).toHaveLength(2);
    expect(await app.objects("pooler")).toHaveLength(2);
    for (const { id } of [ready, copy]) expect((await app.call("DELETE", `/postgres/${id}`)).status).toBe(202);
    const { core, selector } = app;
    await expect.poll(async () => (await core.listNamespace(selector)).items).toEqual([]);
    for (const kind of ["cluster", "pooler", "backup"] as const) expect(await app.objects(kind)).toEqual([]);
  });
});

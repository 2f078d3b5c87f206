import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { delayProfiles } from "../../service/time/delays.ts";
import { bind, type Bound } from "../support/binding.ts";
import { makeCluster, once, send } from "../support/around.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

const another = once((service) => makeCluster(service, "another"));

lifecycle("PostgresDatabase", {
  given: async (service) => ({ cluster: await makeCluster(service, "main"), name: "shop" }),
  changes: async (service) => [
    { set: { name: "store" }, expect: "refused" },
    { set: { cluster: await another(service) }, expect: "refused" },
    { set: { allowDataLoss: true }, expect: "no request" },
    { set: { name: "store" }, expect: "replace" },
    { set: { cluster: await another(service) }, expect: "replace" },
  ],
});

describe("PostgresDatabase", () => {
  let service: TestService;
  let database: Bound;
  beforeAll(async () => {
    service = await startService({ delays: { ...delayProfiles.none, cluster: 150 } });
    database = bind("PostgresDatabase", service);
  });
  afterAll(() => service.close());

  const make = async (inputs: Record<string, unknown>) => {
    const checked = await database.check({}, inputs);
    expect(checked.failures).toEqual([]);
    return { inputs: checked.inputs, ...(await database.create(checked.inputs)) };
  };
  const names = async (cluster: string) =>
    (await send<{ data: { name: string }[] }>(service, "GET", `/v1/postgres/${cluster}/databases`)).data.map(
      ({ name }) => name,
    );

  test("its id has the kind, and the create waits for a cluster that is not ready", async () => {
    const cluster = await makeCluster(service, "slow");
    const { id } = await make({ cluster, name: "shop" });
    expect(id).toBe(`${cluster}/database/shop`);
    expect(service.requests.some(({ status }) => status === 503)).toBe(true);
    expect(await names(cluster)).toContain("shop");
  });

  test("an existing database is not adopted, even after a lost answer", async () => {
    const cluster = await makeCluster(service, "taken");
    const first = await make({ cluster, name: "shop" });
    await expect(make({ cluster, name: "shop" })).rejects.toThrow(/answered 409: Database already exists/);
    service.fail({ operation: "postgres.createDatabase", status: "reset", when: "before", times: 1 });
    await expect(make({ cluster, name: "shop" })).rejects.toThrow(/answered 409: Database already exists/);
    expect(await database.read(first.id, first.state)).toBeDefined();
  });

  test("a request lost before it was applied results in exactly one database", async () => {
    const cluster = await makeCluster(service, "lost-before");
    service.fail({ operation: "postgres.createDatabase", status: "reset", when: "before", times: 1 });
    await make({ cluster, name: "shop" });
    expect((await names(cluster)).filter((name) => name === "shop")).toHaveLength(1);
  });

  test("a database deleted outside or with its cluster is gone", async () => {
    const cluster = await makeCluster(service, "leaving");
    const shop = await make({ cluster, name: "shop" });
    const store = await make({ cluster, name: "store" });
    await send(service, "DELETE", `/v1/postgres/${cluster}/databases/shop`);
    expect(await database.read(shop.id, shop.state)).toBeUndefined();
    await database.delete(shop.id, shop.state);
    await send(service, "DELETE", `/v1/postgres/${cluster}`);
    expect(await database.read(store.id, store.state)).toBeUndefined();
    await database.delete(store.id, store.state);
  });
});

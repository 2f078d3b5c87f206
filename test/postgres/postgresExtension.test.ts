import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { SimulatedPostgres } from "../../service/runtime/simulatedPostgres.ts";
import { bind, type Bound } from "../support/binding.ts";
import { makeCluster, once, send } from "../support/around.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

/** A cluster with a database `shop`. */
async function withShop(service: TestService, name: string, body = {}): Promise<string> {
  const cluster = await makeCluster(service, name, body);
  await send(service, "POST", `/v1/postgres/${cluster}/databases`, { name: "shop" });
  return cluster;
}
const another = once((service) => withShop(service, "another"));

lifecycle("PostgresExtension", {
  given: async (service) => {
    const cluster = await withShop(service, "main");
    return { cluster, database: `${cluster}/database/shop`, name: "citext" };
  },
  changes: async (service) => [
    { set: { name: "hstore" }, expect: "replace" },
    { set: { createSchema: true }, expect: "no request" },
    { set: { schema: "tools" }, expect: "delete-replace" },
    { set: { forceDestroy: true }, expect: "no request" },
    { set: { database: "fly-db" }, expect: "replace" },
    { set: { cluster: await another(service) }, expect: "replace" },
  ],
});

describe("PostgresExtension", () => {
  let service: TestService;
  let extension: Bound;
  let cluster: string;
  beforeAll(async () => {
    service = await startService();
    extension = bind("PostgresExtension", service);
    cluster = await withShop(service, "main");
  });
  afterAll(() => service.close());

  const make = async (inputs: Record<string, unknown>) => {
    const checked = await extension.check({}, { cluster, database: `${cluster}/database/shop`, ...inputs });
    expect(checked.failures).toEqual([]);
    return { inputs: checked.inputs, ...(await extension.create(checked.inputs)) };
  };

  test("its id has only the database and the name, and its version is an output", async () => {
    const { id, state } = await make({ name: "vector" });
    expect(id).toBe(`${cluster}/extension/shop/vector`);
    expect(state).toMatchObject({ version: "0.7.0", schema: "public" });
  });

  test("PostGIS that is not enabled and a missing schema are refused, and the error says what to set", async () => {
    await expect(make({ name: "postgis" })).rejects.toThrow(/PostGIS is not enabled.* Set postgisEnabled: true/);
    await expect(make({ name: "hstore", schema: "tools" })).rejects.toThrow(/does not exist.* Set createSchema: true/);
    await expect(make({ name: "no-such" })).rejects.toThrow(/answered 422: unknown extension/);
    const able = await withShop(service, "able", { postgis_enabled: true });
    expect((await make({ cluster: able, database: "shop", name: "postgis" })).state["version"]).toBe("3.4.2");
  });

  test("an installed extension is not adopted; a lost answer is settled by a read", async () => {
    await make({ name: "unaccent" });
    await expect(make({ name: "unaccent" })).rejects.toThrow(/answered 409: Extension is already installed/);
    service.fail({ operation: "postgres.installExtension", status: "reset", when: "after", times: 1 });
    expect((await make({ name: "pgcrypto" })).state["version"]).toBe("1.3");
  });

  test("forceDestroy is sent only if it is set", async () => {
    const changeSpy = vi.spyOn(SimulatedPostgres.prototype, "change");
    for (const forceDestroy of [false, true]) {
      const { id, state } = await make({ name: "pg_trgm", forceDestroy });
      await extension.delete(id, state);
      const removed: unknown = expect.objectContaining({ name: "pg_trgm" });
      const removal = { kind: "removeExtension", extension: removed, force: forceDestroy };
      expect(changeSpy).toHaveBeenLastCalledWith(expect.anything(), expect.objectContaining(removal));
      expect(await extension.read(id, state)).toBeUndefined();
    }
    changeSpy.mockRestore();
  });

  test("an extension removed outside or with its database is gone", async () => {
    const first = await make({ name: "uuid-ossp" });
    await send(service, "DELETE", `/v1/postgres/${cluster}/databases/shop/extensions/uuid-ossp`);
    expect(await extension.read(first.id, first.state)).toBeUndefined();
    const second = await make({ name: "uuid-ossp" });
    await send(service, "DELETE", `/v1/postgres/${cluster}/databases/shop`);
    expect(await extension.read(second.id, second.state)).toBeUndefined();
    await extension.delete(second.id, second.state);
  });
});

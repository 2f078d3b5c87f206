// Resources in a failed cluster: the cluster answers 503 for all of them, permanently.
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { bind } from "../support/binding.ts";
import { makeCluster } from "../support/around.ts";
import { startService, type TestService } from "../support/startService.ts";

describe("in a cluster that has failed", () => {
  let service: TestService;
  let cluster: string;
  beforeAll(async () => {
    service = await startService();
    cluster = await makeCluster(service, "main");
  });
  afterAll(() => service.close());

  test.each([
    ["PostgresUser", "listUsers", "deleteUser", { username: "anna", role: "writer" }],
    ["PostgresDatabase", "listDatabases", "deleteDatabase", { name: "shop" }],
    ["PostgresExtension", "listExtensions", "removeExtension", { database: "fly-db", name: "vector" }],
    ["PostgresBackup", "listBackups", undefined, {}],
  ])("a %s keeps its state in a refresh, and is deleted with the cluster", async (type, list, remove, inputs) => {
    const bound = bind(type, service, { retries: "0" });
    const checked = await bound.check({}, { cluster, ...inputs });
    expect(checked.failures).toEqual([]);
    const { id, state } = await bound.create(checked.inputs);
    const unready = { status: 503, when: "before", times: "always" } as const;
    for (const name of [list, remove])
      if (name !== undefined) service.fail({ operation: `postgres.${name}`, ...unready });
    service.fail({ operation: "postgres.get", merge: { data: { status: "failed" } }, times: "always" });
    const said = vi.spyOn(console, "error").mockImplementation(() => undefined);
    try {
      expect((await bound.read(id, state))?.state).toEqual(state);
      expect(said.mock.calls.join("\n")).toMatch(/could not be set up: it is failed.*the state is not changed/);
      await expect(bound.read(id, {})).rejects.toThrow(/could not be set up/);
      said.mockClear();
      const before = service.requests.length;
      await bound.delete(id, state);
      const sent = service.requests.slice(before).map(({ operation }) => operation);
      expect(sent).toEqual(remove === undefined ? [] : [`postgres.${remove}`, "postgres.get"]);
      if (remove !== undefined) expect(said.mock.calls.join("\n")).toMatch(/it is deleted with its cluster/);
    } finally {
      service.service.faults.clear();
      said.mockRestore();
    }
  });
});

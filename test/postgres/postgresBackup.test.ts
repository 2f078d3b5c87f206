import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { delayProfiles } from "../../service/time/delays.ts";
import { bind, type Bound } from "../support/binding.ts";
import { makeBackup, makeCluster, once, send } from "../support/around.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

const another = once((service) => makeCluster(service, "another"));

lifecycle("PostgresBackup", {
  // Deleting the resource keeps the backup.
  survives: "untouched",
  writeOnly: ["triggers"],
  given: async (service) => ({ cluster: await makeCluster(service, "main") }),
  changes: async (service) => [
    { set: { type: "incr" }, expect: "replace" },
    { set: { triggers: { release: "2" } }, expect: "replace" },
    { set: { cluster: await another(service) }, expect: "replace" },
  ],
});

describe("PostgresBackup", () => {
  let service: TestService;
  let backup: Bound;
  let cluster: string;
  const delays = { ...delayProfiles.none, backup: 200 };
  beforeAll(async () => {
    service = await startService({ delays });
    backup = bind("PostgresBackup", service);
    cluster = await makeCluster(service, "main");
  });
  afterAll(() => service.close());

  const make = async (inputs: Record<string, unknown> = {}) => {
    const checked = await backup.check({}, { cluster, ...inputs });
    expect(checked.failures).toEqual([]);
    return { inputs: checked.inputs, ...(await backup.create(checked.inputs)) };
  };
  const ids = async () =>
    (await send<{ data: { id: string }[] }>(service, "GET", `/v1/postgres/${cluster}/backups`)).data.map(
      ({ id }) => id,
    );

  test("the create waits until the backup is completed", async () => {
    const { id, state } = await make();
    expect(id).toBe(`${cluster}/backup/${String(state["backupId"])}`);
    expect(state).toMatchObject({ status: "completed", type: "full", sizeBytes: 2 ** 25 });
    expect(state["finishedAt"]).toBeDefined();
    expect(state).not.toHaveProperty("expired");
  });

  test("it waits for another running backup, and then starts its own", async () => {
    const usual = delays.backup;
    // On a slow computer the other one may be completed before the create: then it has to take longer.
    for (; !service.requests.some(({ status }) => status === 409); delays.backup *= 2) {
      const other = await makeBackup(service, cluster);
      const before = await ids();
      const { state } = await make();
      expect(state["backupId"]).not.toBe(other);
      expect(await ids()).toHaveLength(before.length + 1);
    }
    delays.backup = usual;
  });

  test("a 409 without a running backup is retried a few times, and then reported", async () => {
    service.fail({ operation: "postgres.createBackup", status: 409, when: "before", times: "always" });
    const before = service.requests.length;
    await expect(make()).rejects.toThrow(/postgres.createBackup answered 409/);
    service.service.faults.clear();
    const asked = service.requests.slice(before).filter(({ operation }) => operation === "postgres.createBackup");
    expect(asked).toHaveLength(5);
    // Stale answers that do not show a backup yet are retried.
    service.fail({ operation: "postgres.createBackup", status: 409, when: "before", times: 2 });
    expect((await make()).state).toMatchObject({ status: "completed" });
  });

  test("a request lost before it was applied results in exactly one backup", async () => {
    const before = await ids();
    service.fail({ operation: "postgres.createBackup", status: "reset", when: "before", times: 1 });
    const { state } = await make();
    expect((await ids()).filter((id) => !before.includes(id))).toEqual([state["backupId"]]);
  });

  test("a failed backup ends the wait, and the error has its id", async () => {
    const failed = { data: [{ id: "b_1", type: "full", status: "failed" }] };
    const begun = { data: { id: "b_1", type: "full", status: "running" } };
    service.fail(
      { operation: "postgres.createBackup", when: "before", status: 202, body: begun, times: 1 },
      { operation: "postgres.listBackups", when: "before", status: 200, body: failed, nth: 2, times: 1 },
    );
    const failure = await make().catch((error: unknown) => error);
    expect(failure).toMatchObject({
      message: expect.stringMatching(/backup b_1 .* failed. Change a value in triggers/) as unknown,
      id: `${cluster}/backup/b_1`,
      properties: { status: "failed" },
    });
  });

  test("a backup that the service no longer keeps is expired, and one deleted with its cluster is gone", async () => {
    const { id, inputs, state } = await make();
    service.fail({ operation: "postgres.listBackups", list: { keep: 0 }, times: 1 });
    const found = await backup.read(id, state);
    expect(found?.state).toEqual({ ...state, expired: true });
    expect(await backup.diff(id, found?.state ?? {}, inputs)).toBe("same");
    const doomed = await makeCluster(service, "doomed");
    const lost = await make({ cluster: doomed });
    await send(service, "DELETE", `/v1/postgres/${doomed}`);
    expect(await backup.read(lost.id, lost.state)).toBeUndefined();
  });

  test("deleting it sends nothing, and the backup is kept", async () => {
    const { id, state } = await make();
    const before = service.requests.length;
    await backup.delete(id, state);
    expect(service.requests.length).toBe(before);
    expect(await ids()).toContain(state["backupId"]);
  });
});

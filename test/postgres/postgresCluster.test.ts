import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { delayProfiles } from "../../service/time/delays.ts";
import { bind, type Bound } from "../support/binding.ts";
import { makeBackup, makeCluster, once, send } from "../support/around.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

/** A cluster with a backup. */
const sourceOf = once(async (service) => {
  const cluster = await makeCluster(service, "source");
  return { cluster, backupId: await makeBackup(service, cluster) };
});

const bySource = {
  region: null,
  plan: null,
  diskSizeGb: null,
  pgMajorVersion: null,
  poolMode: null,
  postgisEnabled: null,
};

lifecycle("PostgresCluster", {
  // The service does not report the cluster's source or its pool mode.
  writeOnly: ["poolMode", "restore", "fork"],
  sent: ["poolMode"],
  given: () => Promise.resolve({ region: "fra", plan: "Basic", __context: { name: "main", owner: "cluster" } }),
  changes: async (service) => {
    const { cluster, backupId } = await sourceOf(service);
    const restore = { cluster, backupId: `${cluster}/backup/${backupId}` };
    return [
      { set: { plan: "launch" }, expect: "refused" },
      { set: { deletionProtection: false }, expect: "no request" },
      { set: { plan: "launch" }, expect: "replace" },
      { set: { region: "ams" }, expect: "replace" },
      { set: { diskSizeGb: 20 }, expect: "replace" },
      { set: { pgMajorVersion: "17" }, expect: "replace" },
      { set: { poolMode: "transaction" }, expect: "replace" },
      { set: { postgisEnabled: true }, expect: "replace" },
      { set: { organization: "another" }, expect: "replace", diffOnly: true },
      { set: { ...bySource, restore }, expect: "replace", then: { restore, region: "fra", plan: "basic" } },
      { set: { restore: null, fork: { cluster } }, expect: "replace", then: { fork: { cluster }, region: "fra" } },
      { set: { name: "another-name" }, expect: "replace" },
      { set: { fork: null, region: "ams", plan: "Basic" }, expect: "delete-replace", then: { plan: "Basic" } },
    ];
  },
});

describe("PostgresCluster", () => {
  let service: TestService;
  let cluster: Bound;
  beforeAll(async () => {
    service = await startService();
    cluster = bind("PostgresCluster", service);
  });
  afterAll(() => service.close());

  const inputsOf = async (inputs: Record<string, unknown>) => {
    const checked = await cluster.check({}, { region: "fra", plan: "basic", deletionProtection: false, ...inputs });
    expect(checked.failures).toEqual([]);
    return checked.inputs;
  };
  const make = async (inputs: Record<string, unknown>) => {
    const checked = await inputsOf(inputs);
    return { inputs: checked, ...(await cluster.create(checked)) };
  };
  const sentBy = async (work: () => Promise<unknown>) => {
    const before = service.requests.length;
    await work();
    return service.requests.slice(before).map(({ operation }) => operation);
  };
  const problems = async (inputs: Record<string, unknown>) => (await cluster.check({}, inputs)).failures.join("\n");

  test("outputs have its addresses and credentials", async () => {
    const { id, state } = await make({ name: "outputs" });
    const password = String(state["password"]);
    expect(password).not.toBe("");
    expect(state).toMatchObject({
      clusterId: id,
      status: "ready",
      cpuKind: "shared",
      cpus: 2,
      memoryMb: 1024,
      replicas: 0,
      username: "fly-user",
      directHost: `direct.${id}.postgres.machines.test`,
      directPort: 5432,
      poolerHost: `pgbouncer.${id}.postgres.machines.test`,
      poolerPort: 5432,
    });
    for (const kind of ["direct", "pooler"]) {
      const uri = new URL(String(state[`${kind}Uri`]));
      expect(decodeURIComponent(uri.password)).toBe(password);
      expect(uri).toMatchObject({ protocol: "postgresql:", username: "fly-user", pathname: "/fly-db" });
      expect(`${uri.hostname}:${uri.port}`).toBe(`${String(state[`${kind}Host`])}:5432`);
    }
    const live = await send(service, "GET", `/v1/postgres/${id}/users/fly-user/credentials`);
    expect(live).toMatchObject({ data: { password } });
  });

  test("an import has the organization that the service reports", async () => {
    const { id } = await make({ name: "owned" });
    const found = await cluster.read(id, {});
    expect(found?.inputs).toMatchObject({ name: "owned", organization: "personal" });
  });

  test("a refresh reads the cluster and its credentials, and keeps known ones that the service omits", async () => {
    const { id, state } = await make({ name: "lean" });
    const { password: _, ...without } = state;
    for (const known of [state, without]) {
      let found: unknown;
      const sent = await sentBy(async () => (found = (await cluster.read(id, known))?.state));
      expect(sent).toEqual(["postgres.get", "postgres.credentials"]);
      expect(found).toEqual(state);
    }
    service.fail({ operation: "postgres.credentials", status: 403, when: "before", times: 1 });
    expect((await cluster.read(id, state))?.state).toEqual(state);
  });

  test("a password rotated outside is found by a refresh and by an update", async () => {
    const { id, inputs, state } = await make({ name: "rotated" });
    const path = `/v1/postgres/${id}/users/fly-user`;
    await send(service, "POST", `${path}/rotate_password`, {});
    const { data } = await send<{ data: { password: string } }>(service, "GET", `${path}/credentials`);
    expect(data.password).not.toBe(state["password"]);
    const unfinished = { ...state, __context: { ...(state["__context"] as object), unfinished: true } };
    for (const found of [(await cluster.read(id, state))?.state, await cluster.update(id, unfinished, inputs)]) {
      expect(found).toMatchObject({ password: data.password });
      for (const name of ["directUri", "poolerUri"])
        expect(decodeURIComponent(new URL(String(found?.[name])).password)).toBe(data.password);
    }
  });

  test("refused credentials are omitted, and the cluster is created nevertheless", async () => {
    service.fail({ operation: "postgres.credentials", status: 403, when: "before", times: 1 });
    const { id, state } = await make({ name: "no-credentials" });
    expect(state).toMatchObject({ status: "ready", clusterId: id });
    for (const name of ["username", "password", "directUri", "poolerUri"]) expect(state).not.toHaveProperty(name);
    expect((await cluster.read(id, state))?.state).toHaveProperty("password");
  });

  test("the plan is compared case-insensitively", async () => {
    const { id, inputs, state } = await make({ name: "spelling", plan: "performance" });
    expect(state["plan"]).toBe("performance");
    const found = await cluster.read(id, state);
    expect(found?.state).toEqual(state);
    for (const plan of ["Performance", "PERFORMANCE"]) {
      const next = await cluster.check(inputs, { ...inputs, plan, deletionProtection: true });
      expect(next.failures).toEqual([]);
      expect(await cluster.diff(id, state, { ...inputs, plan })).toBe("same");
    }
  });

  test("adding the documented default pool mode later or after an import is no change; another mode is", async () => {
    const { id, inputs, state } = await make({ name: "pooled", deletionProtection: true });
    const imported = await cluster.read(id, {});
    expect(imported?.state).not.toHaveProperty("poolMode");
    for (const [olds, known] of [
      [inputs, state],
      [imported?.inputs ?? {}, imported?.state ?? {}],
    ] as const) {
      const next = await cluster.check(olds, { ...inputs, poolMode: "session" });
      expect(next.failures).toEqual([]);
      const before = service.requests.length;
      expect(await cluster.diff(id, { ...known, deletionProtection: true }, next.inputs)).toBe("same");
      expect(service.requests.length).toBe(before);
      const other = await cluster.check(olds, { ...inputs, poolMode: "transaction" });
      await expect(cluster.diff(id, known, other.inputs)).rejects.toThrow(/poolMode: changing it replaces/);
    }
    const left = { ...state, poolMode: "transaction" };
    expect(await cluster.diff(id, left, inputs)).toBe("same");
    const back = await cluster.check({ ...inputs, poolMode: "transaction" }, { ...inputs, poolMode: "session" });
    expect(back.failures.join()).toMatch(/poolMode: changing it replaces/);
  });

  test("only one source is allowed, without the inputs that the source determines", async () => {
    expect(await problems({})).toMatch(/region: is required.*\nplan: is required/);
    // A plan that is new to this version is for the service to judge.
    expect(await problems({ region: "fra", plan: "huge" })).toBe("");
    expect(await problems({ region: "fra", plan: 5 })).toMatch(/plan: got 5; must be one of "basic", "starter"/);
    const fork = { cluster: "c" };
    expect(await problems({ fork, restore: { cluster: "c", backupId: "b" } })).toMatch(/fork: cannot be combined/);
    expect(await problems({ fork, region: "fra", diskSizeGb: 10 })).toMatch(
      /region: comes from the cluster named in fork; leave it out\ndiskSizeGb: comes from/,
    );
    for (const restore of [{ cluster: "c" }, { cluster: "c", backupId: "b", pitrTime: "2026-01-01T00:00:00Z" }])
      expect(await problems({ restore })).toMatch(/restore.backupId: exactly one of backupId and pitrTime/);
    expect(await problems({ restore: { cluster: "c", pitrTime: "yesterday" } })).toMatch(/must be an RFC 3339 time/);
    expect(await problems({ restore: { cluster: "c", pitrTime: "2026-01-01T00:00:00+01:00" } })).toBe("");
  });

  test("a point-in-time restore has the data of that moment, and its size may be set later", async () => {
    const { cluster: from } = await sourceOf(service);
    const inputs = { name: "restored", region: null, plan: null, deletionProtection: null };
    // By the clock of the service: the clock of the computer may be some milliseconds behind it.
    const { data } = await send<{ data: { finished_at: string }[] }>(service, "GET", `/v1/postgres/${from}/backups`);
    const pitrTime = data[0]?.finished_at;
    const { id, state, inputs: checked } = await make({ ...inputs, restore: { cluster: from, pitrTime } });
    expect(state).toMatchObject({ region: "fra", plan: "basic", status: "ready" });
    const settled = await cluster.check(checked, { name: "restored", region: "fra", plan: "basic" });
    expect(settled.failures).toEqual([]);
    expect(await cluster.diff(id, state, settled.inputs)).toBe("same");
    const other = await cluster.check(checked, { name: "restored", restore: { cluster: "other", pitrTime } });
    expect(other.failures.join()).toMatch(
      /restore: changing it replaces the PostgresCluster and destroys all its databases\. Keep the old value, or set deletionProtection: false/,
    );
  });

  test("removing the fork input after creation changes nothing, and neither do the values it brought", async () => {
    const { cluster: from } = await sourceOf(service);
    const given = { name: "forked", region: null, plan: null };
    const { id, state, inputs } = await make({ ...given, fork: { cluster: from } });
    const without = await cluster.check(inputs, { name: "forked", deletionProtection: false });
    expect(without.failures).toEqual([]);
    expect(await cluster.diff(id, state, without.inputs)).toBe("same");
    const updated = await cluster.update(id, state, without.inputs);
    expect(updated).toMatchObject({ region: "fra", plan: "basic", status: "ready" });
    const later = await cluster.check(without.inputs, { name: "forked", deletionProtection: false });
    expect(later.failures).toEqual([]);
    expect(await cluster.diff(id, updated, later.inputs)).toBe("same");
    // The replacement would be created as new: the engine checks it without the old inputs.
    expect(await problems({ name: "forked" })).toMatch(/region: is required.*\nplan: is required/);
  });

  test("one protection switch refuses both deletion and replacement", async () => {
    const { id, inputs, state } = await make({ name: "kept", deletionProtection: true });
    await expect(cluster.delete(id, state)).rejects.toThrow(
      /PostgresCluster .* is protected: .* set deletionProtection: false on it and run up/,
    );
    const changed = await cluster.check(inputs, { ...inputs, region: "ams" });
    expect(changed.failures.join()).toMatch(/region: changing it replaces .* set deletionProtection: false/);
    expect((await cluster.check(inputs, { ...inputs, region: "ams", deletionProtection: false })).failures).toEqual([]);
    expect(await cluster.read(id, state)).toBeDefined();
    await cluster.delete(id, { ...state, deletionProtection: false });
    expect(await cluster.read(id, state)).toBeUndefined();
  });

  test("switching protection off in the same change allows the replacement", async () => {
    const given = { name: "at-once", region: "fra", plan: "basic", __context: { owner: "at-once" } };
    const { inputs } = await cluster.check({}, given);
    const { id, state } = await cluster.create(inputs);
    const wanted = { ...given, plan: "starter", deletionProtection: false };
    const next = (await cluster.check(inputs, wanted)).inputs;
    expect(await cluster.diff(id, state, next)).toBe("delete-replace");
    await cluster.delete(id, state);
    const second = await cluster.create((await cluster.check({}, wanted)).inputs);
    expect(second.id).not.toBe(id);
    expect(second.state).toMatchObject({ name: "at-once", plan: "starter" });
  });

  test("a request lost before it was applied results in exactly one cluster", async () => {
    service.fail({ operation: "postgres.create", status: "reset", when: "before", times: 1 });
    const name = "lost-before";
    const { id } = await make({ name });
    const { data } = await send<{ data: { id: string; name: string }[] }>(
      service,
      "GET",
      "/v1/postgres?org_slug=personal&include_deleted=true",
    );
    expect(data.filter((one) => one.name === name).map((one) => one.id)).toEqual([id]);
  });

  test("a cluster whose name is taken is not adopted", async () => {
    await makeCluster(service, "taken");
    await expect(make({ name: "taken" })).rejects.toThrow(/postgres.create answered 422: name has already been taken/);
  });

  test("a failed cluster ends the wait at once, and the error has its id (F32)", async () => {
    const inputs = await inputsOf({ name: "will-simulate-fail" });
    const failure = await cluster.create(inputs).catch((error: unknown) => error);
    expect(failure).toMatchObject({ message: expect.stringMatching(/could not be set up: it is failed/) as unknown });
    const { id, properties } = failure as { id: string; properties: Record<string, unknown> };
    expect(properties).toMatchObject({ clusterId: id, status: "failed", region: "fra" });
    await expect(cluster.update(id, properties, inputs)).rejects.toThrow(/deletionProtection: false .*replace it/);
    await cluster.delete(id, properties);
  });

  test("a cluster deleted outside is gone, whether the service answers 404 or 410 (F32)", async () => {
    const { id, state } = await make({ name: "gone" });
    for (const status of ["deleting", "deleted"]) {
      service.fail({ operation: "postgres.get", merge: { data: { status } }, times: 1 });
      expect(await cluster.read(id, state)).toBeUndefined();
    }
    await send(service, "DELETE", `/v1/postgres/${id}`);
    expect(await cluster.read(id, state)).toBeUndefined();
  });
});

describe("a slow PostgresCluster (F32)", () => {
  let service: TestService;
  let cluster: Bound;
  beforeAll(async () => {
    service = await startService({ delays: { ...delayProfiles.none, cluster: 150 } });
    cluster = bind("PostgresCluster", service);
  });
  afterAll(() => service.close());
  const inputsOf = async (more: Record<string, unknown>) =>
    (await cluster.check({}, { region: "fra", plan: "basic", deletionProtection: false, ...more })).inputs;

  test("a slow PostgresCluster is waited for through unknown states", async () => {
    service.fail({ operation: "postgres.get", merge: { data: { status: "warming" } }, times: 2 });
    const { state } = await cluster.create(await inputsOf({ name: "slow" }));
    expect(state).toMatchObject({ status: "ready" });
    expect(state["poolerHost"]).toBeDefined();
  });

  test("a slow PostgresCluster keeps its id when it is not ready before the deadline", async () => {
    const __context = { timeouts: { create: "3s" } };
    const inputs = await inputsOf({ name: "never-simulate-stuck", __context });
    const failure = await cluster.create(inputs).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      message: expect.stringMatching(/was not ready within 3s: it is initializing/) as unknown,
      properties: { status: "initializing", name: "never-simulate-stuck" },
    });
  });

  test("a slow PostgresCluster is deleted only when reads stop finding it, even while shown as deleting", async () => {
    const { id, state } = await cluster.create(await inputsOf({ name: "leaving" }));
    const answer = { data: { id, name: "leaving", status: "deleting" } };
    service.fail({ operation: "postgres.get", status: 200, body: answer, when: "before", times: 2 });
    const before = service.requests.length;
    await cluster.delete(id, state);
    expect(service.requests.slice(before).map(({ operation, status }) => `${operation} ${status}`)).toEqual([
      "postgres.delete 202",
      "postgres.get 200",
      "postgres.get 200",
      "postgres.get 410",
    ]);
  });
});

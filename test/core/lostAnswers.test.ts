// The answer to a change was lost, and the program changes before the next run, for objects whose values no read shows: the
// service then has what the program says, and nothing is left behind.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { check, create, diff, InitializationFailed, read, remove, update } from "../../provider/core/verbs/index.ts";
import { CONTEXT, type Values } from "../../provider/core/resource.ts";
import { resources } from "../../provider/registry.ts";
import { makeApp, makeCluster, makeMachine, send } from "../support/around.ts";
import { currentCertificate } from "../support/certificates.ts";
import { jumpingClient } from "../support/jumpingClient.ts";
import { startService, type TestService } from "../support/startService.ts";

let service: TestService;
let count = 0;
beforeAll(async () => (service = await startService()));
afterAll(() => service.close());
afterEach(() => service.service.faults.clear());

const appHere = () => makeApp(service, `lost-${++count}`);

/** One resource in a state, as runs of a program change it. */
function kept(type: string) {
  const resource = resources[type];
  if (!resource) throw new Error(`no resource type ${type}`);
  const said: string[] = [];
  let [id, state]: [string, Values] = ["", {}];
  let has = false;
  const started = () => {
    const { api, run } = jumpingClient(service);
    run.stateIds.note("0123456789ab");
    return { api, run, progress: () => undefined, warn: (message: string) => void said.push(message) };
  };
  /** What an up does: nothing, if there is no change. */
  const up = async (written: Values): Promise<void> => {
    const caller = started();
    const declared = { ...written, [CONTEXT]: { owner: `owner-of-${type}`, name: "made" } };
    const around = { randomHex: () => "0123456", run: caller.run, state };
    const { inputs, problems } = await check(resource, state, declared, around);
    expect(problems).toEqual([]);
    if (!has) ({ id, state } = await create(resource, inputs, caller));
    else {
      const { changes, replaces, mustRewrite } = await diff(resource, id, state, inputs, caller);
      expect(replaces).toEqual([]);
      if (changes.length > 0 || mustRewrite) state = await update(resource, id, state, inputs, caller);
    }
    has = true;
  };
  return {
    said,
    up,
    /** An up without answers to an operation, which is applied or not. */
    async lost(operation: string, written: Values, when: "before" | "after" = "after") {
      service.fail({ operation, when, status: 503, times: 20 });
      const error = await up(written).then(
        () => undefined,
        (failure: unknown) => failure,
      );
      service.service.faults.clear();
      expect(error).toBeInstanceOf(Error);
      // The engine keeps the state that such an error has.
      if (error instanceof InitializationFailed) [id, state, has] = [error.id, error.properties, true];
    },
    async refresh() {
      const found = await read(resource, id, state, started());
      if (found) ({ state } = found);
      has = found !== undefined;
    },
    destroy: async () => (has ? remove(resource, id, state, started()) : undefined),
  };
}

const secretsOf = async (app: string): Promise<Values> => {
  const path = `/v1/apps/${app}/secrets?show_secrets=true`;
  const { secrets } = await send<{ secrets: { name: string; value: string }[] }>(service, "GET", path);
  return Object.fromEntries(secrets.map(({ name, value }) => [name, value]));
};

const moments = ["before", "after"] as const;

describe.each([false, true])("a change with a lost answer, refreshed afterwards: %s", (isRefreshed) => {
  const maybeRefresh = async (one: ReturnType<typeof kept>) => {
    if (isRefreshed) await one.refresh();
  };

  test.each(moments)("a Secret is written again when the program is reverted; lost %s it was set", async (when) => {
    const app = await appHere();
    const secret = kept("Secret");
    await secret.up({ app, name: "K", value: "one" });
    await secret.lost("secrets.set", { app, name: "K", value: "two" }, when);
    await maybeRefresh(secret);
    await secret.up({ app, name: "K", value: "one" });
    expect(await secretsOf(app)).toEqual({ K: "one" });
  });

  test.each(moments)("a Secret is unset by a destroy; lost %s it was set", async (when) => {
    const app = await appHere();
    const secret = kept("Secret");
    await secret.up({ app, name: "K", value: "one" });
    await secret.lost("secrets.set", { app, name: "K", value: "two" }, when);
    await maybeRefresh(secret);
    await secret.destroy();
    expect(await secretsOf(app)).toEqual({});
    expect(secret.said).toEqual([]);
  });

  test.each(moments)("a Secret that was created is known; lost %s it was set", async (when) => {
    const app = await appHere();
    const secret = kept("Secret");
    await secret.lost("secrets.set", { app, name: "K", value: "one" }, when);
    await maybeRefresh(secret);
    await secret.destroy();
    expect(await secretsOf(app)).toEqual({});
  });

  test.each(moments)("AppSecrets are those of the reverted program; lost %s they were set", async (when) => {
    const app = await appHere();
    const secrets = kept("AppSecrets");
    await secrets.up({ app, values: { A: "1", GO: "1", STAY: "1" } });
    await secrets.lost("secrets.update", { app, values: { A: "2", B: "1", STAY: "1" } }, when);
    await maybeRefresh(secrets);
    await secrets.up({ app, values: { A: "1", GO: "1", STAY: "1" } });
    expect(await secretsOf(app)).toEqual({ A: "1", GO: "1", STAY: "1" });
    expect(secrets.said).toEqual([]);
  });

  test.each(moments)("write-only AppSecrets are those of the reverted program; lost %s they were set", async (when) => {
    const app = await appHere();
    const secrets = kept("AppSecrets");
    await secrets.up({ app, valuesWo: { A: "1" }, valuesVersion: 1 });
    await secrets.lost("secrets.update", { app, valuesWo: { A: "2", B: "1" }, valuesVersion: 2 }, when);
    await maybeRefresh(secrets);
    await secrets.up({ app, valuesWo: { A: "1" }, valuesVersion: 2 });
    expect(await secretsOf(app)).toEqual({ A: "1" });
  });

  test.each(moments)("AppSecrets are unset by a destroy; lost %s they were set", async (when) => {
    const app = await appHere();
    const secrets = kept("AppSecrets");
    await secrets.lost("secrets.update", { app, values: { A: "1" } }, when);
    await secrets.lost("secrets.update", { app, values: { A: "2", B: "1" } }, when);
    await maybeRefresh(secrets);
    await secrets.destroy();
    expect(await secretsOf(app)).toEqual({});
  });

  test.each(moments)("an attachment has the secret of the reverted program; lost %s it was set", async (when) => {
    const app = await appHere();
    const given = { app, cluster: await makeCluster(service, app) };
    const attachment = kept("PostgresAttachment");
    await attachment.up({ ...given, secretName: "DATABASE_URL" });
    const before = await secretsOf(app);
    await attachment.lost("secrets.update", { ...given, secretName: "OTHER_URL" }, when);
    await maybeRefresh(attachment);
    await attachment.up({ ...given, secretName: "DATABASE_URL" });
    expect(await secretsOf(app)).toEqual(before);
    expect(attachment.said).toEqual([]);
  });

  test.each(moments)("an attachment leaves no credentials behind; lost %s they were set", async (when) => {
    const app = await appHere();
    const given = { app, cluster: await makeCluster(service, app) };
    const attachment = kept("PostgresAttachment");
    await attachment.lost("secrets.update", { ...given, secretName: "DATABASE_URL" }, when);
    await maybeRefresh(attachment);
    await attachment.lost("secrets.update", { ...given, secretName: "OTHER_URL" }, when);
    await attachment.up({ ...given, secretName: "THIRD_URL" });
    expect(Object.keys(await secretsOf(app))).toEqual(["THIRD_URL"]);
    await attachment.lost("secrets.update", { ...given, secretName: "FOURTH_URL" }, when);
    await attachment.destroy();
    expect(await secretsOf(app)).toEqual({});
    expect(attachment.said).toEqual([]);
  });

  test.each(moments)("MachineMetadata is that of the reverted program; lost %s it was set", async (when) => {
    const app = await appHere();
    const machine = await makeMachine(service, app, { config: { image: "registry.example.com/a:1" } });
    const metadata = kept("MachineMetadata");
    const metadataOf = async () => {
      const path = `/v1/apps/${app}/machines/${machine}/metadata`;
      return Object.fromEntries(
        Object.entries(await send(service, "GET", path)).filter(([key]) => /^[a-z]$/.test(key)),
      );
    };
    await metadata.lost("machines.patchMetadata", { app, machine, values: { k: "0" } }, when);
    await maybeRefresh(metadata);
    await metadata.up({ app, machine, values: { k: "1" } });
    expect(await metadataOf()).toEqual({ k: "1" });
    await metadata.lost("machines.patchMetadata", { app, machine, values: { k: "2", l: "1" } }, when);
    await maybeRefresh(metadata);
    await metadata.up({ app, machine, values: { k: "1" } });
    expect(await metadataOf()).toEqual({ k: "1" });
    await metadata.lost("machines.patchMetadata", { app, machine, values: { m: "1" } }, when);
    await maybeRefresh(metadata);
    await metadata.destroy();
    expect(await metadataOf()).toEqual({});
    expect(metadata.said).toEqual([]);
  });

  test("a CustomCertificate is that of the reverted program", async () => {
    const app = await appHere();
    const [one, two] = [["own.example.com"], ["own.example.com", "more.example.com"]].map((hosts) => {
      const { fullchain, private_key: privateKey } = currentCertificate({ hosts });
      return { app, hostname: "own.example.com", fullchain, privateKey };
    });
    const certificate = kept("CustomCertificate");
    const uploads = () => service.requests.filter(({ operation }) => operation === "certificates.createCustom").length;
    await certificate.up(one ?? {});
    await certificate.lost("certificates.createCustom", two ?? {});
    await maybeRefresh(certificate);
    const before = uploads();
    await certificate.up(one ?? {});
    expect(uploads()).toBe(before + 1);
    await certificate.destroy();
  });

  test("a Machine has the memory limit of the reverted program", async () => {
    const app = await appHere();
    const config = { image: "registry.example.com/a:1", guest: { memoryMb: 512 } };
    const machine = kept("Machine");
    await machine.up({ app, config, memoryLimitMb: 128 });
    await machine.lost("machines.setMemory", { app, config, memoryLimitMb: 256 });
    await maybeRefresh(machine);
    await machine.up({ app, config, memoryLimitMb: 128 });
    const [live] = await send<{ id: string }[]>(service, "GET", `/v1/apps/${app}/machines`);
    const memory = await send(service, "GET", `/v1/apps/${app}/machines/${live?.id ?? ""}/memory`);
    expect(memory["limit_mb"]).toBe(128);
  });
});

test("a secret that another client has written stays set, although an answer about another one was lost", async () => {
  const app = await appHere();
  const secrets = kept("AppSecrets");
  await secrets.up({ app, values: { A: "1", B: "1" } });
  await secrets.lost("secrets.update", { app, values: { A: "2", B: "1" } });
  await send(service, "POST", `/v1/apps/${app}/secrets`, { values: { B: "theirs" } });
  await secrets.destroy();
  expect(await secretsOf(app)).toEqual({ B: "theirs" });
  expect(secrets.said).toEqual([expect.stringMatching(/B of App .* stays set: something else has written it/)]);
});

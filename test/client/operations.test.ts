// Every operation of the interface through the script client, each with its effect; postgresOperations.test.ts has those of
// clusters.
import { afterAll, beforeAll, expect, test } from "vitest";
import { contract } from "../../api/index.ts";
import { createClient, type Client } from "../../provider/client/index.ts";
import { makeCertificate } from "../support/certificates.ts";
import { checkedAnswers } from "../service/description.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1";
const base64 = (text: string): string => Buffer.from(text).toString("base64");

let service: TestService;
const answers = checkedAnswers();
let client: Client;
const appName = "shop";

beforeAll(async () => {
  service = await startService({ onAnswer: answers.onAnswer });
  client = createClient({ endpoint: service.url, token: service.token });
  await client.apps.create({ body: { name: appName, orgSlug: client.organization } });
});
afterAll(async () => {
  await client.close();
  await service.close();
});

/** A running Machine, and the parameters for calls about it. */
async function machine(config: object = {}): Promise<{ appName: string; machineId: string }> {
  const body = { region: "ams", config: { image, guest: { cpus: 2, memoryMb: 512 }, ...config } };
  const { id } = await client.machines.create({ appName, body });
  const key = { appName, machineId: id };
  expect(await client.machines.wait(key)).toMatchObject({ ok: true, state: "started" });
  return key;
}

test("Apps are created, listed, shown, given tokens and deleted", async () => {
  await client.apps.create({ body: { name: "gone", orgSlug: "personal" } });
  const names = async () => (await client.apps.list({ orgSlug: "personal" })).apps.map(({ name }) => name);
  expect(await names()).toEqual(expect.arrayContaining(["gone", "shop"]));
  const { token } = await client.apps.createDeployToken({ appName: "gone", body: { expiry: "1h" } });
  const narrow = createClient({ endpoint: service.url, token });
  expect(await narrow.apps.get({ appName: "gone" })).toMatchObject({
    name: "gone",
    organization: { slug: "personal" },
  });
  await expect(narrow.apps.get({ appName })).rejects.toMatchObject({ code: "api" });
  await narrow.close();
  await client.apps.delete({ appName: "gone" });
  expect(await names()).not.toContain("gone");
});

test("addresses are assigned, listed and released", async () => {
  const { ip } = await client.ipAssignments.assign({ appName, body: { type: "v6" } });
  const all = async () => (await client.ipAssignments.list({ appName })).ips.map((one) => one.ip);
  expect(await all()).toEqual([ip]);
  await client.ipAssignments.release({ appName, ip: ip ?? "" });
  expect(await all()).toEqual([]);
});

test("a Machine is listed, updated under its lease, shown in every version, and destroyed", async () => {
  const key = await machine({ env: { A: "1" } });
  expect((await client.machines.list({ appName })).map(({ id }) => id)).toContain(key.machineId);
  const { data } = await client.machines.acquireLease({ ...key, body: { ttl: 60, description: "test" } });
  const leaseNonce = data?.nonce ?? "";
  const body = { config: { image, env: { A: "2" } } };
  await expect(client.machines.update({ ...key, body })).rejects.toMatchObject({ status: 409 });
  expect(await client.machines.getLease(key)).toMatchObject({ data: { description: "test" } });
  const updated = await client.machines.update({ ...key, body, leaseNonce });
  expect(updated.config?.env).toEqual({ A: "2" });
  await client.machines.releaseLease({ ...key, leaseNonce });
  await expect(client.machines.getLease(key)).rejects.toMatchObject({ status: 404 });
  const versions = await client.machines.versions(key);
  expect(versions.map(({ userConfig }) => userConfig?.env)).toEqual([{ A: "2" }, { A: "1" }]);
  const first = await client.machines.get({ ...key, version: versions[1]?.version });
  expect(first.config?.env).toEqual({ A: "1" });
  await client.machines.destroy({ ...key, force: true });
  expect(await client.machines.wait({ ...key, state: ["destroyed"] })).toMatchObject({ state: "destroyed" });
});

test("a Machine is stopped, started, suspended, restarted, cordoned and uncordoned", async () => {
  const key = await machine();
  const state = async () => (await client.machines.get(key)).state;
  const until = async (wanted: "started" | "stopped" | "suspended") => {
    await client.machines.wait({ ...key, state: [wanted] });
    expect(await state()).toBe(wanted);
  };
  await client.machines.stop({ ...key, body: { signal: "SIGTERM", timeout: "5s" } });
  await until("stopped");
  expect(await client.machines.start(key)).toMatchObject({ previousState: "stopped" });
  await until("started");
  await client.machines.suspend(key);
  await until("suspended");
  await client.machines.start(key);
  await until("started");
  await client.machines.restart({ ...key, timeout: "5" });
  await until("started");
  expect((await client.machines.events({ ...key, limit: 50 })).map(({ type }) => type)).toEqual(
    expect.arrayContaining(["launch", "start", "stop", "suspend", "restart"]),
  );
  await client.machines.cordon(key);
  expect((await client.machines.get(key)).cordoned).toBe(true);
  await client.machines.uncordon(key);
  expect((await client.machines.get(key)).cordoned).toBe(false);
});

test("a running Machine takes commands and signals, and lists its processes", async () => {
  const key = await machine();
  const echoed = await client.machines.exec({ ...key, body: { command: ["echo", "hello"] } });
  expect(echoed).toMatchObject({ stdout: "hello\n", exitCode: 0 });
  const pids = (await client.machines.processes({ ...key, sortBy: "pid", order: "desc" })).map(({ pid }) => pid ?? 0);
  expect(pids).toEqual(pids.toSorted((a, b) => b - a));
  await client.machines.signal({ ...key, body: { signal: "SIGKILL" } });
  await expect
    .poll(async () => (await client.machines.events(key)).map(({ type }) => type))
    .toEqual(expect.arrayContaining(["exit"]));
});

test("the memory of a running Machine is limited and reclaimed", async () => {
  const key = await machine();
  expect(await client.machines.setMemory({ ...key, body: { limitMb: 400 } })).toEqual({
    limitMb: 400,
    availableMb: 112,
  });
  expect(await client.machines.getMemory(key)).toEqual({ limitMb: 400, availableMb: 112 });
  const { actualMb } = await client.machines.reclaimMemory({ ...key, body: { amountMb: 100 } });
  expect(actualMb).toBeGreaterThan(0);
  expect(actualMb).toBeLessThanOrEqual(100);
});

test("metadata is patched, put, and set, shown and deleted by key", async () => {
  const key = await machine();
  const all = () => client.machines.getMetadata(key);
  await client.machines.patchMetadata({ ...key, body: { metadata: { a_b: "1", c: "2" } } });
  // ASSUMED by the service as by its clients: PUT is another spelling of PATCH and merges.
  await client.machines.putMetadata({ ...key, body: { metadata: { c: null, d: "3" } } });
  expect(await all()).toEqual({ a_b: "1", d: "3" });
  await client.machines.setMetadataKey({ ...key, key: "e/f", body: { value: "4" } });
  expect(await client.machines.getMetadataKey({ ...key, key: "e/f" })).toEqual({ value: "4" });
  await client.machines.deleteMetadataKey({ ...key, key: "d" });
  expect(await all()).toEqual({ a_b: "1", "e/f": "4" });
  await expect(client.machines.getMetadataKey({ ...key, key: "d" })).rejects.toMatchObject({ status: 404 });
});

test("certificates of both kinds are requested, checked and removed one by one", async () => {
  const one = { appName, hostname: "www.example.test" };
  const { hostname } = one;
  await client.certificates.createAcme({ appName, body: { hostname } });
  const { fullchain, private_key: privateKey } = makeCertificate({
    hosts: [hostname],
    from: new Date(0),
    until: new Date(4e12),
  });
  const made = await client.certificates.createCustom({ appName, body: { hostname, fullchain, privateKey } });
  expect(made.certificates?.map(({ source }) => source)).toContain("custom");
  expect((await client.certificates.check(one)).dnsRecords).toMatchObject({ soa: "ns1.example.test" });
  const listed = async () => (await client.certificates.list({ appName })).certificates;
  expect(await listed()).toMatchObject([{ hostname, hasCustomCertificate: true, acmeRequested: true }]);
  await client.certificates.deleteCustom(one);
  expect(await listed()).toMatchObject([{ hasCustomCertificate: false, acmeRequested: true }]);
  await client.certificates.deleteAcme(one);
  expect(await client.certificates.get(one)).toMatchObject({ hostname, acmeRequested: false });
  await client.certificates.delete(one);
  expect(await listed()).toEqual([]);
});

test("volumes are created, changed, extended, snapshotted and deleted", async () => {
  const made = await client.volumes.create({ appName, body: { name: "data", region: "ams", sizeGb: 1 } });
  const key = { appName, volumeId: made.id };
  await client.volumes.update({ ...key, body: { snapshotRetention: 9 } });
  expect((await client.volumes.extend({ ...key, body: { sizeGb: 2 } })).volume.id).toBe(made.id);
  expect(await client.volumes.get(key)).toMatchObject({ snapshotRetention: 9, sizeGb: 2 });
  await client.volumes.createSnapshot(key);
  expect(await client.volumes.listSnapshots(key)).toMatchObject([{ retentionDays: 9 }]);
  const states = async () => (await client.volumes.list({ appName })).map(({ id, state }) => [id, state]);
  expect(await states()).toEqual([[made.id, "created"]]);
  await client.volumes.delete(key);
  expect(await states()).toEqual([[made.id, "pending_destroy"]]);
});

test("secrets are set one by one and together, shown without their values, and unset", async () => {
  const { version = 0 } = await client.secrets.set({ appName, secretName: "A", body: { value: "1" } });
  const after = await client.secrets.update({ appName, body: { values: { A: null, B: "2", C_D: "3" } } });
  expect(after.version).toBeGreaterThan(version);
  const shown = await client.secrets.get({ appName, secretName: "B", minVersion: String(after.version) });
  expect(shown).toMatchObject({ name: "B" });
  expect(shown).not.toHaveProperty("value");
  await client.secrets.delete({ appName, secretName: "B" });
  expect((await client.secrets.list({ appName })).secrets.map(({ name }) => name)).toEqual(["C_D"]);
});

test("secret keys are set, generated, used and deleted", async () => {
  const [box, pen] = [
    { appName, secretName: "box" },
    { appName, secretName: "pen" },
  ];
  await client.secretKeys.set({ ...pen, body: { type: "hs256", value: Buffer.alloc(32, 7).toString("base64") } });
  await client.secretKeys.generate({ ...box, body: { type: "nacl_secretbox" } });
  expect(await client.secretKeys.get(pen)).toMatchObject({ name: "pen", type: "hs256" });
  const plaintext = base64("hello");
  const { ciphertext } = await client.secretKeys.encrypt({ ...box, body: { plaintext } });
  expect(await client.secretKeys.decrypt({ ...box, body: { ciphertext } })).toEqual({ plaintext });
  const { signature } = await client.secretKeys.sign({ ...pen, body: { plaintext } });
  await client.secretKeys.verify({ ...pen, body: { plaintext, signature } });
  const wrong = client.secretKeys.verify({ ...pen, body: { plaintext: base64("hallo"), signature } });
  await expect(wrong).rejects.toMatchObject({ status: 400 });
  await client.secretKeys.delete(box);
  expect((await client.secretKeys.list({ appName })).secretKeys.map(({ name }) => name)).toEqual(["pen"]);
});

test("organizations are listed, and the platform lists regions and places Machines", async () => {
  const { machineId } = await machine();
  const volume = await client.volumes.create({ appName, body: { name: "spare", region: "ams" } });
  const { machines } = await client.orgs.machines({ orgSlug: "personal", limit: 1000 });
  expect(machines.map(({ id }) => id)).toContain(machineId);
  const { volumes } = await client.orgs.volumes({ orgSlug: "personal" });
  expect(volumes.map(({ id }) => id)).toContain(volume.id);
  const { regions } = await client.platform.regions({});
  expect(regions.map(({ code }) => code)).toContain("ams");
  const placed = await client.platform.placements({ body: { orgSlug: "personal", region: "fra", count: 2 } });
  expect(placed.regions).toMatchObject([{ region: "fra", count: 2 }]);
});

test("a token shows its organization, and the App it is valid for", async () => {
  expect((await client.tokens.current({})).tokens).toEqual([
    { tokenId: expect.any(String), orgSlug: "personal", organization: "Personal" },
  ]);
  const { token } = await client.apps.createDeployToken({ appName, body: { expiry: "1h" } });
  const narrow = createClient({ endpoint: service.url, token });
  expect((await narrow.tokens.current({})).tokens).toMatchObject([{ orgSlug: "personal", apps: [appName] }]);
  await narrow.close();
});

test("every operation except those of clusters succeeded, and was answered as described", () => {
  const all = Object.values(contract).flatMap((group) => Object.values(group).map(({ id }) => id));
  expect(all.filter((id) => !id.startsWith("postgres.") && !answers.succeeded.has(id))).toEqual([]);
  expect(answers.undescribed).toEqual([]);
});

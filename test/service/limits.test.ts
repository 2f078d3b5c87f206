// Whatever a client sends, the service continues to serve others.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createService, ManualClock, type ServiceOptions } from "../../service/index.ts";
import type { EngineHost } from "../../service/runtime/postgresEngine.ts";
import { SimulatedPostgres } from "../../service/runtime/simulatedPostgres.ts";
import { addToken, listTokens } from "../../service/store/tokens.ts";
import { caller, withApp } from "./client.ts";

test("an endless start neither stops the service nor prevents its restart", async () => {
  const folder = mkdtempSync(join(tmpdir(), "machines-limits-"));
  const data = join(folder, "data");
  try {
    const app = await withApp({ data, delays: "believable", clock: new ManualClock() });
    const { id } = await app.machine({ env: { MACHINES_SIMULATE: "slow:99999999999999m" } });
    app.clock.advance(60_000);
    expect(await app.state(id)).toBe("starting");
    await app.close();
    const again = createService({ data, clock: new ManualClock(Date.UTC(2026, 0, 2)) });
    await again.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a timer beyond the maximum date waits for that date", async () => {
  const { service, call } = await withApp({ clock: new ManualClock() });
  await service.context.store.write(() => service.context.timers.after(1e300, "machine.retry", "nobody"));
  expect((await call("GET", "/apps/web")).status).toBe(200);
});

test("unterminated and oversized PEM is refused at once", async () => {
  const { call } = await withApp();
  const upload = (fullchain: string) =>
    call("POST", "/apps/web/certificates/custom", { hostname: "a.example.com", fullchain, private_key: "x" });
  expect((await upload("-----BEGIN CERTIFICATE-----".repeat(2400))).status).toBe(422);
  const long = await upload("-----BEGIN CERTIFICATE-----".repeat(100_000));
  expect([long.status, long.body.error]).toEqual([400, expect.stringContaining("must not be longer than 65536")]);
  expect(long.text.length).toBeLessThan(500);
});

test("an App has at most 10,000 deploy tokens, of which those that have expired do not count", async () => {
  const { call, service, clock } = await withApp({ clock: new ManualClock() });
  const { store } = service.context;
  const [{ id }] = store.all<{ id: string }>("SELECT id FROM apps") as [{ id: string }];
  const grant = { slug: "personal", apps: [id], expiresAt: clock.now() + 60_000 };
  await store.write(() => {
    for (let i = 0; i < 10_000; i++) addToken(store, `token-${i}`, grant, clock.now());
  });
  const create = async () => {
    const { status, body } = await call("POST", "/apps/web/deploy_token", {});
    return status === 200 ? status : [status, body.error];
  };
  expect(await create()).toEqual([422, "Validation failed: an app has at most 10000 deploy tokens; revoke some"]);
  clock.advance(60_000);
  expect(await create()).toBe(200);
});

test("an App has at most 500 addresses", async () => {
  const { call, service } = await withApp();
  const [{ id }] = service.context.store.all<{ id: string }>("SELECT id FROM apps") as [{ id: string }];
  await service.context.store.write(() => {
    for (let i = 0; i < 500; i++)
      service.context.store.insert("ips", {
        app: id,
        ip: `2001:db8::${i}`,
        type: "v6",
        region: "global",
        created_at: 0,
      });
  });
  const answer = await call("POST", "/apps/web/ip_assignments", { type: "v4" });
  expect([answer.status, answer.body.error]).toEqual([422, "Validation failed: an app has at most 500 IP addresses"]);
});

test("an App has at most 500 secret keys; existing ones can be replaced", async () => {
  const { call } = await withApp();
  const generate = (name: string) => call("POST", `/apps/web/secretkeys/${name}/generate`, { type: "hs256" });
  for (let i = 0; i < 500; i++) expect((await generate(`k${i}`)).status).toBe(201);
  const value = Buffer.alloc(32).toString("base64");
  for (const answer of [
    await generate("more"),
    await call("POST", "/apps/web/secretkeys/more", { type: "hs256", value }),
  ])
    expect([answer.status, answer.body.error]).toEqual([400, "an app has at most 500 secret keys, delete one first"]);
  expect((await generate("k0")).status).toBe(201);
  expect((await call("DELETE", "/apps/web/secretkeys/k1")).status).toBe(200);
  expect((await generate("more")).status).toBe(201);
});

/** A cluster that is ready. */
async function withCluster(options: ServiceOptions = {}) {
  const app = await withApp(options);
  const body = { org_slug: "personal", region: "fra", plan: "basic" };
  const { id } = (await app.call("POST", "/postgres", body)).body.data;
  return { ...app, cluster: `/postgres/${id}` };
}

test.each([
  ["databases", (name: string) => ({ name })],
  ["users", (username: string) => ({ username, role: "reader" })],
])("a cluster has at most 100 %s, and a deletion makes room for another", async (list, bodyOf) => {
  const { call, cluster } = await withCluster();
  const create = (name: string) => call("POST", `${cluster}/${list}`, bodyOf(name));
  const { length } = (await call("GET", `${cluster}/${list}`)).body.data;
  for (let i = length; i < 100; i++) expect((await create(`n${i}`)).status).toBeLessThan(300);
  const answer = await create("more");
  expect([answer.status, answer.body.error]).toEqual([422, `a cluster has at most 100 ${list}, delete one first`]);
  expect((await create("n50")).status).toBe(409);
  expect((await call("DELETE", `${cluster}/${list}/n50`)).status).toBeLessThan(300);
  expect((await create("more")).status).toBeLessThan(300);
});

test("the latest 100 backups of a cluster are kept, independent of others", async () => {
  const { call, cluster } = await withCluster();
  const other = (await call("POST", `${cluster}/fork`, {})).body.data.id;
  const backUp = async (path: string): Promise<string> =>
    (await call("POST", `${path}/backups`, { type: "full" })).body.data.id;
  const listed = async (path: string): Promise<string[]> =>
    (await call("GET", `${path}/backups`)).body.data.map(({ id }: { id: string }) => id);
  const ofOther = await backUp(`/postgres/${other}`);
  const made: string[] = [];
  for (let i = 0; i < 103; i++) made.unshift(await backUp(cluster));
  expect(await listed(cluster)).toEqual(made.slice(0, 100));
  expect(await listed(`/postgres/${other}`)).toEqual([ofOther]);
  expect((await call("POST", `${cluster}/restore`, { backup_id: made[102] })).status).toBe(404);
  expect((await call("POST", `${cluster}/restore`, { backup_id: made[99] })).status).toBeLessThan(300);
});

test("backups that fail push out none that is completed", async () => {
  const outcome = { fails: false };
  const discarded: (string | undefined)[] = [];
  class Failing extends SimulatedPostgres {
    readonly #host: EngineHost;

    constructor(host: EngineHost) {
      super(host);
      this.#host = host;
    }

    override due(kind: "cluster.step" | "backup.done", id: string): void {
      if (kind === "backup.done" && outcome.fails) return this.#host.events.backupFailed(id);
      super.due(kind, id);
    }

    discard(_cluster: string, backup?: string): void {
      discarded.push(backup);
    }
  }
  const { call, cluster } = await withCluster({ postgres: (host) => new Failing(host) });
  const backUp = async (): Promise<string> => (await call("POST", `${cluster}/backups`, { type: "full" })).body.data.id;
  const good = await backUp();
  outcome.fails = true;
  const failed: string[] = [];
  for (let i = 0; i < 23; i++) failed.unshift(await backUp());
  const listed = (await call("GET", `${cluster}/backups`)).body.data as { readonly id: string }[];
  expect(listed.map(({ id }) => id)).toEqual([...failed.slice(0, 20), good]);
  expect(discarded).toEqual(failed.slice(20).reverse());
});

test("when all addresses are used, the request is refused", async () => {
  const { call, service } = await withApp();
  const { ids } = service.context;
  const [{ id }] = service.context.store.all<{ id: string }>("SELECT id FROM apps") as [{ id: string }];
  await service.context.store.write(() =>
    service.context.store.insert("ips", { app: id, ip: "198.19.7.7", type: "v4", region: "global", created_at: 0 }),
  );
  const drawn = ids.ipv4;
  ids.ipv4 = () => "198.19.7.7";
  try {
    const answer = await call("POST", "/apps/web/ip_assignments", { type: "v4" });
    expect([answer.status, answer.body.status]).toEqual([422, "insufficient_capacity"]);
  } finally {
    ids.ipv4 = drawn;
  }
});

test("metadata, versions and secrets are limited", async () => {
  const { call, machines, machine, service } = await withApp();
  const { id } = await machine();
  const half = "x".repeat(40_000);
  expect((await call("PATCH", `${machines}/${id}/metadata`, { metadata: { a: half } })).status).toBe(204);
  expect((await call("PATCH", `${machines}/${id}/metadata`, { metadata: { b: half } })).status).toBe(400);
  expect((await call("GET", `${machines}/${id}/metadata`)).body).toEqual({ a: half });

  for (let i = 0; i < 102; i++) await call("POST", `${machines}/${id}`, { config: { image: `nginx:${i}` } });
  const versions = (await call("GET", `${machines}/${id}/versions`)).body;
  expect(versions).toHaveLength(100);
  expect(versions[0].user_config.image).toBe("nginx:101");
  expect(service.context.store.all("SELECT 1 FROM machine_versions")).toHaveLength(100);

  const values = Object.fromEntries(Array.from({ length: 501 }, (_, i) => [`S${i}`, "1"]));
  expect((await call("POST", "/apps/web/secrets", { values })).status).toBe(400);
  expect((await call("POST", "/apps/web/secrets/LONG", { value: "x".repeat(65_537) })).status).toBe(400);
  expect((await call("GET", "/apps/web/secrets")).body.secrets).toEqual([]);
});

test("tokens can be listed, whatever their expiry is", async () => {
  const { call, service } = await withApp();
  expect((await call("POST", "/apps/web/deploy_token", { expiry: "876000h" })).status).toBe(200);
  expect(listTokens(service.context.store, service.context.clock.now())).toHaveLength(2);
});

test.each([
  ["secrets", "POST", "/apps/web/secrets", '{"values":{"__proto__":5}}'],
  ["env", "POST", "/apps/web/machines", '{"config":{"image":"x","env":{"__proto__":{"q":1}}}}'],
  ["metadata", "POST", "/apps/web/machines", '{"config":{"image":"x","metadata":{"__proto__":7}}}'],
  ["checks", "POST", "/apps/web/machines", '{"config":{"image":"x","checks":{"__proto__":"zz"}}}'],
])("an entry named __proto__ of %s is validated like any other", async (_, method, path, body) => {
  const { call } = await withApp();
  const answer = await call(method, path, body);
  expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining("__proto__")]);
});

test("a valid entry named __proto__ is kept", async () => {
  const { call } = await withApp();
  const made = await call("POST", "/apps/web/machines", '{"config":{"image":"x","env":{"__proto__":"v"}}}');
  expect(made.text).toContain('"env":{"__proto__":"v"}');
});

test.each([
  ["/apps/web/secretkeys/k", { type: "hs256", value: "my secret key material" }],
  ["/apps/web/secretkeys/k/encrypt", { plaintext: "credit card 1234" }],
])("the error about a secret does not repeat it: %s", async (path, body) => {
  const { call } = await withApp();
  await call("POST", "/apps/web/secretkeys/k/generate", { type: "xaes256gcm" });
  const answer = await call("POST", path, body);
  expect(answer.status).toBe(400);
  expect(answer.body.error).toContain("a text of");
  expect(answer.text).not.toMatch(/my secret|credit card/);
});

test("an empty nonce header does not hide its other spelling", async () => {
  const { call, machines, machine } = await withApp();
  const { id } = await machine();
  const { nonce } = (await call("POST", `${machines}/${id}/lease`, { ttl: 60 })).body.data;
  const headers = { "svc-machine-lease-nonce": "", "fly-machine-lease-nonce": nonce };
  expect((await call("POST", `${machines}/${id}/cordon`, undefined, headers)).status).toBe(200);
});

test("only the operator of the service sees its metrics", async () => {
  const { call, url, token } = await withApp();
  const deploy = (await call("POST", "/apps/web/deploy_token", {})).body.token;
  const metrics = (bearer: string) => fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${bearer}` } });
  expect((await metrics(token)).status).toBe(200);
  expect((await metrics(deploy)).status).toBe(403);
});

test("a copy needs a source that the token can access, and keeps encryption and file system", async () => {
  const { call, url, volume } = await withApp();
  await call("POST", "/apps", { name: "other", org_slug: "personal" });
  const deploy = caller(url, (await call("POST", "/apps/other/deploy_token", {})).body.token);
  const { id } = await volume({ encrypted: false, fstype: "raw" });
  await call("POST", `/apps/web/volumes/${id}/snapshots`);
  const [{ id: snapshot_id }] = (await call("GET", `/apps/web/volumes/${id}/snapshots`)).body;
  for (const source of [{ source_volume_id: id }, { snapshot_id }]) {
    expect((await deploy("POST", "/apps/other/volumes", { name: "copy", ...source })).status).toBe(404);
    const copied = await call("POST", "/apps/other/volumes", { name: "copy", ...source });
    expect(copied.body).toMatchObject({ encrypted: false });
  }
});

test("a volume that is still being created is extended and then continues", async () => {
  const { call, volume, clock } = await withApp({ clock: new ManualClock(), delays: "believable" });
  const source = await volume();
  const { id } = await volume({ source_volume_id: source.id });
  const grown = (await call("PUT", `/apps/web/volumes/${id}/extend`, { size_gb: 9 })).body.volume;
  expect(grown).toMatchObject({ size_gb: 9, state: "creating" });
  const seen = new Set<string>();
  for (let i = 0; i < 40; i++) {
    clock.advance(10);
    seen.add((await call("GET", `/apps/web/volumes/${id}`)).body.state);
  }
  expect([...seen]).toEqual(["creating", "enabling_remote_export", "hydrating", "created"]);
});

// Authorization (docs/interface.md#authentication): every operation of the interface, requested with a token of another
// organization and with one that is valid only for another App. The contract lists the operations, so that none is
// forgotten; the parameters are written by hand.
import { expect, test } from "vitest";
import { contract } from "../../../api/index.ts";
import type { Operation } from "../../../api/operation.ts";
import { makeCertificate } from "../../support/certificates.ts";
import { callerWith, caller, withApp, type Call } from "../client.ts";

const operations = Object.values(contract).flatMap((group) => Object.values(group as Record<string, Operation>));

/** An organization `acme` with one object of every kind, and the parameters that name them. */
async function setup() {
  const app = await withApp();
  const call = callerWith(app, "owner", { slug: "acme" });
  for (const name of ["shop", "other"]) await call("POST", "/apps", { name, org_slug: "acme" });
  const made = await call("POST", "/apps/shop/machines", {
    config: { image: "nginx", metadata: { canary: "canary" } },
  });
  const volume = await call("POST", "/apps/shop/volumes", { name: "canary" });
  const { ip } = (await call("POST", "/apps/shop/ip_assignments", { type: "v4" })).body;
  await call("POST", "/apps/shop/certificates/acme", { hostname: "canary.example.com" });
  await call("POST", "/apps/shop/secrets/CANARY", { value: "canary" });
  await call("POST", "/apps/shop/secretkeys/CANARY/generate", { type: "nacl_secretbox" });
  const cluster = await call("POST", "/postgres", { org_slug: "acme", region: "ams", plan: "basic", name: "canary" });
  await call("POST", `/postgres/${cluster.body.data.id}/attachments`, { app_name: "shop" });
  const params: Record<string, string> = {
    app_name: "shop",
    machine_id: made.body.id,
    volume_id: volume.body.id,
    org_slug: "acme",
    key: "canary",
    ip,
    hostname: "canary.example.com",
    secret_name: "CANARY",
    postgres_cluster_id: cluster.body.data.id,
    database: "fly-db",
    extension: "vector",
    username: "fly-user",
  };
  const { token } = (await call("POST", "/apps/other/deploy_token", {})).body;
  return {
    ...app,
    call,
    params,
    deploy: caller(app.url, token),
    stranger: callerWith(app, "stranger", { slug: "strangers" }),
  };
}

const bodies: Readonly<Record<string, unknown>> = {
  "apps.create": { name: "new", org_slug: "acme" },
  "apps.createDeployToken": {},
  "ipAssignments.assign": { type: "v4" },
  "machines.create": { config: { image: "nginx" } },
  "machines.update": { config: { image: "nginx" } },
  "machines.exec": { command: ["env"] },
  "machines.signal": { signal: "SIGKILL" },
  "machines.setMemory": { limit_mb: 256 },
  "machines.reclaimMemory": { amount_mb: 1 },
  "machines.patchMetadata": { metadata: { canary: "gone" } },
  "machines.putMetadata": { metadata: { canary: "gone" } },
  "machines.setMetadataKey": { value: "gone" },
  "certificates.createAcme": { hostname: "new.example.com" },
  "certificates.createCustom": { hostname: "new.example.com", ...makeCertificate({ hosts: ["new.example.com"] }) },
  "volumes.create": { name: "data" },
  "volumes.update": { snapshot_retention: 1 },
  "volumes.extend": { size_gb: 100 },
  "secrets.update": { values: { CANARY: null } },
  "secrets.set": { value: "gone" },
  "secretKeys.set": { type: "hs256", value: Buffer.alloc(32).toString("base64") },
  "secretKeys.generate": { type: "hs256" },
  "secretKeys.encrypt": { plaintext: "" },
  "secretKeys.decrypt": { ciphertext: "" },
  "secretKeys.sign": { plaintext: "" },
  "secretKeys.verify": { plaintext: "", signature: "" },
  "platform.placements": { org_slug: "acme" },
  "postgres.create": { org_slug: "acme", region: "ams", plan: "basic" },
  "postgres.attach": { app_name: "other" },
  "postgres.createDatabase": { name: "new" },
  "postgres.installExtension": { name: "vector" },
  "postgres.createUser": { username: "new", role: "reader" },
  "postgres.updateUser": { role: "reader" },
  "postgres.createBackup": { type: "full" },
  "postgres.restore": { backup_id: "x" },
};

const queries: Readonly<Record<string, string>> = {
  "apps.list": "?org_slug=acme",
  "postgres.list": "?org_slug=acme",
  "machines.destroy": "?force=true",
  "secrets.list": "?show_secrets=true",
  "secrets.get": "?show_secrets=true",
  "machines.wait": "?timeout=1",
};

/** Sends an operation in its row's form, with `params`. */
function ask(call: Call, { id, method, path, body }: Operation, params: Readonly<Record<string, string>>) {
  const named = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name];
    if (value === undefined) throw new Error(`${id} has a parameter ${name} that this test knows nothing of`);
    return encodeURIComponent(value);
  });
  if (body && !(id in bodies) && !optionalBodies.has(id))
    throw new Error(`${id} has a body that this test knows nothing of`);
  return call(method, named.slice("/v1".length) + (queries[id] ?? ""), bodies[id]);
}

/** Operations that every token may call. */
const shared: ReadonlySet<string> = new Set(["platform.regions", "tokens.current"]);

const optionalBodies = new Set(operations.filter(({ bodyOptional }) => bodyOptional).map(({ id }) => id));

/** Everything that the owner can see, as one text; except for processes, whose load changes by itself. */
async function everything(call: Call, params: Readonly<Record<string, string>>): Promise<string> {
  const reads = operations.filter(({ id, method }) => method === "GET" && id !== "machines.processes");
  const texts: string[] = [];
  for (const row of reads) {
    const { status, text } = await ask(call, row, params);
    texts.push(`${row.id} ${status} ${text}`);
  }
  return texts.join("\n");
}

test.each(["stranger", "deploy"] as const)(
  "a token of another organization or App gets 403 or 404 from every operation, never data, and changes nothing: %s",
  async (who) => {
    const app = await setup();
    const before = await everything(app.call, app.params);
    const answers: [string, number][] = [];
    for (const row of operations) {
      // The regions are public, and every token can read itself.
      if (shared.has(row.id)) continue;
      const { status, text } = await ask(app[who], row, app.params);
      answers.push([row.id, status]);
      expect([row.id, status, [403, 404].includes(status)]).toEqual([row.id, status, true]);
      expect([row.id, Object.keys(JSON.parse(text) as object)]).toEqual([row.id, ["error"]]);
      expect([row.id, text.toLowerCase().includes("canary")]).toEqual([row.id, false]);
    }
    expect(answers).toHaveLength(operations.length - shared.size);
    expect(await everything(app.call, app.params)).toBe(before);
  },
);

test("the owner's token is accepted everywhere, so the test above requests existing objects", async () => {
  const app = await setup();
  for (const row of operations.filter(({ method }) => method === "GET")) {
    const { status } = await ask(app.call, row, app.params);
    expect([row.id, status]).toEqual([row.id, row.id === "machines.getLease" ? 404 : 200]);
  }
});

test("every request without a token is refused", async () => {
  const { url, params } = await setup();
  const nobody = caller(url, "nobody");
  for (const row of operations) expect([row.id, (await ask(nobody, row, params)).status]).toEqual([row.id, 401]);
});

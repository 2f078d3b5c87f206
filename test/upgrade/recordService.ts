// Records a data folder of a build of the service: a process of it creates everything that its tables can have, by its API and its
// commands, and then ends. npm run record-upgrade does that for this version, and `-- --build MAIN --name NAME` for another build.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { startIssuer } from "../support/issuer.ts";
import { writeServiceRecord, type Recorded } from "./serviceRecord.ts";

type Send = (method: string, path: string, body?: object, headers?: object) => Promise<{ status: number; answer: any }>; // oxlint-disable-line typescript/no-explicit-any -- like other answers of tests

/** What exists before the service starts. */
const seed = {
  orgs: [{ slug: "team", name: "The team" }],
  images: [{ reference: "registry.example.com/shop:1", digest: `sha256:${"1".repeat(64)}`, labels: { commit: "one" } }],
  dns: [{ hostname: "other.example.com", records: { cname: ["elsewhere.example.com"] } }],
  apps: [{ org: "team", name: "of-team" }],
};

/** Rows that the simulation never needs; of tables that a store may not have. */
const added: Readonly<Record<string, string>> = {
  discarded: "INSERT INTO discarded VALUES ('vol_gone')",
  cluster_changes: "INSERT INTO cluster_changes (cluster, change) SELECT id, '{}' FROM clusters LIMIT 1",
  own_certificates: "INSERT INTO own_certificates (name, added_at, failures) VALUES ('machines.example.com', 1, 0)",
};

/** Records a build of the service, by the path of its command. */
export async function recordService(main: string, name: string): Promise<void> {
  const outer = mkdtempSync(join(tmpdir(), "machines-record-"));
  const data = join(outer, "data");
  const ends: (() => void)[] = [];
  const command = async (...args: string[]): Promise<string> =>
    (await promisify(execFile)(process.execPath, [main, ...args, "--data", data])).stdout;
  try {
    const seedFile = join(outer, "seed.json");
    writeFileSync(seedFile, JSON.stringify(seed));
    await command("seed", seedFile);
    const child = spawn(
      process.execPath,
      [main, "start", "--data", data, "--listen", "127.0.0.1:0", "--delays", "none", "--json"],
      {
        stdio: ["ignore", "pipe", "ignore"],
      },
    );
    ends.push(() => void child.kill("SIGKILL"));
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    const { url } = JSON.parse(line.toString()) as { url: string };
    const send = sender(url, readFileSync(join(data, "token"), "utf8").trim());
    await fill(send);
    await fillByCommands({ command, send, url, atEnd: (end) => ends.push(end) });
    const { at, answers } = await settledAnswers(send);
    child.kill("SIGTERM");
    await once(child, "exit");
    writeServiceRecord(name, data, { at, answers, added: addRows(join(data, "service.db")) });
  } finally {
    for (const end of ends) end();
    rmSync(outer, { recursive: true, force: true });
  }
}

/** Sends requests to a service. */
function sender(url: string, token: string): Send {
  return async (method, path, body, headers = {}) => {
    const init = { method, headers: { authorization: `Bearer ${token}`, ...headers } };
    const response = await fetch(`${url}${path}`, body === undefined ? init : { ...init, body: JSON.stringify(body) });
    const text = await response.text();
    const answer: unknown = text === "" ? undefined : JSON.parse(text);
    return { status: response.status, answer };
  };
}

/** Sends a request that must succeed, and returns its answer. */
async function must(send: Send, method: string, path: string, body?: object, headers?: object) {
  const { status, answer } = await send(method, `/v1${path}`, body, headers);
  if (status >= 300) throw new Error(`${method} ${path} gave ${status} ${JSON.stringify(answer)}`);
  return answer;
}

const shop = "/apps/shop";

/** Creates what the API can create. */
async function fill(send: Send): Promise<void> {
  const post = (path: string, body: object = {}, headers?: object) => must(send, "POST", path, body, headers);
  await post("/apps", { name: "shop", org_slug: "personal" });
  await post(`${shop}/secrets/DATABASE_URL`, { value: "postgres://shop:test@db.internal/shop" });
  await post(`${shop}/secretkeys/signing/generate`, { type: "hs256" });
  await post(`${shop}/secretkeys/sealing/generate`, { type: "nacl_secretbox" });
  const volume = await post(`${shop}/volumes`, { name: "data", region: "fra", size_gb: 3 });
  await post(`${shop}/volumes/${volume.id}/snapshots`);
  const image = "registry.example.com/shop:1";
  const checks = { up: { type: "http", port: 8080, path: "/up" } };
  const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 443, handlers: ["tls", "http"] }] }];
  const web = { image, env: { GREETING: "é\u2028\"'" }, metadata: { tier: "one" }, checks, services };
  const made = await post(`${shop}/machines`, {
    name: "web",
    region: "fra",
    config: { ...web, mounts: [{ volume: volume.id, path: "/data" }] },
  });
  const at = `${shop}/machines/${made.id}`;
  await post(at, { config: { ...web, env: { GREETING: "hello" }, mounts: [{ volume: volume.id, path: "/data" }] } });
  await post(`${at}/metadata/owner`, { value: "ada" });
  await post(`${at}/lease`, { ttl: 3600, description: "a rollout" });
  // In the middle of things, at an end, and destroyed.
  await post(`${shop}/machines`, { name: "starting", config: { image, env: { MACHINES_SIMULATE: "hang" } } });
  await post(`${shop}/machines`, {
    name: "job",
    config: { image, env: { MACHINES_SIMULATE: "exit:3" }, restart: { policy: "no" } },
  });
  const stopped = await post(`${shop}/machines`, {
    name: "stopped",
    config: { image, guest: { cpu_kind: "performance", cpus: 2, memory_mb: 4096 } },
  });
  await post(`${shop}/machines/${stopped.id}/stop`);
  await post(`${shop}/machines/${stopped.id}/cordon`);
  const destroyed = await post(`${shop}/machines`, { name: "destroyed", config: { image } });
  await must(send, "DELETE", `${shop}/machines/${destroyed.id}?force=true`);
  const gone = await post(`${shop}/volumes`, { name: "gone", size_gb: 1 });
  await must(send, "DELETE", `${shop}/volumes/${gone.id}`);
  await post(`${shop}/ip_assignments`, { type: "v6" });
  await post(`${shop}/certificates/acme`, { hostname: "www.example.com" });
  await post(`${shop}/certificates/acme`, { hostname: "shop.invalid" });
  await post(`${shop}/deploy_token`, { expiry: "8760h" });
  await fillClusters(send);
}

async function fillClusters(send: Send): Promise<void> {
  const post = (path: string, body: object = {}) => must(send, "POST", path, body);
  const usual = { region: "fra", org_slug: "personal", plan: "basic" };
  const { data } = await post("/postgres", { name: "data", ...usual });
  const at = `/postgres/${data.id}`;
  while ((await must(send, "GET", at)).data.status !== "ready") await new Promise(setImmediate);
  await post(`${at}/databases`, { name: "shop" });
  await post(`${at}/databases/shop/extensions`, { name: "pgcrypto" });
  await post(`${at}/users`, { username: "reports", role: "reader" });
  await post(`${at}/attachments`, { app_name: "shop" });
  await post(`${at}/backups`, { type: "full" });
  await post("/postgres", { name: "waits-simulate-stuck", ...usual });
}

interface ByCommands {
  readonly command: (...args: string[]) => Promise<string>;
  readonly send: Send;
  readonly url: string;
  readonly atEnd: (end: () => void) => void;
}

/** Creates what only commands create, as far as the build has them. */
async function fillByCommands({ command, send, atEnd }: ByCommands): Promise<void> {
  const help = await command("--help");
  const has = (name: string): boolean => new RegExp(`^  ${name}\\b`, "m").test(help);
  await command("token", "create", "--name", "ci", "--app", "shop");
  if (has("quota")) {
    await command("quota", "set", "--machines", "20", "--clusters", "4");
    await command("quota", "set", "--app", "shop", "--volume-gb", "50");
  }
  if (!has("trust")) return;
  const issuer = await startIssuer(() => Date.now(), atEnd);
  const audience = "https://machines.example.com";
  await command(
    "trust",
    "add",
    "--issuer",
    issuer.url,
    "--audience",
    audience,
    "--claim",
    "repository=acme/shop",
    "--app",
    "shop",
    "--role",
    "deploy",
  );
  const identity_token = await issuer.sign({ aud: audience, sub: "repo:acme/shop", repository: "acme/shop" });
  const { status, answer } = await send(
    "POST",
    "/local/tokens/exchange",
    { identity_token },
    { "content-type": "application/json" },
  );
  if (status !== 201) throw new Error(`the exchange gave ${status} ${JSON.stringify(answer)}`);
}

/** The answers once they no longer change. */
async function settledAnswers(send: Send): Promise<{ at: number; answers: Recorded[] }> {
  for (let before = ""; ;) {
    const at = Date.now();
    const answers = await answersOf(send);
    const text = JSON.stringify(answers);
    if (text === before) return { at, answers };
    before = text;
  }
}

/** What the service says about everything that was created. */
async function answersOf(send: Send): Promise<Recorded[]> {
  const answers: Recorded[] = [];
  const ask = async (path: string, body?: object): Promise<void> => {
    const method = body === undefined ? "GET" : "POST";
    const { status, answer } = await send(method, path, body);
    answers.push({ method, path, ...(body === undefined ? {} : { body }), status, answer });
  };
  const lists = ["secrets?show_secrets=true", "secretkeys", "ip_assignments", "machines", "volumes", "certificates"];
  await ask("/v1/apps?org_slug=personal");
  await ask("/v1/apps?org_slug=team");
  for (const kind of ["machines", "volumes"]) await ask(`/v1/orgs/personal/${kind}`);
  await ask(`/v1${shop}`);
  for (const list of lists) await ask(`/v1${shop}/${list}`);
  const { answer: machines } = await send("GET", `/v1${shop}/machines`);
  for (const { id } of machines as { readonly id: string }[])
    for (const more of ["?include_leases=true", "/events", "/metadata", "/versions", "/memory"])
      await ask(`/v1${shop}/machines/${id}${more}`);
  const web = (machines as { readonly id: string; readonly name: string }[]).find(({ name }) => name === "web");
  await ask(`/v1${shop}/machines/${web?.id}/exec`, { command: ["env"] });
  const { answer: volumes } = await send("GET", `/v1${shop}/volumes`);
  for (const { id } of volumes as { readonly id: string }[]) await ask(`/v1${shop}/volumes/${id}/snapshots`);
  for (const hostname of ["www.example.com", "shop.invalid"]) await ask(`/v1${shop}/certificates/${hostname}`);
  await ask(`/v1${shop}/secretkeys/signing/sign`, { plaintext: "aGVsbG8=" });
  const { answer: clusters } = await send("GET", "/v1/postgres?org_slug=personal");
  await ask("/v1/postgres?org_slug=personal");
  for (const { id } of clusters.data as { readonly id: string }[])
    for (const more of [
      "",
      "/databases",
      "/databases/shop/extensions",
      "/users",
      "/users/reports/credentials",
      "/backups",
    ])
      await ask(`/v1/postgres/${id}${more}`);
  await ask("/v1/tokens/current");
  return answers;
}

/** Adds the rows that the simulation never needs. Returns their tables. */
function addRows(file: string): string[] {
  const db = new DatabaseSync(file);
  const tables = db
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .all()
    .map(({ name }) => String(name));
  const isEmpty = (table: string): boolean => db.prepare(`SELECT 1 FROM "${table}"`).get() === undefined;
  const names = Object.keys(added).filter((table) => tables.includes(table) && isEmpty(table));
  for (const table of names) db.exec(added[table] ?? "");
  const empty = tables.filter(isEmpty);
  db.close();
  if (empty.length > 0) throw new Error(`these tables have no row: ${empty.join(", ")}`);
  return names;
}

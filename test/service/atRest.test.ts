// The data folder: it has no secret in plain text, whatever its origin, and keeps all of them across a restart.
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { fieldOf } from "../../api/schema.ts";
import { createService } from "../../service/index.ts";
import { startService, type TestService } from "../support/startService.ts";
import { makeCertificate } from "../support/certificates.ts";
import { secretsIn } from "../support/secretFields.ts";
import { caller } from "./client.ts";

const folders: string[] = [];
const services: TestService[] = [];
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "machines-at-rest-"));
  folders.push(folder);
  return folder;
}

async function start(data: string) {
  const service = await startService({ data });
  services.push(service);
  return { service, call: caller(service.url, service.token) };
}

const host = "www.example.com";

/** Stores one of every kind of secret; returns what must not be found, as sent and in possible encodings. */
async function fill(call: ReturnType<typeof caller>): Promise<string[]> {
  const key = Buffer.from("canary-key-of-32-bytes-in-length");
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  await call("POST", "/apps/web/secrets/ONE", { value: "canary-secret-one" });
  await call("POST", "/apps/web/secrets", { values: { TWO: "canary-secret-two" } });
  await call("POST", "/apps/web/secrets/ONE", { value: "canary-secret-three" });
  await call("POST", "/apps/web/secretkeys/k", { type: "nacl_secretbox", value: key.toString("base64") });
  await call("POST", "/apps/web/machines", { config: { image: "nginx" }, name: "one" });
  const certificate = makeCertificate({ hosts: [host] });
  await call("POST", "/apps/web/certificates/custom", { hostname: host, ...certificate });
  const { token } = (await call("POST", "/apps/web/deploy_token", {})).body;
  const made = await call("POST", "/postgres", { org_slug: "personal", region: "ams", plan: "basic", name: "db" });
  const users = `/postgres/${made.body.data.id}/users`;
  await call("POST", users, { username: "app", role: "writer" });
  const passwords: string[] = [];
  for (const user of ["fly-user", "app"])
    passwords.push((await call("GET", `${users}/${user}/credentials`)).body.data.password);
  await call("POST", `/postgres/${made.body.data.id}/backups`, { type: "full" });
  passwords.push((await call("POST", `${users}/app/rotate_password`)).body.data.password);
  expect(passwords.every((password) => password.length >= 16)).toBe(true);
  const lines = certificate.private_key.split("\n").filter((line) => line.length > 20 && !line.startsWith("-"));
  return ["canary-secret", key.toString(), key.toString("base64"), key.toString("hex"), token, ...passwords, ...lines];
}

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

function expectClean(folder: string, secrets: readonly string[]): void {
  const files = filesIn(folder);
  expect(files.some((file) => file.endsWith("service.db"))).toBe(true);
  for (const file of files) {
    const content = contentOf(file);
    for (const secret of secrets)
      for (const spelled of [secret, Buffer.from(secret).toString("base64").slice(0, -4)])
        expect([file, content.includes(spelled)]).toEqual([file, false]);
  }
}

/** Empty if the file is gone since it was listed: SQLite deletes its journals while the service runs. */
function contentOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT" && file.endsWith("-journal")) return Buffer.alloc(0);
    throw error;
  }
}

test("no secret, key, password, private key or token is in any file, during and after a run", async () => {
  const folder = newFolder();
  const { service, call } = await start(folder);
  const secrets = await fill(call);
  expectClean(folder, secrets);
  await service.close();
  expectClean(folder, secrets);
});

/** Operations with a secret in their body that they store. */
const storing = Object.values(contract)
  .flatMap((group) => Object.values(group as Record<string, Operation>))
  .filter(({ body }) => body !== undefined && secretsIn(fieldOf(body)).length > 0)
  .map(({ id }) => id)
  // The first ones use a key; the last one refuses a value.
  .filter((id) => !/\.(encrypt|decrypt|sign|verify|generate)$/.test(id));

test("every operation that stores a secret has stored one in the folder that is searched", async () => {
  const { service, call } = await start(newFolder());
  await fill(call);
  const done = service.service.audit.after(0).filter(({ status }) => status !== null && status < 300);
  const used = new Set(done.map(({ operation }) => operation));
  expect(storing.length).toBeGreaterThan(3);
  expect(storing.filter((id) => !used.has(id))).toEqual([]);
});

test("only the user can read the folder, and every file with a secret", async () => {
  const folder = newFolder();
  const { call } = await start(folder);
  await fill(call);
  expect(statSync(folder).mode & 0o077).toBe(0);
  for (const file of ["service.db", "key", "token"])
    expect([file, statSync(join(folder, file)).mode & 0o077]).toEqual([file, 0]);
});

test("everything is kept across a restart", async () => {
  const folder = newFolder();
  const first = await start(folder);
  await fill(first.call);
  const { ciphertext } = (await first.call("POST", "/apps/web/secretkeys/k/encrypt", { plaintext: "aGVsbG8=" })).body;
  const [{ id }] = (await first.call("GET", "/postgres?org_slug=personal")).body.data;
  const credentials = async (call: ReturnType<typeof caller>) =>
    (await call("GET", `/postgres/${id}/users/app/credentials`)).body.data.password;
  const [machine] = (await first.call("GET", "/apps/web/machines")).body;
  const env = (call: ReturnType<typeof caller>) =>
    call("POST", `/apps/web/machines/${machine.id}/exec`, { command: ["env"] });
  const before = [await credentials(first.call), (await env(first.call)).text];
  await first.service.close();
  const { call } = await start(folder);
  expect([await credentials(call), (await env(call)).text]).toEqual(before);
  expect((await call("GET", "/apps/web/secrets/ONE?show_secrets=true")).body.value).toBe("canary-secret-three");
  expect((await call("POST", "/apps/web/secretkeys/k/decrypt", { ciphertext })).body.plaintext).toBe("aGVsbG8=");
});

test.each([
  ["a secret", (call: ReturnType<typeof caller>) => call("POST", "/apps/web/secrets/A", { value: "x" })],
  ["a key", (call: ReturnType<typeof caller>) => call("POST", "/apps/web/secretkeys/k/generate", { type: "hs256" })],
  [
    "a password",
    (call: ReturnType<typeof caller>) =>
      call("POST", "/postgres", { org_slug: "personal", region: "ams", plan: "basic" }),
  ],
  [
    "an uploaded certificate",
    (call: ReturnType<typeof caller>) =>
      call("POST", "/apps/web/certificates/custom", { hostname: host, ...makeCertificate({ hosts: [host] }) }),
  ],
])("without the key for %s the service does not start, and says what is missing", async (_, put) => {
  const folder = newFolder();
  const { service, call } = await start(folder);
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  expect((await put(call)).status).toBe(201);
  await service.close();
  rmSync(join(folder, "key"));
  expect(() => createService({ data: folder })).toThrow(/key is missing.*backup/);
});

test("a copy of the database alone reveals nothing: another key is refused when a value is read", async () => {
  const folder = newFolder();
  const { service, call } = await start(folder);
  await fill(call);
  await service.close();
  rmSync(join(folder, "key"));
  const other = newFolder();
  const second = await start(other);
  await second.service.close();
  copyFileSync(join(other, "key"), join(folder, "key"));
  const third = await start(folder);
  const answer = await third.call("GET", "/apps/web/secrets/ONE?show_secrets=true");
  expect([answer.status, answer.text.includes("canary")]).toEqual([500, false]);
  expect((await third.call("GET", "/apps/web/secrets")).status).toBe(200);
});

// The admin listener, and the effect of every example of docs/service-faults.md on a client.
import { mkdtempSync, readFileSync, statSync, existsSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";

import { ManualClock, startAdmin, type Admin, type ServiceOptions } from "../../service/index.ts";
import { caller, withApp } from "./client.ts";

const opened: Admin[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((admin) => admin.close()));
});

/** A service with an App and an admin listener. */
async function withAdmin(options: ServiceOptions = {}) {
  const clock = new ManualClock();
  const found = await withApp({ clock, ...options });
  const admin = await startAdmin({ service: found.service, listen: { host: "127.0.0.1", port: 0 } });
  opened.push(admin);
  const ask = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`${admin.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${admin.token}`, ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
  };
  return { ...found, clock, admin, ask };
}

type Scene = Awaited<ReturnType<typeof withAdmin>>;
type Plan = () => Promise<void>;

const create = ({ call, machines }: Scene) => call("POST", machines, { config: { image: "nginx" } });
const count = async ({ call, machines }: Scene): Promise<number> => (await call("GET", machines)).body.length;
const cut = /fetch failed|terminated/;

/** The effect of each fault on a client: `plan` plans the example. */
const seen: Readonly<Record<string, (scene: Scene, plan: Plan) => Promise<void>>> = {
  async "failure before"(scene, plan) {
    await plan();
    const answer = await create(scene);
    expect([answer.status, answer.headers.get("retry-after"), answer.body]).toEqual([503, "2", { error: "later" }]);
    expect(await count(scene)).toBe(0);
    expect((await create(scene)).status).toBe(200);
  },
  async "failure after"(scene, plan) {
    await plan();
    expect(await create(scene)).toMatchObject({ status: 502, text: "<html>bad gateway</html>" });
    expect(await count(scene)).toBe(1);
  },
  async "reset before"(scene, plan) {
    await plan();
    await expect(create(scene)).rejects.toThrow(cut);
    expect(await count(scene)).toBe(0);
  },
  async "reset after"(scene, plan) {
    await plan();
    await expect(create(scene)).rejects.toThrow(cut);
    expect(await count(scene)).toBe(1);
    expect(scene.service.audit.after(0).find(({ status }) => status === null)).toMatchObject({
      operation: "machines.create",
      faults: ["fault-1"],
    });
  },
  async "truncated answer"(scene, plan) {
    await create(scene);
    await plan();
    const { length, bytes, whole } = await raw(scene, scene.machines);
    expect(bytes).toBe(20);
    expect(length).toBeGreaterThan(500);
    expect(whole).toBe(false);
    expect(await count(scene)).toBe(1);
  },
  async "malformed answer"(scene, plan) {
    const { id } = (await create(scene)).body;
    await plan();
    const answer = await scene.call("GET", `${scene.machines}/${id}`);
    expect([answer.status, answer.text]).toEqual([200, '{"id": ']);
    expect(answer.headers.get("content-type")).toContain("application/json");
  },
  async "empty answer"(scene, plan) {
    const { id } = (await create(scene)).body;
    await plan();
    expect(await scene.call("GET", `${scene.machines}/${id}/wait`)).toMatchObject({ status: 200, text: "" });
  },
  async "odd answer"(scene, plan) {
    const { id, name } = (await create(scene)).body;
    await plan();
    const { body } = await scene.call("GET", `${scene.machines}/${id}`);
    expect(body).toMatchObject({ id, name, state: "failed", region: 7, surprise: true });
    expect(body).not.toHaveProperty("config");
  },
  async "late answer"(scene, plan) {
    await plan();
    const order: string[] = [];
    await Promise.all([
      scene.call("GET", "/apps/web").then(() => order.push("held")),
      scene.call("GET", scene.machines).then(() => order.push("free")),
    ]);
    expect(order).toEqual(["free", "held"]);
  },
  async "dripping answer"(scene, plan) {
    const { id } = (await create(scene)).body;
    const usual = await raw(scene, `${scene.machines}/${id}`);
    await plan();
    const dripped = await raw(scene, `${scene.machines}/${id}`);
    expect(dripped).toMatchObject({ whole: true, bytes: usual.bytes, length: usual.bytes });
    expect(dripped.pieces).toBeGreaterThan(usual.pieces + 1);
  },
  async "rate limit"(scene, plan) {
    const { id } = (await create(scene)).body;
    await plan();
    const answers = [];
    for (let i = 0; i < 3; i++) answers.push(await scene.call("GET", `${scene.machines}/${id}`));
    expect(answers.map(({ status, headers }) => [status, headers.get("retry-after")])).toEqual([
      [429, "1"],
      [429, "1"],
      [200, null],
    ]);
  },
  async storm(scene, plan) {
    await plan();
    for (const path of ["/apps/web", scene.machines, "/platform/regions", "/apps/web"])
      expect((await scene.call("GET", path)).status).toBe(429);
    expect((await scene.ask("DELETE", "/faults")).status).toBe(204);
    expect((await scene.call("GET", "/apps/web")).status).toBe(200);
  },
  async "revoked token"(scene, plan) {
    await plan();
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) statuses.push((await scene.call("GET", "/apps/web")).status);
    expect(statuses).toEqual([200, 200, 401, 401]);
  },
  async "no capacity"(scene, plan) {
    const { id: volume } = await scene.volume();
    await plan();
    expect(await create(scene)).toMatchObject({ status: 422, body: { status: "insufficient_capacity" } });
    await plan();
    const mounted = { config: { image: "nginx", mounts: [{ volume, path: "/data" }] } };
    expect(await scene.call("POST", scene.machines, mounted)).toMatchObject({
      status: 412,
      body: { status: "volume_placement_capacity" },
    });
    expect((await create(scene)).status).toBe(200);
  },
  async "stale read"(scene, plan) {
    const first = (await create(scene)).body;
    scene.clock.advance(5000);
    const path = `${scene.machines}/${first.id}`;
    const second = (await scene.call("POST", path, { config: { image: "nginx:2" } })).body;
    await plan();
    const stale = (await scene.call("GET", path)).body;
    expect(stale).toMatchObject({ version: first.version, instance_id: first.version, config: { image: "nginx" } });
    expect(stale.image_ref).toEqual(first.image_ref);
    expect(stale.updated_at < second.updated_at).toBe(true);
    expect((await scene.call("GET", path)).body.version).toBe(second.version);
  },
  async "partial list"(scene, plan) {
    const { id } = (await create(scene)).body;
    scene.clock.advance(1000);
    await create(scene);
    await plan();
    expect((await scene.call("GET", scene.machines)).body).toMatchObject([{ id }]);
    expect(await count(scene)).toBe(2);
  },
  async "odd page"(scene, plan) {
    await scene.call("POST", "/apps", { name: "other", org_slug: "personal" });
    await plan();
    const { body } = await scene.call("GET", "/apps?org_slug=personal");
    expect(body.apps.map(({ name }: { name: string }) => name)).toEqual(["other", "web", "web"]);
    expect(body.next_cursor).toBe("c2FtZQ");
  },
  async "late visibility"(scene, plan) {
    await plan();
    const { id } = (await create(scene)).body;
    const look = async () => [
      (await scene.call("GET", `${scene.machines}/${id}`)).status,
      (await scene.call("GET", `${scene.machines}/${id}/wait?timeout=1`)).status,
      await count(scene),
      (await scene.call("GET", "/orgs/personal/machines")).body.machines.length,
    ];
    expect(await look()).toEqual([404, 404, 0, 0]);
    scene.clock.advance(4999);
    expect(await look()).toEqual([404, 404, 0, 0]);
    scene.clock.advance(1);
    expect(await look()).toEqual([200, 200, 1, 1]);
  },
  async "unreachable host"(scene, plan) {
    const { id } = await scene.machine({}, { region: "ams" });
    await plan();
    const { body } = await scene.call("GET", `${scene.machines}/${id}`);
    expect([body.host_status, "config" in body]).toEqual(["unreachable", false]);
    expect((await scene.call("POST", `${scene.machines}/${id}/stop`)).status).toBe(503);
  },
  async "stolen lease"(scene, plan) {
    const { id } = (await create(scene)).body;
    const path = `${scene.machines}/${id}`;
    const { nonce } = (await scene.call("POST", `${path}/lease`, { ttl: 60 })).body.data;
    const update = () =>
      scene.call("POST", path, { config: { image: "nginx:2" } }, { "svc-machine-lease-nonce": nonce });
    expect((await update()).status).toBe(200);
    await plan();
    const refused = await update();
    expect([refused.status, refused.body.error]).toEqual([409, expect.stringContaining("held by thief@tokens.faults")]);
    scene.clock.advance(20_000);
    expect((await scene.call("GET", `${path}/lease`)).status).toBe(404);
    expect((await scene.call("POST", path, { config: { image: "nginx:3" } })).status).toBe(200);
  },
  async "clock jump"(scene, plan) {
    const { id } = (await create(scene)).body;
    const path = `${scene.machines}/${id}`;
    const { nonce } = (await scene.call("POST", `${path}/lease`, { ttl: 30 })).body.data;
    const before = scene.service.context.clock.now();
    await plan();
    const late = await scene.call("POST", path, { config: { image: "nginx" } }, { "svc-machine-lease-nonce": nonce });
    expect([late.status, late.body.error]).toEqual([409, expect.stringContaining("it expired or was released")]);
    expect(scene.service.context.clock.now() - before).toBe(60_000);
  },
  async "lost delete"(scene, plan) {
    const { id } = (await create(scene)).body;
    await plan();
    expect(await scene.call("DELETE", `${scene.machines}/${id}?force=true`)).toMatchObject({
      status: 200,
      body: { ok: true },
    });
    expect((await scene.call("GET", `${scene.machines}/${id}`)).body.state).toBe("started");
  },
  async "one organization, one App"(scene, plan) {
    await scene.call("POST", "/apps", { name: "other", org_slug: "personal" });
    await plan();
    expect((await scene.call("GET", "/apps/web/machines")).status).toBe(500);
    expect((await scene.call("GET", "/apps/other/machines")).status).toBe(200);
    expect((await scene.call("GET", "/apps/web")).status).toBe(200);
  },
};

/** Reads an answer in detail: its declared length, its data, the number of pieces, and whether it was complete. */
function raw({ url, token }: Scene, path: string) {
  return new Promise<{ length: number; bytes: number; pieces: number; whole: boolean }>((resolve, reject) => {
    const sent = request(`${url}/v1${path}`, { headers: { authorization: `Bearer ${token}` } }, (answer) => {
      let bytes = 0;
      let pieces = 0;
      answer.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        pieces++;
      });
      answer.on("error", () => {});
      answer.on("close", () =>
        resolve({ length: Number(answer.headers["content-length"]), bytes, pieces, whole: answer.complete }),
      );
    });
    sent.on("error", reject);
    sent.end();
  });
}

describe("every example of docs/service-faults.md", () => {
  const text = readFileSync("docs/service-faults.md", "utf8");
  const examples = [...text.matchAll(/^\| ([^|`]+) \| .* \| `(\{.*\})` \|$/gm)].map(([, name = "", example = ""]) => ({
    name,
    example,
  }));

  test("every example of docs/service-faults.md is tested here, and there are no others", () => {
    expect(examples.map(({ name }) => name)).toEqual(Object.keys(seen));
  });

  test.each(examples)("the example $name of docs/service-faults.md works", async ({ name, example }) => {
    const scene = await withAdmin();
    await seen[name]?.(scene, async () => {
      const planned = await scene.ask("POST", "/faults", example);
      expect(planned).toEqual({ status: 201, body: { id: expect.stringMatching(/^fault-\d+$/) } });
    });
  });
});

test.each([
  ["no JSON", "{", "invalid body, it is not JSON"],
  [
    "an unknown operation",
    { operation: "machines.fly", status: 500 },
    'invalid operation, got "machines.fly", is no operation',
  ],
  ["an unknown field", { operation: "apps.get", statuss: 500 }, "unknown statuss"],
  ["an unknown nested field", { operation: "apps.list", list: { keeps: 1 } }, "unknown list.keeps"],
  ["no effect", { operation: "apps.get" }, "must do something"],
  ["two effects", { operation: "machines.get", stale: 1, status: 500 }, "invalid stale"],
  ["an invalid status", { status: 99 }, "invalid status"],
  ["a body without a status", { body: "x" }, "invalid body"],
  ["a wrong moment", { operation: "machines.create", capacity: true, when: "after" }, "must be before with capacity"],
  ["an operation without that effect", { operation: "apps.get", stale: 1 }, "must be one that stale applies to"],
  ["an answer that is truncated and never sent", { status: "reset", truncate: 1 }, "needs an answer"],
  ["a header with a line break", { status: 500, headers: { a: "b\r\nc: d" } }, "invalid headers.a"],
  ["a negative delay", { delayMs: -1 }, "invalid delayMs, got -1, must be a whole number from 0 to 86400000"],
])("a fault with %s is refused, naming the field", async (_, body, message) => {
  const { ask, service } = await withAdmin();
  const answer = await ask("POST", "/faults", body);
  expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining(message)]);
  expect(service.faults.none).toBe(true);
});

test("faults are listed until they are used up or removed", async () => {
  const { ask, call } = await withAdmin();
  const { id } = (await ask("POST", "/faults", { operation: "apps.get", nth: 2, status: 500 })).body;
  const other = (await ask("POST", "/faults", { operation: "machines.get", delayMs: 1 })).body;
  await call("GET", "/apps/web");
  expect((await ask("GET", "/faults")).body.faults).toEqual([
    { id, seen: 1, operation: "apps.get", nth: 2, status: 500 },
    { id: other.id, seen: 0, operation: "machines.get", delayMs: 1 },
  ]);
  await call("GET", "/apps/web");
  expect((await ask("DELETE", `/faults/${other.id}`)).status).toBe(204);
  expect((await ask("GET", "/faults")).body.faults).toEqual([]);
  expect((await ask("DELETE", `/faults/${other.id}`)).status).toBe(404);
});

test("images are listed and moved, and new Machines use the moved one", async () => {
  const { ask, machine } = await withAdmin();
  const digest = `sha256:${"ab".repeat(32)}`;
  const listed = { reference: "nginx:latest", digest, labels: { version: "9" } };
  expect((await ask("PUT", "/images", listed)).status).toBe(204);
  expect((await ask("GET", "/images")).body.images).toContainEqual({
    ...listed,
    reference: "docker.io/library/nginx:latest",
  });
  expect((await machine()).image_ref).toMatchObject({ digest, labels: { version: "9" } });
  expect((await ask("PUT", "/images", { ...listed, digest: "abc" })).body.error).toContain("invalid digest");
  expect((await ask("PUT", "/images", { digest })).body.error).toContain("invalid reference, got nothing");
  expect((await ask("PUT", "/images", { ...listed, reference: "a b" })).body.error).toBe(
    'invalid reference, got "a b", must be an image such as "registry.example.com/web:v3" or "web@sha256:…"; it has no spaces',
  );
});

test("the DNS of a hostname is set and reset", async () => {
  const { ask, call } = await withAdmin();
  await call("POST", "/apps/web/certificates/acme", { hostname: "www.example.com" });
  const check = async () => (await call("POST", "/apps/web/certificates/www.example.com/check")).body;
  expect((await check()).configured).toBe(true);
  expect((await ask("PUT", "/dns/www.example.com", { a: ["198.18.0.1"] })).status).toBe(204);
  expect(await check()).toMatchObject({ configured: false, dns_records: { a: ["198.18.0.1"] } });
  expect((await ask("DELETE", "/dns/www.example.com")).status).toBe(204);
  expect((await check()).configured).toBe(true);
  expect((await ask("PUT", "/dns/www.example.com", { a: "198.18.0.1" })).body.error).toContain(
    "invalid a, got a value of type string",
  );
  expect((await ask("PUT", "/dns/not..a..name", {})).body.error).toContain("invalid hostname");
});

test("the clock is advanced on request, and due timers run", async () => {
  const { ask, machine, state, service } = await withAdmin({ delays: "believable" });
  const { id } = await machine();
  const before = service.context.clock.now();
  expect(await state(id)).toBe("created");
  expect(await ask("POST", "/clock", { advanceMs: 10_000 })).toEqual({ status: 200, body: { now: before + 10_000 } });
  expect(await state(id)).toBe("started");
  expect((await ask("POST", "/clock", { advanceMs: -1 })).body.error).toContain("invalid advanceMs, got -1");
});

test("the audit log continues where the reader stopped", async () => {
  const { ask, call } = await withAdmin();
  const { last } = (await ask("GET", "/audit")).body;
  await call("GET", "/apps/web");
  await call("GET", "/apps/none");
  const read = await ask("GET", `/audit?after=${last}`);
  expect(read.body).toMatchObject({
    last: last + 2,
    entries: [
      { seq: last + 1, status: 200 },
      { seq: last + 2, status: 404 },
    ],
  });
  expect((await ask("GET", `/audit?after=${last}&limit=1`)).body.entries).toHaveLength(1);
  expect((await ask("GET", "/audit?after=soon")).body.error).toContain("invalid after");
});

test("only its own token is accepted, and no request from another website", async () => {
  const { admin, token, ask } = await withAdmin();
  expect((await ask("GET", "/faults", undefined, { authorization: `Bearer ${token}` })).status).toBe(401);
  expect((await fetch(`${admin.url}/faults`)).status).toBe(401);
  expect((await ask("GET", "/faults", undefined, { origin: "http://evil.example" })).status).toBe(403);
  expect((await ask("GET", "/faults", undefined, { "sec-fetch-site": "cross-site" })).status).toBe(403);
  expect((await ask("GET", "/nothing")).status).toBe(404);
});

test("the admin token is not valid for the service, which has none of the admin's paths", async () => {
  const { admin, url, token } = await withAdmin();
  expect((await caller(url, admin.token)("GET", "/apps/web")).status).toBe(401);
  expect((await fetch(`${url}/faults`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(404);
});

test("its token is in the data folder, readable only by the user, while it listens", async () => {
  const data = mkdtempSync(join(tmpdir(), "machines-admin-"));
  const { admin } = await withAdmin({ data });
  const file = join(data, "admin-token");
  expect(readFileSync(file, "utf8").trim()).toBe(admin.token);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await admin.close();
  expect(existsSync(file)).toBe(false);
});

test("it listens only on this computer", async () => {
  const { service } = await withApp();
  await expect(startAdmin({ service, listen: { host: "0.0.0.0", port: 0 } })).rejects.toThrow(
    /an address that only this computer can reach/,
  );
});

// Invalid input (F34, F24) is answered with a sentence, never with a stack trace, and never touches a file.
import { connect } from "node:net";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { withApp } from "./client.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Sends raw bytes; returns the answer's status and body. */
function send(url: string, request: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    let text = "";
    socket.setEncoding("latin1").on("data", (part: string) => (text += part));
    socket.on("error", (error: NodeJS.ErrnoException) =>
      error.code === "EPIPE" || error.code === "ECONNRESET" ? undefined : reject(error),
    );
    socket.on("close", () =>
      resolve({
        status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]),
        body: text.slice(text.indexOf("\r\n\r\n") + 4),
      }),
    );
    socket.write(request);
  });
}

const paths = [
  "/v1/apps/..",
  "/v1/apps/../../etc/passwd",
  "/v1/apps/%2e%2e",
  "/v1/apps/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
  "/v1/apps/web/machines/..%2f..%2ftoken",
  "/v1/apps/a%2Fb",
  "/v1/apps/%00",
  "/v1/apps/web%00",
  "/v1/apps/%252e%252e",
  "/v1/apps/%ff",
  "/v1/apps/%",
  "/v1/apps/web/volumes/..%5c..",
  "//v1/apps/web/../../..",
  `/v1/apps/${"a".repeat(300)}`,
  `/v1/apps/${"a".repeat(5000)}`,
  `/v1/apps/${"a".repeat(2 ** 20)}`,
];

test.each(paths.map((path) => [path.slice(0, 60), path] as const))(
  "F34 %s is refused and reaches no file",
  async (_, path) => {
    const folder = mkdtempSync(join(tmpdir(), "machines-input-"));
    folders.push(folder);
    const { url, token } = await withApp({ data: join(folder, "data") });
    const before = readdirSync(folder, { recursive: true }).sort();
    const answer = await send(
      url,
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
    );
    expect([400, 404, 414]).toContain(answer.status);
    expect(JSON.parse(answer.body)).toEqual({ error: expect.any(String) });
    expect(answer.body).not.toMatch(/at .*\.ts|node:|\/home|\/root/);
    expect(readdirSync(folder, { recursive: true }).sort()).toEqual(before);
    expect(existsSync(join(folder, "passwd"))).toBe(false);
  },
);

test.each([
  ["not JSON", "{", 400],
  ["half a string", '{"config": "', 400],
  ["a number", "5", 400],
  ["a list", "[]", 400],
  ["null", "null", 400],
  ["nothing", "", 400],
  ["endless nesting", "[".repeat(100_000), 400],
  ["deep nesting", `{"config":{"image":"nginx","deep":${"[".repeat(20_000)}${"]".repeat(20_000)}}}`, 400],
  ["5 MiB", `{"config":{"image":"${"a".repeat(5 * 2 ** 20)}"}}`, 413],
  ["a NUL in a name", String.raw`{"name":"a\u0000","config":{"image":"nginx"}}`, 400],
])("a body of %s is refused", async (_, body, status) => {
  const { call, machines } = await withApp({ strict: false });
  const answer = await call("POST", machines, body);
  expect([answer.status, answer.body]).toEqual([status, { error: expect.any(String) }]);
  expect((await call("GET", machines)).body).toEqual([]);
});

test("a body with the keys __proto__ or constructor affects no other object", async () => {
  const { call, machine, machines } = await withApp({ strict: false });
  const body =
    '{"__proto__":{"polluted":1},"config":{"image":"nginx","__proto__":{"polluted":1},"env":{"__proto__":"x","constructor":"y"},"metadata":{"__proto__":"z"}}}';
  const made = await call("POST", machines, body);
  expect(made.status).toBe(200);
  expect((await call("GET", `${machines}/${made.body.id}`)).text).toContain(
    '"env":{"__proto__":"x","constructor":"y"}',
  );
  expect((await call("GET", `${machines}/${made.body.id}/metadata`)).text).toBe('{"__proto__":"z"}');
  expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
  expect(await machine()).not.toHaveProperty("polluted");
});

test("unknown fields are kept inside config and ignored elsewhere", async () => {
  const { call, machines } = await withApp({ strict: false });
  const made = await call("POST", `${machines}?whatever=1`, {
    config: { image: "nginx", brand_new: { a: [1] }, guest: { turbo: true } },
    novelty: true,
  });
  expect(made.status).toBe(200);
  expect(made.body.config).toEqual({ image: "nginx", brand_new: { a: [1] }, guest: { turbo: true } });
  expect(made.body).not.toHaveProperty("novelty");
});

test("a strict service refuses unknown fields and names them", async () => {
  const { call, machines } = await withApp({ strict: true });
  const answer = await call("POST", machines, {
    config: { image: "nginx", brand_new: 1, guest: { turbo: true } },
    novelty: true,
  });
  expect([answer.status, answer.body]).toEqual([
    400,
    { error: "unknown config.brand_new, config.guest.turbo, novelty" },
  ]);
  expect((await call("GET", `${machines}?whatever=1`)).status).toBe(400);
});

test("the log names unknown fields, without their values, tokens, nonces or environments", async () => {
  const lines: string[] = [];
  const { call, machines, token } = await withApp({ strict: false, log: { write: (line) => lines.push(line) } });
  const made = await call("POST", machines, {
    config: { image: "nginx", env: { PASSWORD: "canary-env" }, brand_new: "canary-value" },
    lease_ttl: 60,
  });
  await call("POST", `${machines}/${made.body.id}/stop`, undefined, { "svc-machine-lease-nonce": made.body.nonce });
  await call("POST", machines, "canary-body");
  await call("GET", `${machines}?canary-query=canary-query-value`);
  const log = lines.join("");
  expect(log).toContain("config.brand_new");
  for (const secret of ["canary-env", "canary-value", "canary-body", "canary-query-value", made.body.nonce, token])
    expect(log).not.toContain(secret);
});

test("a request with two Host headers is refused", async () => {
  const { url, token } = await withApp();
  const answer = await send(
    url,
    `GET /v1/apps/web HTTP/1.1\r\nHost: localhost\r\nhOST: elsewhere\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
  );
  expect([answer.status, JSON.parse(answer.body)]).toEqual([
    400,
    { error: "invalid Host, got 2 headers, must be one" },
  ]);
});

test("malformed HTTP is answered or closed, and other clients are served", async () => {
  const { url, call } = await withApp();
  expect((await send(url, "\u0016\u0003\u0001 nonsense\r\n\r\n")).status).toBe(400);
  expect(
    (await send(url, `GET /v1/apps/web HTTP/1.1\r\nHost: localhost\r\nX: ${"a".repeat(100_000)}\r\n\r\n`)).status,
  ).toBe(431);
  expect((await call("GET", "/apps/web")).status).toBe(200);
});

test("a secret value of the wrong form is refused without quoting it", async () => {
  const { call } = await withApp({ strict: false });
  const canary = "canary-5d1e, no base64";
  const answer = await call("POST", "/apps/web/secretkeys/KEY", { type: "hs256", value: canary });
  expect(answer.status).toBe(400);
  expect(JSON.stringify(answer.body)).toContain(`a text of ${canary.length} characters`);
  expect(JSON.stringify(answer.body)).not.toContain("canary");
});

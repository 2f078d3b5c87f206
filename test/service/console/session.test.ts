// Sessions of the console: codes, cookies, and what a session may do.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { contract } from "../../../api/index.ts";
import type { Operation } from "../../../api/operation.ts";
import { createService, ManualClock, type ServiceOptions } from "../../../service/index.ts";
import { addToken, revokeTokens } from "../../../service/store/tokens.ts";
import { makeCertificate } from "../../support/certificates.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { withApp } from "../client.ts";
import { browser, cookieOf, page, send, sessionOf, signIn } from "./browser.ts";

const minute = 60_000;
const hour = 60 * minute;

/** A data folder that is removed after the test. */
function dataFolder(): string {
  const made = mkdtempSync(join(tmpdir(), "machines-session-"));
  afterThisTest(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

test("a code opens a session of the operator, and the cookie is out of reach of scripts and of other sites", async () => {
  const started = await withApp({ clock: new ManualClock(), console: "write" });
  const answer = await signIn(started.url, { code: started.service.consoleCode() });
  expect([answer.status, answer.body]).toEqual([200, { page_key: expect.stringMatching(/^[0-9a-f]{32}$/) }]);
  expect(answer.headers.get("cache-control")).toBe("no-store");
  expect(answer.headers.get("set-cookie")).toMatch(
    /^machines_console_[0-9a-f]{8}=[\w.]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
  );
  const session = await browser(started.url, sessionOf(answer))("GET", "/console/session");
  expect(session.headers.get("cache-control")).toBe("no-store");
  expect(session.body).toEqual({
    organization: "personal",
    apps: null,
    owner: expect.stringMatching(/^[0-9a-f]{12}@tokens\.personal$/),
    role: "own",
    isOperator: true,
    canWrite: true,
    runtime: "simulated",
    hasPast: false,
    expiresAt: started.clock.now() + 12 * hour,
    now: started.clock.now(),
  });
});

test("a token opens a session with its own rights", async () => {
  const started = await withApp({ clock: new ManualClock(), console: "write" });
  const { store } = started.service.context;
  const app = store.get<{ id: string }>("SELECT id FROM apps WHERE name = 'web'")?.id ?? "";
  const expiresAt = started.clock.now() + hour;
  addToken(store, "of-web", { slug: "personal", apps: [app], role: "read", expiresAt }, started.clock.now());
  const visit = await page(started, "of-web");
  expect((await visit("GET", "/console/session")).body).toMatchObject({
    ...{ organization: "personal", apps: ["web"], role: "read", isOperator: false, canWrite: false, expiresAt },
  });
  const withToken = await send(started.url, "GET", "/console/session", { headers: { authorization: "Bearer of-web" } });
  expect(withToken.body).toMatchObject({ apps: ["web"], isOperator: false, expiresAt });
});

const codeRefused =
  /^the code is wrong, was used, has expired, or is from before a restart of the service; get another/;

test("a code opens one session, within five minutes", async () => {
  const { url, clock, service } = await withApp({ clock: new ManualClock() });
  const code = service.consoleCode();
  expect((await signIn(url, { code })).status).toBe(200);
  expect(await signIn(url, { code })).toMatchObject({
    status: 401,
    body: { error: expect.stringMatching(codeRefused) },
  });
  const [last, late] = [service.consoleCode(), service.consoleCode()];
  clock.advance(5 * minute - 1);
  expect((await signIn(url, { code: last })).status).toBe(200);
  clock.advance(1);
  expect((await signIn(url, { code: late })).status).toBe(401);
  // It is forgotten by now that this one was used.
  expect((await signIn(url, { code })).status).toBe(401);
  const [nonce, , signature] = service.consoleCode().split(".");
  const extended = [nonce, clock.now() + hour, signature].join(".");
  expect((await signIn(url, { code: extended })).status).toBe(401);
});

test("a restart ends codes, and keeps sessions", async () => {
  const options: ServiceOptions = { data: dataFolder(), clock: new ManualClock() };
  const first = createService(options);
  const code = first.consoleCode();
  const other = first.consoleCode();
  const headers = { host: "localhost" };
  const opened = await first.app.inject({ method: "POST", url: "/console/session", headers, payload: { code } });
  await first.close();
  const second = await withApp(options);
  expect((await signIn(second.url, { code: other })).status).toBe(401);
  expect((await signIn(second.url, { code })).status).toBe(401);
  const cookie = String(opened.headers["set-cookie"]).split(";", 1).join("");
  const kept = { cookie, "console-page-key": opened.json<{ page_key: string }>().page_key };
  const session = await browser(second.url, kept)("GET", "/console/session");
  expect([session.status, session.body.isOperator]).toEqual([200, true]);
});

test("a session of another data folder, of another token or role, or with another expiry is refused", async () => {
  const { url, service, clock } = await withApp({ clock: new ManualClock() });
  const elsewhere = await withApp({ clock: new ManualClock() });
  const { cookie, "console-page-key": key } = sessionOf(await signIn(url, { code: service.consoleCode() }));
  const foreign = cookieOf(await signIn(elsewhere.url, { code: elsewhere.service.consoleCode() }));
  const other = sessionOf(await signIn(url, { code: service.consoleCode() }));
  const [name = "", id, role, expiry, nonce, signature] = cookie.split(/[=.]/);
  const statusOf = async (one: string, pageKey = key) =>
    (await browser(url, { cookie: one, "console-page-key": pageKey })("GET", "/console/session")).status;
  const with_ = (...values: readonly (string | undefined)[]): string => `${name}=${values.join(".")}`;
  expect(foreign.split("=")[0]).not.toBe(name);
  const changed = (text = ""): string => text.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
  const refused = [
    foreign,
    `${name}=${foreign.split("=")[1]}`,
    with_("000000000000", role, expiry, nonce, signature),
    with_(id, "user", expiry, nonce, signature),
    with_(id, role, String(Number(expiry) + 1), nonce, signature),
    with_(id, role, expiry, changed(nonce), signature),
    with_(id, role, expiry, nonce, changed(signature)),
    with_(id, role, expiry, signature),
    with_(id, role, expiry, nonce),
    `${name}=`,
    "nothing",
  ];
  for (const one of refused) expect([one, await statusOf(one)]).toEqual([one, 401]);
  for (const wrong of ["", changed(key), signature, other["console-page-key"]])
    expect([wrong, await statusOf(cookie, wrong)]).toEqual([wrong, 401]);
  expect(await statusOf(other.cookie, other["console-page-key"])).toBe(200);
  expect(await statusOf(`theme=dark; ${foreign}; ${cookie}`)).toBe(200);
  // Pages at other ports can set cookies of the same name.
  expect(await statusOf(`${name}=; ${other.cookie}; ${name}=x.y.z; ${cookie}`)).toBe(200);
  clock.advance(12 * hour - 1);
  expect(await statusOf(cookie)).toBe(200);
  clock.advance(1);
  expect(await statusOf(cookie)).toBe(401);
});

test("a session ends with its token: revoked within a second, or expired", async () => {
  const started = await withApp({ clock: new ManualClock() });
  const { clock, service } = started;
  const { store } = service.context;
  const revoked = addToken(store, "revoked", { slug: "team", expiresAt: null }, clock.now());
  addToken(store, "expiring", { slug: "team", expiresAt: clock.now() + minute }, clock.now());
  const [first, second] = [await page(started, "revoked"), await page(started, "expiring")];
  const statuses = async () => [
    (await first("GET", "/console/session")).status,
    (await second("GET", "/v1/apps?org_slug=team")).status,
  ];
  expect(await statuses()).toEqual([200, 200]);
  revokeTokens(store, revoked);
  clock.advance(1000);
  expect(await statuses()).toEqual([401, 200]);
  clock.advance(minute);
  expect(await statuses()).toEqual([401, 401]);
});

test("a code does not help once the first token is revoked", async () => {
  const { url, clock, service, token } = await withApp({ clock: new ManualClock() });
  const { store } = service.context;
  const [id = ""] = store.all<{ hash: string }>("SELECT hash FROM tokens").map(({ hash }) => hash.slice(0, 12));
  revokeTokens(store, id);
  clock.advance(1000);
  const answer = await signIn(url, { code: service.consoleCode() });
  expect(answer).toMatchObject({ status: 401, body: { error: expect.stringContaining("restart the service") } });
  expect(answer.text).not.toContain(token);
});

test("the id of a token is no token", async () => {
  const started = await withApp();
  const visit = await page(started);
  const { owner } = (await visit("GET", "/console/session")).body;
  const id = owner.split("@")[0];
  expect((await send(started.url, "GET", "/v1/apps/web", { headers: { authorization: `Bearer ${id}` } })).status).toBe(
    401,
  );
});

test("with HTTPS the cookie is sent by HTTPS only", async () => {
  const { fullchain: cert, private_key: key } = makeCertificate({ hosts: ["localhost"] });
  const service = createService({ tls: { cert, key } });
  afterThisTest(() => service.close());
  await service.app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = service.app.server.address() as AddressInfo;
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = {
      port,
      method: "POST",
      path: "/console/session",
      ca: cert,
      servername: "localhost",
      checkServerIdentity: () => undefined,
    };
    request({ ...options, host: "127.0.0.1", allowPartialTrustChain: true }, resolve)
      .once("error", reject)
      .end(JSON.stringify({ code: service.consoleCode() }));
  });
  answer.resume();
  expect([answer.statusCode, answer.headers["set-cookie"]]).toEqual([
    200,
    [expect.stringMatching(/^__Host-machines_console_[0-9a-f]{8}=[\w.]+; Path=\/; .*; SameSite=Strict; Secure$/)],
  ]);
});

test("signing out removes the cookie", async () => {
  const started = await withApp();
  const visit = await page(started);
  const answer = await visit("DELETE", "/console/session");
  expect([answer.status, cookieOf(answer)]).toEqual([204, expect.stringMatching(/^machines_console_[0-9a-f]{8}=$/)]);
  expect(answer.headers.get("set-cookie")).toContain("Max-Age=0");
});

test.each([
  [undefined, 'invalid body, got nothing, must be {"code": "…"} or {"token": "…"}'],
  [["canary"], 'invalid body, got a list, must be {"code": "…"} or {"token": "…"}'],
  [{}, 'invalid body, got an object with other properties, must be {"code": "…"} or {"token": "…"}'],
  [{ code: "canary", token: "canary" }, "invalid body, got an object with other properties, must be"],
  [{ password: "canary" }, "invalid body, got an object with other properties, must be"],
  [{ code: ["canary"] }, "invalid code, got a list, must be a string"],
  [{ token: null }, "invalid token, got null, must be a string"],
])("a body without a code or a token is 400, and its values are not repeated: %j", async (body, message) => {
  const { url } = await withApp();
  const answer = await signIn(url, body);
  expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining(message)]);
  expect(answer.text).not.toContain("canary");
});

test("after 20 failures within a minute, an address has to wait", async () => {
  const { url, clock, service, token } = await withApp({ clock: new ManualClock() });
  for (let i = 0; i < 19; i++) {
    expect(await signIn(url, i % 2 ? { token: "wrong" } : { code: "wrong" })).toMatchObject({ status: 401 });
    clock.advance(1000);
  }
  expect((await signIn(url, { token })).status).toBe(200);
  expect((await signIn(url, { token: "wrong" })).body.error).toBe("the token is wrong, was revoked, or has expired");
  const refused = await signIn(url, { code: service.consoleCode() });
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "41"]);
  expect(refused.body.error).toBe("too many failed attempts to sign in; try again in 41 s");
  clock.advance(41_000);
  expect((await signIn(url, { code: service.consoleCode() })).status).toBe(200);
});

test("a change needs proof that a page of this service sends it", async () => {
  // With "any", the host name of a request is not checked.
  const started = await withApp({ console: "write", allowHosts: "any" });
  const { url, machines, machine } = started;
  const { id } = await machine();
  const session = sessionOf(await signIn(url, { code: started.service.consoleCode() }));
  const cordon = async (headers: Readonly<Record<string, string>>) =>
    (await send(url, "POST", `/v1${machines}/${id}/cordon`, { headers: { ...session, ...headers } })).status;
  expect(await cordon({})).toBe(403);
  expect(await cordon({ "sec-fetch-site": "none" })).toBe(403);
  expect(await cordon({ "sec-fetch-site": "same-site" })).toBe(403);
  expect(await cordon({ "sec-fetch-site": "cross-site" })).toBe(403);
  expect(await cordon({ origin: "https://evil.example" })).toBe(403);
  expect(await cordon({ origin: "http://127.0.0.1:1" })).toBe(403);
  expect(await cordon({ origin: "null" })).toBe(403);
  expect(await cordon({ origin: "https://evil.example", "sec-fetch-site": "same-origin" })).toBe(403);
  expect(await cordon({ origin: url })).toBe(200);
  expect(await cordon({ "sec-fetch-site": "same-origin" })).toBe(200);
  const read = (headers: Readonly<Record<string, string>>) =>
    send(url, "GET", "/v1/apps/web", { headers: { ...session, ...headers } });
  expect((await read({})).status).toBe(200);
  expect((await read({ "sec-fetch-site": "same-site" })).status).toBe(403);
  // Another page can neither replace the session nor end it.
  const foreign = { "sec-fetch-site": "cross-site", origin: "https://evil.example" };
  expect((await signIn(url, { code: started.service.consoleCode() }, foreign)).status).toBe(403);
  expect((await send(url, "DELETE", "/console/session", { headers: { ...session, ...foreign } })).status).toBe(403);
});

/** Every operation with a path of the App `web` and a Machine. */
const operations = (id: string) =>
  Object.values(contract)
    .flatMap((rows) => Object.values(rows as Readonly<Record<string, Operation>>))
    .map((row) => ({
      id: row.id,
      method: row.method,
      path: row.path
        .replace("{app_name}", "web")
        .replace("{machine_id}", id)
        .replace(/\{\w+\}/g, "other"),
    }));

test("a session only reads by default, though its token may write", async () => {
  const started = await withApp();
  const { id } = await started.machine();
  const visit = await page(started);
  expect((await visit("GET", "/console/session")).body).toMatchObject({ role: "own", canWrite: false });
  expect((await visit("GET", `/v1${started.machines}/${id}`)).body.id).toBe(id);
  const changes = operations(id).filter(
    ({ method, id: operation }) => method !== "GET" && operation !== "platform.placements",
  );
  expect(changes.length).toBeGreaterThan(50);
  const before = (await started.call("GET", started.machines)).text;
  for (const { method, path, id: operation } of changes) {
    const { status } = await visit(method, path, {});
    // A request is validated before the rights of its token are.
    expect([operation, status], path).toEqual([operation, expect.toSatisfy((one) => [400, 403, 422].includes(one))]);
  }
  expect((await visit("POST", `/v1${started.machines}/${id}/cordon`)).body).toEqual({
    error: "unauthorized: this needs the role operate, not read",
  });
  expect((await started.call("GET", started.machines)).text).toBe(before);
  expect((await started.call("POST", `${started.machines}/${id}/cordon`)).status).toBe(200);
});

test("with write, a session operates Machines, changes what is in clusters, and changes nothing else", async () => {
  const started = await withApp({ console: "write" });
  const { id } = await started.machine();
  const visit = await page(started);
  const at = `/v1${started.machines}/${id}`;
  const allowed = [
    ["POST", "/cordon"],
    ["POST", "/uncordon"],
    ["POST", "/suspend"],
    ["POST", "/start"],
    ["POST", "/exec", { command: ["true"] }],
    ["POST", "/signal", { signal: "SIGUSR1" }],
    ["POST", "/restart"],
    ["POST", "/stop"],
    ["DELETE", "?force=true"],
  ] as const;
  const operationOf = (method: string, path: string) =>
    operations(id).find((one) => one.method === method && one.path === `${at}${path.split("?")[0]}`)?.id;
  const used = new Set<string | undefined>(allowed.map(([method, path]) => operationOf(method, path)));
  expect(used.size).toBe(allowed.length);
  for (const { id: operation, method, path } of operations(id)) {
    if (method === "GET" || used.has(operation) || inClusters.has(operation) || operation === "platform.placements")
      continue;
    expect(await visit(method, path, {}), operation).toMatchObject({
      status: 403,
      body: { error: `the console may not use ${operation}; send that request with a token` },
    });
  }
  for (const [method, path, body] of allowed)
    expect([path, (await visit(method, at + path, body)).status]).toEqual([path, 200]);
  const made = await started.call("POST", "/postgres", { org_slug: "personal", region: "ams", plan: "basic" });
  const cluster = `/v1/postgres/${made.body.data.id}`;
  const backup = await visit("POST", `${cluster}/backups`, { type: "full" });
  for (const [method, path, body] of [
    ["POST", "/databases", { name: "more" }],
    ["DELETE", "/databases/more"],
    ["POST", "/users", { username: "app", role: "reader" }],
    ["PATCH", "/users/app", { role: "writer" }],
    ["POST", "/users/app/rotate_password", {}],
    ["DELETE", "/users/app"],
    ["POST", "/restore", { backup_id: backup.body.data.id }],
    ["POST", "/fork", {}],
  ] as const)
    expect([path, (await visit(method, cluster + path, body)).status < 300]).toEqual([path, true]);
});

/** What a session may change in clusters. */
const inClusters: ReadonlySet<string> = new Set(
  ["createDatabase", "deleteDatabase", "createUser", "updateUser", "deleteUser", "rotatePassword"]
    .concat(["createBackup", "restore", "fork"])
    .map((name) => `postgres.${name}`),
);

test("a read-only token stays read-only with write", async () => {
  const started = await withApp({ console: "write" });
  const { id } = await started.machine();
  addToken(started.service.context.store, "reader", { slug: "personal", role: "read", expiresAt: null }, 0);
  const visit = await page(started, "reader");
  expect((await visit("POST", `/v1${started.machines}/${id}/cordon`)).body).toEqual({
    error: "unauthorized: this needs the role operate, not read",
  });
});

test("a token in a request takes precedence over the cookie", async () => {
  const started = await withApp();
  const visit = await page(started);
  const authorization = `Bearer ${started.token}`;
  const app = { name: "made", org_slug: "personal" };
  expect((await visit("POST", "/v1/apps", app, { authorization })).status).toBe(201);
  expect((await visit("GET", "/v1/apps/web", undefined, { authorization: "Bearer wrong" })).status).toBe(401);
});

test("without a console there are no sessions", async () => {
  const options = { data: dataFolder() };
  const first = createService(options);
  const opened = await first.app.inject({
    ...{ method: "POST", url: "/console/session", headers: { host: "localhost" } },
    payload: { token: first.token },
  });
  expect(opened.statusCode).toBe(200);
  await first.close();
  const { url, service, token } = await withApp({ ...options, console: "off" });
  const headers = { cookie: String(opened.headers["set-cookie"]).split(";", 1).join("") };
  expect((await send(url, "GET", "/v1/apps/web", { headers })).status).toBe(401);
  expect((await signIn(url, { token }, { authorization: `Bearer ${token}` })).status).toBe(404);
  expect(() => service.consoleCode()).toThrow("the service has no console");
});

test("codes, tokens and cookies are in no log, no audit and no file", async () => {
  const lines: string[] = [];
  const data = dataFolder();
  const started = await withApp({ data, log: { write: (line) => void lines.push(line) } });
  const { url, service, token } = started;
  const code = service.consoleCode();
  const opened = [await signIn(url, { code }), await signIn(url, { token })];
  expect(opened.map(({ status }) => status)).toEqual([200, 200]);
  for (const credential of [{ code }, { code: [code] }, { [code]: code }, { token: `${token}x` }])
    expect((await signIn(url, credential)).status).toBeGreaterThanOrEqual(400);
  for (const answer of opened)
    await browser(url, sessionOf(answer))("POST", "/v1/apps", { name: "no", org_slug: "personal" });
  service.context.log.info({}, "the end");
  const text = [
    ...lines,
    JSON.stringify(service.audit.after(0)),
    readFileSync(join(data, "service.db"), "latin1"),
  ].join();
  expect(lines.join()).toContain("the end");
  expect(service.audit.after(0).map(({ path }) => path)).toContain("/console/session");
  const signatures = [code, ...opened.map(cookieOf)].map((secret) => secret.split(".").at(-1) ?? "");
  for (const secret of [token, ...signatures]) {
    expect(secret.length).toBeGreaterThan(30);
    expect(text).not.toContain(secret);
  }
});

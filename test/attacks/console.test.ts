// Attacks on the console: what a stolen cookie opens, what a session can read, and what one token can take from the others.
import { createServer, get, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { fieldOf, type Field } from "../../api/schema.ts";
import { startAdmin } from "../../service/index.ts";
import { addToken } from "../../service/store/tokens.ts";
import { callerWith, withApp, type Call } from "../service/client.ts";
import { cookieOf, page, send, sessionOf, signIn } from "../service/console/browser.ts";
import { afterThisTest } from "../support/leftovers.ts";

const sessionPath = "/console/session";

test("F81: the console's cookie, as a Machine at another port of this computer gets it, opens nothing", async () => {
  const started = await withApp({ console: "write" });
  const { url, service } = started;
  const { id } = await started.machine();
  // What is behind another port of 127.0.0.1 sees all that a browser adds by itself.
  const received: (string | undefined)[] = [];
  const machine = createServer(({ headers }, response) => response.end(received.push(headers.cookie) && ""));
  await new Promise<void>((resolve) => void machine.listen(0, "127.0.0.1", resolve));
  afterThisTest(() => void machine.close());
  const opened = await signIn(url, { code: service.consoleCode() });
  const { port } = machine.address() as AddressInfo;
  await send(`http://127.0.0.1:${port}`, "GET", "/", { headers: { cookie: cookieOf(opened) } });
  const [cookie = ""] = received;
  expect(cookie).toContain("machines_console_");
  const stolen = { cookie, origin: url, "sec-fetch-site": "same-origin" };
  const uses = [
    ["GET", sessionPath],
    ["GET", "/v1/apps/web"],
    ["GET", "/console/api/overview"],
    ["GET", "/console/api/code?type=App&id=web"],
    ["GET", "/local/apps/web/logs"],
    ["POST", `/v1/apps/web/machines/${id}/stop`],
    ["POST", `/v1/apps/web/machines/${id}/exec`, { command: ["env"] }],
    ["POST", "/console/api/faults", { status: 500 }],
  ] as const;
  const statuses = async (headers: Readonly<Record<string, string>>) =>
    Promise.all(uses.map(async ([method, path, body]) => (await send(url, method, path, { body, headers })).status));
  expect(await statuses(stolen)).toEqual(uses.map(() => 401));
  expect((await open(url, stolen)).status).toBe(401);
  // Nothing in the cookie is the key, and the key of another session does not fit.
  const other = sessionOf(await signIn(url, { token: started.token }))["console-page-key"];
  for (const key of [other, "", ...cookie.split(/[=.]/)])
    expect(await statuses({ ...stolen, "console-page-key": key })).toEqual(uses.map(() => 401));
  expect((await send(url, "GET", sessionPath, { headers: sessionOf(opened) })).status).toBe(200);
});

/** Names of the secret fields of an answer. */
function secretsIn({ meta, shape }: Field, depth = 0): readonly string[] {
  if (depth > 8) return [];
  if (shape.kind === "array") return secretsIn(shape.item, depth + 1);
  if (shape.kind === "record") return secretsIn(shape.value, depth + 1);
  if (shape.kind !== "object") return [];
  const below = Object.entries(shape.fields).flatMap(([name, field]) => [
    ...(field.meta.secret ? [name] : []),
    ...secretsIn(field, depth + 1),
  ]);
  return meta.secret ? [...below, "itself"] : below;
}

const reads = Object.values(contract)
  .flatMap((rows) => Object.values(rows as Readonly<Record<string, Operation>>))
  .filter(({ method }) => method === "GET");

/** A service with a secret and a cluster, and a session of the operator that may operate Machines. */
async function withSecrets() {
  const started = await withApp({ console: "write" });
  const { call } = started;
  await call("POST", "/apps/web/secrets/PASSWORD", { value: "hush-secret" });
  const makeCluster = { name: "db", org_slug: "personal", region: "ams", plan: "basic" };
  const cluster: string = (await call("POST", "/postgres", makeCluster)).body.data.id;
  const user = `/postgres/${cluster}/users/app`;
  await call("POST", `/postgres/${cluster}/users`, { username: "app", role: "reader" });
  const { password } = (await call("GET", `${user}/credentials`)).body.data as { readonly password: string };
  return { ...started, cluster, user, password, visit: await page(started) };
}

test("F82: a session reads no secret and no credentials, in any spelling of the request", async () => {
  const { visit, cluster, user, password, machine, service } = await withSecrets();
  const { id } = await machine();
  const tries = [
    ...["true", "1", "", "true&show_secrets=false", "false&show_secrets=true"].flatMap((shown) => [
      `/v1/apps/web/secrets?show_secrets=${shown}`,
      `/v1/apps/web/secrets/PASSWORD?show_secrets=${shown}`,
    ]),
    "/v1/apps/web/secrets?show%5Fsecrets=true",
    "/v1/apps/web/secrets?show_secret%73=true",
    `/v1${user}/credentials`,
    `/v1${user}/credentials?`,
  ];
  for (const path of tries) {
    const { status, text } = await visit("GET", path);
    expect([path, status]).toEqual([path, 403]);
    expect(text).not.toMatch(/hush-secret/);
    expect(text).not.toContain(password);
  }
  // Digests stay visible, and so do the views.
  for (const path of [
    ...["/v1/apps/web/secrets", "/v1/apps/web/secrets?show_secrets=false", "/v1/apps/web/secrets/PASSWORD"],
    ...["/console/api/apps/web", `/console/api/clusters/${cluster}`, `/console/api/apps/web/machines/${id}`],
  ]) {
    const { status, text } = await visit("GET", path);
    expect([path, status]).toEqual([path, 200]);
    expect(text).not.toContain("hush-secret");
    expect(text).not.toContain(password);
  }
  expect(service.audit.after(0).filter(({ operation }) => operation?.startsWith("console."))).toEqual([]);
});

test("F82: no other operation that reads can answer a secret", () => {
  const found = reads.flatMap(({ id, answer }) => {
    const names = answer ? [...new Set(secretsIn(fieldOf(answer)))] : [];
    return names.length > 0 ? [[id, ...names]] : [];
  });
  expect(found).toEqual([
    // A nonce is answered only to those who send it.
    ["machines.list", "nonce"],
    ["machines.get", "nonce"],
    ["machines.getLease", "nonce"],
    ["secrets.list", "value"],
    ["secrets.get", "value"],
    ["postgres.credentials", "password"],
  ]);
});

test("F83: revealing one value is an act with its own entry in the audit, and takes the rights of a change", async () => {
  const started = await withSecrets();
  const { visit, cluster, password, service, url } = started;
  const secret = "/console/api/apps/web/secrets/PASSWORD/reveal";
  const credentials = `/console/api/clusters/${cluster}/users/app/reveal`;
  const answers = [await visit("POST", secret), await visit("POST", credentials)];
  expect(answers.map(({ status, headers, body }) => [status, headers.get("cache-control"), body])).toEqual([
    [200, "no-store", { value: "hush-secret" }],
    [200, "no-store", { value: password }],
  ]);
  const entries = () =>
    service.audit
      .after(0)
      .filter(({ operation }) => operation?.startsWith("console.reveal"))
      .map(({ operation, path, status, org, owner }) => [operation, path, status, org, owner]);
  const owner = expect.stringMatching(/@tokens\.personal$/);
  const seen = [
    ["console.revealSecret", secret, 200, "personal", owner],
    ["console.revealPassword", credentials, 200, "personal", owner],
  ];
  expect(entries()).toEqual(seen);
  expect(JSON.stringify(service.audit.after(0))).not.toContain("hush-secret");
  // A link or a picture cannot do it: what they ask for is no POST.
  expect((await visit("GET", secret)).status).toBe(404);

  const { store } = service.context;
  const app = store.get<{ id: string }>("SELECT id FROM apps WHERE name = 'web'")?.id ?? "";
  addToken(store, "reader", { slug: "personal", role: "read", expiresAt: null }, 0);
  addToken(store, "of-web", { slug: "personal", apps: [app], expiresAt: null }, 0);
  addToken(store, "stranger", { slug: "strangers", expiresAt: null }, 0);
  for (const token of ["reader", "of-web", "stranger"]) {
    const other = await page(started, token);
    const refused = [await other("POST", secret), await other("POST", credentials)];
    expect([token, ...refused.map(({ status }) => status >= 403 && status <= 404)]).toEqual([token, true, true]);
    expect(refused.map(({ text }) => text).join()).not.toMatch(/hush-secret/);
  }
  expect(entries()).toHaveLength(8);
  const foreign = { "sec-fetch-site": "same-site", origin: "http://127.0.0.1:1" };
  expect((await visit("POST", secret, undefined, foreign)).status).toBe(403);
  expect((await send(url, "POST", secret)).status).toBe(401);
});

test("F83: the console only reads by default, and reveals nothing", async () => {
  const started = await withApp();
  await started.call("POST", "/apps/web/secrets/PASSWORD", { value: "hush-secret" });
  const visit = await page(started);
  const { status, body } = await visit("POST", "/console/api/apps/web/secrets/PASSWORD/reveal");
  expect([status, body.error]).toEqual([403, expect.stringContaining("--console write")]);
});

const codeOf = (url: string, token: string, app: string) =>
  send(url, "GET", `/console/api/code?type=App&id=${app}&whole=true`, {
    headers: { authorization: `Bearer ${token}` },
  });

/** Creates an App with Machines whose configurations have that many characters. */
async function fillApp(call: Call, org: string, app: string, machines: number, characters: number): Promise<void> {
  const made = [await call("POST", "/apps", { name: app, org_slug: org })];
  const env = Object.fromEntries(
    Array.from({ length: Math.ceil(characters / 50_000) }, (_, i) => [
      `A${i}`,
      "x".repeat(Math.min(characters, 50_000)),
    ]),
  );
  for (let i = 0; i < machines; i++)
    made.push(
      await call("POST", `/apps/${app}/machines`, {
        name: `m-${i}`,
        config: { image: "nginx", env: { ...env, N: `${i}` } },
      }),
    );
  expect(new Set(made.map(({ status }) => status < 300))).toEqual(new Set([true]));
}

test("F84: equal requests for a large App as code share one answer, and more than 20 others of its organization do not wait", async () => {
  const { url, service, requests, call } = await withApp();
  const { store } = service.context;
  addToken(store, "reader", { slug: "personal", role: "read", expiresAt: null }, 0);
  await fillApp(call, "personal", "shop", 20, 1000);
  const lists = () => requests.filter(({ operation }) => operation === "machines.list").length;
  requests.length = 0;
  expect((await codeOf(url, "reader", "shop")).status).toBe(200);
  const ofOne = lists();
  requests.length = 0;
  const equal = await Promise.all(Array.from({ length: 50 }, () => codeOf(url, "reader", "shop")));
  expect(new Set(equal.map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(equal.map(({ text }) => text)).size).toBe(1);
  expect(equal[0]?.body).toMatchObject({
    typescript: expect.stringContaining("machines.Machine("),
    curl: expect.any(String),
  });
  // Some may come after the first answer; each read for itself before.
  expect(lists()).toBeLessThan(10 * ofOne);

  const stranger = callerWith({ url, service }, "stranger", { slug: "strangers" });
  await fillApp(stranger, "strangers", "theirs", 1, 10);
  const names = Array.from({ length: 40 }, (_, i) => `app-${i}`);
  for (const name of names) await call("POST", "/apps", { name, org_slug: "personal" });
  const ended: string[] = [];
  const greedy = names.map(async (name) => {
    const { status } = await codeOf(url, "reader", name);
    ended.push(String(status));
    return status;
  });
  // Those beyond the bound are refused at once; then the others wait for their turns.
  await expect.poll(() => ended.filter((status) => status === "429").length).toBeGreaterThan(0);
  const other = codeOf(url, "stranger", "theirs").then(({ status }) => ended.push(`stranger ${status}`));
  const statuses = await Promise.all(greedy);
  await other;
  expect(statuses.filter((status) => status === 429)).toHaveLength(19);
  expect(statuses.filter((status) => status === 200)).toHaveLength(21);
  // The other organization has the next turn, not the last one.
  expect(ended.indexOf("stranger 200")).toBeLessThan(ended.length - 5);
});

test("F84: an App with too many bytes is refused before it is read whole, and the service continues", async () => {
  const { url, token, requests, call } = await withApp({ strict: false });
  await fillApp(call, "personal", "huge", 9, 1_000_000);
  await fillApp(call, "personal", "small", 1, 10);
  requests.length = 0;
  const { status, body } = await codeOf(url, token, "huge");
  expect([status, body.error]).toEqual([
    413,
    "App huge is too large to be copied here: it has more than 8 MiB. Use the command npx pulumi-machines import",
  ]);
  expect((await codeOf(url, token, "small")).status).toBe(200);
});

/** Opens a stream; it stays open until the test is over. */
async function open(url: string, headers: Readonly<Record<string, string>>) {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${url}/console/events?topics=org`, { headers, agent: false }, resolve).once("error", reject);
  });
  const opened = { status: response.statusCode ?? 0, isOpen: response.statusCode === 200 };
  response.on("error", () => {}).once("close", () => (opened.isOpen = false));
  response.resume();
  afterThisTest(() => void response.destroy());
  return opened;
}

test("F85: one token, and one organization with many, leave event streams for the others and for the operator", async () => {
  const { url, service } = await withApp();
  const { store } = service.context;
  for (let i = 0; i < 8; i++) addToken(store, `greedy-${i}`, { slug: `greedy-${i >> 2}`, expiresAt: null }, 0);
  addToken(store, "modest", { slug: "modest", expiresAt: null }, 0);
  const openWith = (token: string) => open(url, { authorization: `Bearer ${token}` });
  const openMany = async (token: string, n: number) => Promise.all(Array.from({ length: n }, () => openWith(token)));
  const statusesOf = (all: readonly { readonly status: number }[]) => {
    const counts: Record<number, number> = {};
    for (const { status } of all) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  };
  const first = await openMany("greedy-0", 200);
  expect(statusesOf(first)).toEqual({ 200: 50, 429: 150 });
  const rest = [];
  for (let i = 1; i < 8; i++) rest.push(...(await openMany(`greedy-${i}`, 60)));
  // Two organizations have taken every place that is nobody's.
  const greedy = [...first, ...rest];
  await expect.poll(() => greedy.filter(({ isOpen }) => isOpen).length).toBe(180);
  const modest = await openMany("modest", 10);
  expect(statusesOf(modest)).toEqual({ 200: 10 });
  await expect.poll(() => greedy.filter(({ isOpen }) => isOpen).length).toBe(170);
  expect((await openWith("greedy-7")).status).toBe(503);
  expect(modest.every(({ isOpen }) => isOpen)).toBe(true);
  const operator = sessionOf(await signIn(url, { code: service.consoleCode() }));
  const own = await Promise.all(Array.from({ length: 20 }, () => open(url, operator)));
  expect(statusesOf(own)).toEqual({ 200: 20 });
  expect([...greedy, ...modest].filter(({ isOpen }) => isOpen).length).toBe(180);
});

test("F86: each fault that the console switches on or off is in the audit, with who did it", async () => {
  const started = await withApp();
  const { service } = started;
  const admin = await startAdmin({ service, listen: { host: "127.0.0.1", port: 0 } });
  afterThisTest(() => admin.close());
  const visit = await page(started);
  const from = service.audit.last;
  const { id } = (await visit("POST", "/console/api/faults", { operation: "apps.get", status: 503 })).body;
  await visit("DELETE", `/console/api/faults/${id}`);
  await visit("DELETE", "/console/api/faults/none");
  addToken(service.context.store, "user", { slug: "personal", expiresAt: null }, 0);
  const user = await page(started, "user");
  await user("POST", "/console/api/faults", { status: 500 });
  const about = `${id} {"operation":"apps.get","status":503}`;
  const by = { org: "personal", owner: expect.stringMatching(/@tokens\.personal$/), faults: [] };
  expect(service.audit.after(from).filter(({ path }) => path.includes("/faults"))).toMatchObject([
    { operation: "console.addFault", method: "POST", path: "/console/api/faults", status: 201, about, ...by },
    {
      operation: "console.removeFault",
      method: "DELETE",
      path: `/console/api/faults/${id}`,
      status: 204,
      about,
      ...by,
    },
    { operation: "console.removeFault", path: "/console/api/faults/none", status: 404, about: null, ...by },
    { operation: "console.addFault", status: 403, about: null, ...by },
  ]);
  // What the view reads is in no log.
  await visit("GET", "/console/api/faults");
  expect(service.audit.after(from).some(({ method, path }) => method === "GET" && path.includes("faults"))).toBe(false);
});

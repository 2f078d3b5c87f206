// The history: requests that changed something, what happened to Machines, and rollouts.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import type { Stored } from "../../service/history/entry.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { checked, exited, findMachine, record } from "../../service/lifecycle/machines.ts";
import { addToken } from "../../service/store/tokens.ts";
import { caller, withApp } from "./client.ts";
import { command } from "./command.ts";
import { startService } from "../support/startService.ts";

type Running = Awaited<ReturnType<typeof withApp>>;

const urnOf = (type: string, name: string) => `urn:pulumi:dev::shop::machines:index:${type}::${name}`;
const by = (update: string, type = "Machine", name = "web") => ({
  "pulumi-update": update,
  "pulumi-urn": encodeURIComponent(urnOf(type, name)),
});

/** Asks a route outside of the interface. */
async function local({ url, token }: { url: string; token: string }, path: string, init: RequestInit = {}) {
  const headers = { authorization: `Bearer ${token}`, ...(init.headers as Record<string, string>) };
  const response = await fetch(`${url}/local/${path}`, { ...init, headers });
  const text = await response.text();
  return { status: response.status, text, headers: response.headers };
}

const entriesOf = async (service: { url: string; token: string }, query = ""): Promise<Stored[]> =>
  (await local(service, `history${query}`)).text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Stored);

const rolloutsOf = async (service: { url: string; token: string }, query = "") =>
  JSON.parse((await local(service, `rollouts${query}`)).text).rollouts;

const report = (service: Running, update: string, body: object) =>
  local(service, "apps/web/rollouts", {
    method: "PUT",
    headers: { "content-type": "application/json", ...by(update, "Fleet") },
    body: JSON.stringify({ fleet: "web", phase: "rolling out", ...body }),
  });

const fleetMachine = (name: string) => ({
  name,
  config: { image: "nginx:1", metadata: { "pulumi-fleet": "web", "pulumi-fleet-phase": "serving" } },
});

test("it says who read the values of secrets, and not the values", async () => {
  const app = await withApp();
  const { call } = app;
  await call("POST", "/apps/web/secrets", { values: { KEY: "hunter2" } });
  await call("GET", "/apps/web/secrets");
  await call("GET", "/apps/web/secrets?show_secrets=true");
  await call("GET", "/apps/web/secrets/KEY?show_secrets=true");
  const cluster = await call("POST", "/postgres", { org_slug: "personal", region: "ams", plan: "basic", name: "db" });
  await call("GET", `/postgres/${cluster.body.data.id}`);
  await call("GET", `/postgres/${cluster.body.data.id}/users/schema_admin/credentials`);
  const entries = await entriesOf(app);
  const read = entries.filter((entry) => entry.kind === "request" && entry.method === "GET");
  expect(read).toMatchObject([
    { operation: "secrets.list", path: "/v1/apps/web/secrets", about: "values" },
    { operation: "secrets.get", path: "/v1/apps/web/secrets/KEY", about: "values" },
    { operation: "postgres.credentials" },
  ]);
  expect(JSON.stringify(entries)).not.toContain("hunter2");
});

test("it has requests that changed something and events, with who asked, and no secret", async () => {
  const app = await withApp();
  const { call, machines } = app;
  await call("GET", machines);
  const made = await call(
    "POST",
    machines,
    { name: "a", config: { image: "nginx:1", env: { KEY: "hunter2" } } },
    by("u1"),
  );
  await call("POST", "/apps/web/secrets/PASSWORD", { value: "hunter2" });
  await call("POST", `${machines}/${made.body.id}/lease`, {});
  await call("POST", `${machines}/${made.body.id}`, { config: { nonsense: true } }, by("u1"));
  const entries = await entriesOf(app);
  expect(entries.map((one) => (one.kind === "request" ? `${one.operation} ${one.status}` : one.kind))).toEqual(
    expect.arrayContaining([
      "apps.create 201",
      "machines.create 200",
      "secrets.set 201",
      "machines.update 400",
      "event",
    ]),
  );
  const operations = entries.flatMap((one) => (one.kind === "request" ? [one.operation] : []));
  expect(operations).not.toContain("machines.list");
  expect(operations).not.toContain("machines.acquireLease");
  const created = entries.find((one) => one.kind === "request" && one.operation === "machines.create");
  expect(created).toMatchObject({
    org: "personal",
    app: "web",
    urn: urnOf("Machine", "web"),
    update: "u1",
    token: expect.stringMatching(/^[0-9a-f]{12}$/),
  });
  expect(entries.find((one) => one.kind === "event" && one.type === "launch")).toMatchObject({
    app: "web",
    machine: made.body.id,
    name: "a",
    image: "nginx:1",
    by: { update: "u1" },
  });
  expect(JSON.stringify(entries)).not.toContain("hunter2");
  expect(entries.map(({ seq }) => seq)).toEqual([...entries.keys()].map((i) => i + 1));
});

test("a change that was rolled back is no event", async () => {
  const app = await withApp();
  const { service } = app;
  const { context } = service;
  const { id } = await app.machine();
  const before = (await entriesOf(app)).length;
  const failing = (): void => {
    void context.store.write(() => {
      const machine = findMachine(context, id);
      if (machine) record(context, machine, { type: "update", source: "user" }, false);
      throw new Error("no");
    });
  };
  expect(failing).toThrow("no");
  await context.store.unsettled;
  expect(await entriesOf(app)).toHaveLength(before);
});

test("the token's name says who it was", async () => {
  const { service, url } = await withApp();
  service.context.store.writeAtOnce(() => {
    addToken(service.context.store, "secret-token", { slug: "personal", name: "ci", expiresAt: null }, 0);
  });
  await caller(url, "secret-token")("POST", "/apps", { name: "shop", org_slug: "personal" });
  const entries = await entriesOf({ url, token: "secret-token" });
  expect(entries.find((one) => one.app === "shop")).toMatchObject({ tokenName: "ci" });
  expect(JSON.stringify(entries)).not.toContain("secret-token");
});

test("an organization, and a token of one App, see only their own", async () => {
  const clock = new ManualClock();
  const app = await withApp({ clock });
  const { service, url, call } = app;
  await app.machine();
  await call("POST", "/apps", { name: "other", org_slug: "personal" });
  const { id } = service.context.store.get<{ id: string }>("SELECT id FROM apps WHERE name = 'other'") ?? { id: "" };
  service.context.store.writeAtOnce(() => {
    addToken(service.context.store, "foreign", { slug: "acme", expiresAt: null }, 0);
    addToken(service.context.store, "of-app", { slug: "personal", apps: [id], expiresAt: null }, 0);
    addToken(service.context.store, "reader", { slug: "personal", role: "read", expiresAt: null }, 0);
  });
  expect(await entriesOf({ url, token: "foreign" })).toEqual([]);
  const own = await entriesOf({ url, token: "of-app" });
  expect(own.map((one) => one.app)).toEqual(["other"]);
  expect((await local({ url, token: "of-app" }, "history?app=web")).status).toBe(404);
  await report(app, "u1", {});
  expect(await rolloutsOf({ url, token: "foreign" })).toEqual([]);
  expect(await rolloutsOf({ url, token: "of-app" })).toEqual([]);
  const [{ id: rollout }] = await rolloutsOf(app);
  expect((await local({ url, token: "foreign" }, `rollouts/${rollout}`)).status).toBe(404);
  expect((await local({ url, token: "of-app" }, `rollouts/${rollout}`)).status).toBe(404);
  expect((await report({ ...app, token: "reader" }, "u1", {})).status).toBe(403);
  expect((await report({ ...app, token: "foreign" }, "u1", {})).status).toBe(403);
  expect((await local({ url, token: "wrong" }, "history")).status).toBe(401);
  // What an App of the same name had before is not its own.
  clock.advance(1000);
  await call("DELETE", "/apps/web");
  clock.advance(1000);
  await expect.poll(async () => (await call("POST", "/apps", { name: "web", org_slug: "personal" })).status).toBe(201);
  const again = service.context.store.get<{ id: string }>("SELECT id FROM apps WHERE name = 'web'") ?? { id: "" };
  service.context.store.writeAtOnce(() => {
    addToken(service.context.store, "of-web", { slug: "personal", apps: [again.id], expiresAt: null }, 0);
  });
  expect(
    new Set((await entriesOf({ url, token: "of-web" })).map((one) => one.kind === "request" && one.operation)),
  ).toEqual(new Set(["apps.create"]));
  expect(await rolloutsOf({ url, token: "of-web" })).toEqual([]);
  expect((await local({ url, token: "of-web" }, `rollouts/${rollout}`)).status).toBe(404);
});

test("an App of another organization with the name and the id of a deleted one's rollout changes nothing of it", async () => {
  const app = await withApp();
  const { service, url, call, machines } = app;
  service.context.store.writeAtOnce(() => {
    addToken(service.context.store, "foreign", { slug: "acme", expiresAt: null }, 0);
  });
  await call("POST", machines, fleetMachine("web-1"), by("u1", "Fleet"));
  await report(app, "u1", { result: "succeeded" });
  const before = await rolloutsOf(app);
  expect((await call("DELETE", "/apps/web")).status).toBe(202);
  const foreign = caller(url, "foreign");
  await expect.poll(async () => (await foreign("POST", "/apps", { name: "web", org_slug: "acme" })).status).toBe(201);
  await foreign("POST", machines, fleetMachine("web-1"), by("u1", "Fleet"));
  expect((await report({ ...app, token: "foreign" }, "u1", { result: "failed", reason: "no" })).status).toBe(204);
  expect(await rolloutsOf(app)).toMatchObject([{ id: before[0].id, result: "succeeded", reason: null }]);
  expect(await rolloutsOf({ url, token: "foreign" })).toMatchObject([{ result: "failed", machines: { healthy: 1 } }]);
});

test("a rollout that its client reports has its beginning, its Machines, its end and its reason", async () => {
  const clock = new ManualClock();
  const app = await withApp({ clock });
  const { call, machines } = app;
  const first = await call("POST", machines, fleetMachine("web-1"), by("u0", "Fleet"));
  await call("POST", machines, fleetMachine("web-2"), by("u0", "Fleet"));
  clock.advance(1000);
  const answer = await call("GET", machines, undefined, by("u1", "Fleet"));
  expect(answer.headers.get("machines-rollouts")).toBe("/local/rollouts");
  const began = { strategy: "rolling", from: "nginx:1", to: "nginx:2" };
  expect((await report(app, "u1", began)).status).toBe(204);
  clock.advance(200);
  const config = { ...fleetMachine("web-1").config, image: "nginx:2" };
  await call("POST", `${machines}/${first.body.id}`, { config }, by("u1", "Fleet"));
  clock.advance(1000);
  const [running, before] = await rolloutsOf(app);
  expect(before).toMatchObject({ update: "u0", fleet: "web", to: "nginx:1", strategy: null });
  expect(running).toMatchObject({
    app: "web",
    fleet: "web",
    ...began,
    phase: "rolling out",
    ended: null,
    result: null,
  });
  expect(running.machines).toEqual({ waiting: 1, healthy: 1 });
  await report(app, "u1", { ...began, phase: "rolling back" });
  await call("POST", `${machines}/${first.body.id}`, { config: fleetMachine("web-1").config }, by("u1", "Fleet"));
  clock.advance(500);
  await report(app, "u1", { ...began, phase: "rolling back", result: "rolled back", reason: "it failed." });
  const shown = JSON.parse((await local(app, `rollouts/${running.id}`)).text);
  expect(shown).toMatchObject({ result: "rolled back", reason: "it failed.", ended: expect.any(Number), more: 0 });
  expect(shown.bars).toMatchObject([
    { name: "web-1", now: "rolled back" },
    { name: "web-2", now: "waiting" },
  ]);
  expect(shown.bars[0].segments[0]).toMatchObject({ doing: "waiting", from: running.began });
  expect(shown.requests.map((one: { operation: string }) => one.operation)).toEqual([
    "machines.update",
    "machines.update",
  ]);
});

test("a rollout whose client is heard of no more is interrupted, and another update ends it too", async () => {
  const clock = new ManualClock();
  const app = await withApp({ clock });
  await report(app, "u1", {});
  clock.advance(59_000);
  await app.call("GET", app.machines, undefined, by("u1", "Fleet"));
  clock.advance(59_000);
  expect(await rolloutsOf(app)).toMatchObject([{ result: null }]);
  clock.advance(2000);
  expect(await rolloutsOf(app)).toMatchObject([{ result: "interrupted", reason: expect.stringMatching(/continues/) }]);
  await report(app, "u2", {});
  await report(app, "u3", {});
  expect(await rolloutsOf(app)).toMatchObject([
    { update: "u3", result: null },
    { update: "u2", result: "interrupted" },
    { update: "u1", result: "interrupted" },
  ]);
});

test("plain Machines that one update changes are one rollout, which ends when they are at rest", async () => {
  const clock = new ManualClock();
  const app = await withApp({ clock });
  const { call, machines } = app;
  const a = await call("POST", machines, { name: "a", config: { image: "nginx:1" } }, by("u0"));
  clock.advance(60_000);
  await call("POST", `${machines}/${a.body.id}`, { config: { image: "nginx:2" } }, by("u1", "Machine", "a"));
  await call("POST", machines, { name: "b", config: { image: "nginx:2" } }, by("u1", "Machine", "b"));
  expect(await rolloutsOf(app)).toMatchObject([
    { fleet: null, update: "u1", from: "nginx:1", to: "nginx:2", result: null },
    { update: "u0", from: null, to: "nginx:1", result: "succeeded" },
  ]);
  clock.advance(11_000);
  expect(await rolloutsOf(app, "?limit=1")).toMatchObject([{ result: "succeeded", machines: { healthy: 2 } }]);
  const { context } = app.service;
  await call("POST", `${machines}/${a.body.id}`, { config: { image: "nginx:3", restart: { policy: "no" } } }, by("u2"));
  const { version } = (await call("GET", `${machines}/${a.body.id}`)).body;
  const exit = { code: 3, signal: 0, oom: false, requested: false, lines: ["cannot read config"] };
  await context.store.write(() => exited(context, { id: a.body.id, version }, exit));
  clock.advance(11_000);
  expect(await rolloutsOf(app, "?limit=1")).toMatchObject([
    { result: "failed", reason: "a: exited with code 3; last words: cannot read config" },
  ]);
});

test("a Machine that waits for its turn still waits when its checks pass, or when it gets no traffic any more", async () => {
  const clock = new ManualClock();
  const app = await withApp({ clock });
  const { body } = await app.call("POST", app.machines, fleetMachine("web-1"), by("u0", "Fleet"));
  clock.advance(60_000);
  await report(app, "u1", {});
  clock.advance(1000);
  await app.call("POST", `${app.machines}/${body.id}/cordon`, undefined, by("u1", "Fleet"));
  clock.advance(1000);
  const doings = async () => {
    const [{ id, machines }] = await rolloutsOf(app, "?limit=1");
    const { bars } = JSON.parse((await local(app, `rollouts/${id}`)).text);
    return [machines, bars[0].segments.map(({ doing }: { doing: string }) => doing)];
  };
  expect(await doings()).toEqual([{ waiting: 1 }, ["waiting"]]);
  await app.call("POST", `${app.machines}/${body.id}/stop`, undefined, by("u1", "Fleet"));
  clock.advance(10_000);
  expect(await doings()).toEqual([{ stopped: 1 }, ["waiting", "stopped"]]);
});

const withCheck = (image: string) => {
  const { name, config } = fleetMachine("web-1");
  const env = { MACHINES_SIMULATE: "checks:critical" };
  return { name, config: { ...config, image, env, checks: { alive: { type: "http", port: 8080, path: "/" } } } };
};

test("a check that is critical until a Machine is ready is no failure, unless the rollout ends with it", async () => {
  const clock = new ManualClock();
  const app = await withApp({ clock });
  const { call, machines, service } = app;
  const { body } = await call("POST", machines, withCheck("nginx:1"), by("u0", "Fleet"));
  clock.advance(60_000);
  const { context } = service;
  const pass = async () => {
    const { instance_id: version } = (await call("GET", `${machines}/${body.id}`)).body;
    await context.store.write(() => checked(context, { id: body.id, version }, "passing", {}));
    clock.advance(1000);
  };
  const shown = async () => {
    const [{ id, machines: counted }] = await rolloutsOf(app, "?limit=1");
    const { bars } = JSON.parse((await local(app, `rollouts/${id}`)).text);
    return [Object.keys(counted).join(), bars[0].segments.map(({ doing }: { doing: string }) => doing).join()];
  };
  await pass();
  for (const [update, end] of [
    ["u1", "succeeded"],
    ["u2", "failed"],
  ] as const) {
    await report(app, update, {});
    clock.advance(1000);
    await call("POST", `${machines}/${body.id}`, withCheck(`nginx:${update}`), by(update, "Fleet"));
    clock.advance(1000);
    expect(await shown()).toEqual(["checks", expect.stringMatching(/^waiting,.*checks$/)]);
    if (end === "succeeded") await pass();
    await report(app, update, { result: end });
    const last = end === "succeeded" ? "healthy" : "failed";
    expect(await shown()).toEqual([last, expect.stringMatching(new RegExp(`^waiting,(?:checks,)?${last}$`))]);
  }
});

test("how a program ended is still the reason when a check of its next start is critical", async () => {
  const clock = new ManualClock();
  const app = await withApp({ clock });
  const { call, machines, service } = app;
  const { context } = service;
  const { body } = await call("POST", machines, withCheck("nginx:1"), by("u0", "Fleet"));
  clock.advance(60_000);
  await report(app, "u1", {});
  await call("POST", `${machines}/${body.id}`, withCheck("nginx:2"), by("u1", "Fleet"));
  clock.advance(1000);
  const { instance_id: version } = (await call("GET", `${machines}/${body.id}`)).body;
  const exit = { code: 1, signal: 0, oom: false, requested: false, lines: ["no database"] };
  await context.store.write(() => exited(context, { id: body.id, version }, exit));
  // Its restart policy starts it again.
  clock.advance(5000);
  await context.store.write(() => checked(context, { id: body.id, version }, "critical", {}));
  clock.advance(1000);
  await report(app, "u1", { result: "failed" });
  const [{ id, machines: counted }] = await rolloutsOf(app, "?limit=1");
  const { bars } = JSON.parse((await local(app, `rollouts/${id}`)).text);
  expect([counted, bars[0].now, bars[0].reason]).toEqual([
    { failed: 1 },
    "failed",
    "Exited with code 1; last words: no database",
  ]);
});

test("requests without an id of an update are no rollout", async () => {
  const app = await withApp();
  await app.machine();
  expect(await rolloutsOf(app)).toEqual([]);
  const bad = await local(app, "apps/web/rollouts", {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ fleet: "web", phase: "rolling out" }),
  });
  expect(bad.status).toBe(400);
  expect(bad.text).toContain("pulumi-update");
  const unknown = await report(app, "u1", { nonsense: 1 });
  expect(unknown.status).toBe(400);
});

test("it survives a restart of the service, and begins anew if its file is damaged", async () => {
  const data = mkdtempSync(join(tmpdir(), "machines-history-"));
  afterThisTest(() => rmSync(data, { recursive: true, force: true }));
  const begin = async () => startService({ data });
  const one = await begin();
  await caller(one.url, one.token)("POST", "/apps", { name: "web", org_slug: "personal" });
  const before = await entriesOf(one);
  expect(before).toHaveLength(1);
  await one.close();
  const two = await begin();
  expect(await entriesOf(two)).toEqual(before);
  await two.close();
  writeFileSync(join(data, "history.db"), "not a database, but long enough to be read as one".repeat(100));
  const three = await begin();
  afterThisTest(() => three.close());
  expect(await entriesOf(three)).toEqual([]);
  await caller(three.url, three.token)("POST", "/apps", { name: "shop", org_slug: "personal" });
  expect(await entriesOf(three)).toHaveLength(1);
  await caller(three.url, three.token)("POST", "/apps", { name: "mail", org_slug: "personal" });
  expect((await entriesOf(three)).map(({ seq, app }) => [seq, app])).toEqual([
    [1, "shop"],
    [2, "mail"],
  ]);
  expect(existsSync(join(data, "history.db"))).toBe(true);
});

test("the command prints it, whether the service runs or not", async () => {
  const data = mkdtempSync(join(tmpdir(), "machines-history-"));
  afterThisTest(() => rmSync(data, { recursive: true, force: true }));
  const lines = async (...more: string[]) => {
    const { code, out, err } = await command(["history", "--data", data, ...more]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    return out
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Stored);
  };
  const { out } = await command(["start", "--detach", "--json", "--data", data, "--listen", "127.0.0.1:0"]);
  afterThisTest(async () => void (await command(["stop", "--data", data])));
  const { url } = JSON.parse(out) as { url: string };
  const token = (await command(["token", "--data", data])).out.trim();
  for (const name of ["web", "shop"]) await caller(url, token)("POST", "/apps", { name, org_slug: "personal" });
  expect((await lines()).map(({ app }) => app)).toEqual(["web", "shop"]);
  expect((await lines("--app", "shop", "--since", "1h")).map(({ app }) => app)).toEqual(["shop"]);
  await command(["stop", "--data", data]);
  expect((await lines("--app", "web")).map(({ app }) => app)).toEqual(["web"]);
  expect((await command(["history", "--data", data, "--since", "soon"])).err).toContain("a duration such as 10m");
  const none = await command(["start", "--detach", "--data", data, "--listen", "127.0.0.1:0", "--keep-history", "x"]);
  expect(none.err).toContain('--keep-history takes a time such as 7d or 12h, or off, got "x"');
});

test("it keeps the newest entries, and none that are too old", async () => {
  const clock = new ManualClock();
  const app = await withApp({ clock, history: { entries: 1500, ageMs: 3600_000 } });
  for (let i = 0; i < 3000; i++)
    app.service.context.history.add({
      ...{
        kind: "request",
        at: clock.now(),
        org: "personal",
        app: "web",
        machine: null,
        id: `r${i}`,
        status: 200,
        ms: 1,
      },
      ...{ operation: "apps.create", method: "POST", path: "/v1/apps", about: null },
      ...{ token: "t", tokenName: null, urn: null, update: null },
    });
  const kept = await app.service.context.history.count();
  expect(kept).toBeGreaterThanOrEqual(1500);
  expect(kept).toBeLessThan(2600);
  clock.advance(2 * 3600_000);
  for (let i = 0; i < 1001; i++)
    app.service.context.history.add({
      ...{
        kind: "request",
        at: clock.now(),
        org: "personal",
        app: "web",
        machine: null,
        id: `n${i}`,
        status: 200,
        ms: 1,
      },
      ...{ operation: "apps.create", method: "POST", path: "/v1/apps", about: null },
      ...{ token: "t", tokenName: null, urn: null, update: null },
    });
  const ids = (await app.service.context.history.entries({ limit: 5000 })).map((one) =>
    one.kind === "request" ? one.id : "",
  );
  expect(ids.every((id) => id.startsWith("n"))).toBe(true);
});

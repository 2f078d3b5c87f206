// Quotas of organizations and Apps (docs/service.md#quotas).
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createService, ManualClock, seededRandom, type ServiceOptions } from "../../service/index.ts";
import type { Context } from "../../service/context.ts";
import { listQuotas, removeQuotas, setQuotas, type Limits, type QuotaKind } from "../../service/store/quotas.ts";
import { ensureOrg } from "../../service/store/tokens.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { callerWith, withApp, type Answer, type Call } from "./client.ts";
import { figures } from "./watch/figures.ts";
import { isThorough } from "../support/extent.mts";

const orgId = ({ store }: Context, slug: string): number => ensureOrg(store, slug).id;

const appId = ({ store }: Context, name: string): string =>
  store.get<{ id: string }>("SELECT id FROM apps WHERE name = ?", name)?.id ?? "";

/** Sets limits of organization personal, or of an App of it. */
async function limit(context: Context, limits: Limits, app?: string): Promise<void> {
  const holder = { org: orgId(context, "personal"), app: app === undefined ? undefined : appId(context, app) };
  await context.store.write(() => setQuotas(context.store, holder, limits));
}

/** A service with the Apps `web` and `shop`, where every operation has all its effects before its answer. */
async function scene(options: ServiceOptions = {}) {
  const app = await withApp({ delays: "none", ...options });
  await app.call("POST", "/apps", { name: "shop", org_slug: "personal" });
  const { context } = app.service;
  return {
    ...app,
    context,
    create: (name = "web", guest?: object) =>
      app.call("POST", `/apps/${name}/machines`, { config: { image: "nginx", ...(guest ? { guest } : {}) } }),
    used: (kind: QuotaKind, name: string | null = null) =>
      listQuotas(context.store).find((quota) => quota.kind === kind && quota.app === name)?.used,
  };
}

const refused = (text: string) => ({
  status: 422,
  body: { error: `quota exceeded: ${text}`, status: "quota_exceeded" },
});
const seen = ({ status, body }: Answer) => ({ status, body });
const statusesOf = (answers: readonly Answer[]): number[] => answers.map(({ status }) => status).sort();

test("Machines are created up to the limit of their App; those that are stopped count, destroyed ones do not", async () => {
  const { context, call, create, used } = await scene();
  const first = (await create()).body.id;
  await limit(context, { machines: 2 }, "web");
  expect(used("machines", "web")).toBe(1);
  const second = (await create()).body.id;
  const over = refused("the limit of app web for machines is 2, it has 2, and this adds 1");
  expect(seen(await create())).toEqual(over);
  expect((await create("shop")).status).toBe(200);

  await call("POST", `/apps/web/machines/${first}/stop`);
  expect(seen(await create())).toEqual(over);
  expect((await call("DELETE", `/apps/web/machines/${second}?force=true`)).status).toBe(200);
  expect(used("machines", "web")).toBe(1);
  expect((await create()).status).toBe(200);
  expect(seen(await create())).toEqual(over);
  // A refusal left nothing behind.
  expect((await call("GET", "/apps/web/machines")).body).toHaveLength(2);
});

test("memory is what is configured; an update may lower it, and raise it up to the limit", async () => {
  const { context, call, create, used } = await scene();
  await limit(context, { memory: 1024 });
  const shared = (memory_mb: number) => ({ cpu_kind: "shared", cpus: 1, memory_mb });
  const { id } = (await create("web", shared(512))).body;
  expect((await create("shop")).status).toBe(200);
  expect(used("memory")).toBe(768);
  expect(seen(await create("shop", shared(512)))).toEqual(
    refused(
      "the limit of organization personal for memory of machines is 1024 MB, it has 768 MB, and this adds 512 MB",
    ),
  );
  const update = (memory_mb: number) =>
    call("POST", `/apps/web/machines/${id}`, { config: { image: "nginx", guest: shared(memory_mb) } });
  expect((await update(768)).status).toBe(200);
  expect(used("memory")).toBe(1024);
  expect(seen(await update(1024))).toEqual(
    refused(
      "the limit of organization personal for memory of machines is 1024 MB, it has 1024 MB, and this adds 256 MB",
    ),
  );
  expect((await update(256)).status).toBe(200);
  expect(used("memory")).toBe(512);
  // The size of a performance CPU, which names no memory.
  const large = await call("POST", "/apps/web/machines", { config: { image: "nginx", size: "performance-1x" } });
  expect(large.body.error).toContain("this adds 2048 MB");
});

test("volumes are limited by number and by size, also when one is copied or grows; deleted ones do not count", async () => {
  const { context, call, used } = await scene();
  await limit(context, { volumes: 2, "volume-gb": 10 });
  const create = (more: object) => call("POST", "/apps/web/volumes", { name: "data", region: "fra", ...more });
  const { id } = (await create({ size_gb: 6 })).body;
  expect(seen(await create({ size_gb: 5 }))).toEqual(
    refused("the limit of organization personal for volumes together is 10 GB, it has 6 GB, and this adds 5 GB"),
  );
  // A fork has the size of its source.
  expect(seen(await create({ source_volume_id: id }))).toEqual(
    refused("the limit of organization personal for volumes together is 10 GB, it has 6 GB, and this adds 6 GB"),
  );
  const other = (await create({ size_gb: 3 })).body.id;
  const extend = (size_gb: number) => call("PUT", `/apps/web/volumes/${id}/extend`, { size_gb });
  expect(seen(await extend(8))).toEqual(
    refused("the limit of organization personal for volumes together is 10 GB, it has 9 GB, and this adds 2 GB"),
  );
  expect((await extend(7)).status).toBe(200);
  await limit(context, { "volume-gb": 20 });
  expect(seen(await create({ size_gb: 1 }))).toEqual(
    refused("the limit of organization personal for volumes is 2, it has 2, and this adds 1"),
  );
  expect((await call("DELETE", `/apps/web/volumes/${other}`)).status).toBe(200);
  expect([used("volumes"), used("volume-gb")]).toEqual([1, 7]);
  expect((await create({ size_gb: 3 })).status).toBe(200);
});

test("clusters are limited, also forks; deleted ones do not count", async () => {
  const { context, call, used } = await scene();
  await limit(context, { clusters: 2 });
  const create = (name: string) =>
    call("POST", "/postgres", { org_slug: "personal", name, region: "fra", plan: "basic" });
  const { id } = (await create("one")).body.data;
  const fork = (name: string) => call("POST", `/postgres/${id}/fork`, { name });
  const other = (await fork("two")).body.data.id;
  const over = refused("the limit of organization personal for Postgres clusters is 2, it has 2, and this adds 1");
  expect(seen(await fork("three"))).toEqual(over);
  expect(seen(await create("three"))).toEqual(over);
  await call("DELETE", `/postgres/${other}`);
  expect(used("clusters")).toBe(1);
  expect((await create("three")).status).toBe(201);
});

test("concurrent creates never exceed a limit", async () => {
  const { context, create } = await scene();
  await limit(context, { machines: 5 });
  await limit(context, { machines: 3 }, "web");
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => create(i % 2 === 0 ? "web" : "shop")));
  expect(statusesOf(answers)).toEqual([...Array(5).fill(200), ...Array(15).fill(422)]);
  const sql = "SELECT count(*) AS n FROM machines m JOIN apps a ON a.id = m.app WHERE a.name = 'web'";
  expect(context.store.get<{ n: number }>(sql)?.n).toBeLessThanOrEqual(3);
});

test("what exists above a lowered limit stays and can be changed; a lifted limit is none", async () => {
  const { context, call, create, used } = await scene();
  const [one, two] = [(await create()).body.id, (await create()).body.id];
  await limit(context, { machines: 1, memory: 256 });
  expect([used("machines"), used("memory")]).toEqual([2, 512]);
  expect((await call("POST", `/apps/web/machines/${one}`, { config: { image: "nginx:2" } })).status).toBe(200);
  expect((await call("POST", `/apps/web/machines/${two}/restart`)).status).toBe(200);
  expect((await create()).status).toBe(422);
  await limit(context, { machines: 5 });
  expect((await create()).body.error).toContain("memory");
  await limit(context, { memory: null });
  expect((await create()).status).toBe(200);
  expect(removeQuotas(context.store, { org: orgId(context, "personal") })).toBe(1);
  expect(listQuotas(context.store)).toEqual([]);
  expect((await create()).status).toBe(200);
});

test("another organization is not affected, and may have quotas of its own", async () => {
  const { context, service, url, create } = await scene();
  const team = callerWith({ url, service }, "team-token", { slug: "team" });
  await team("POST", "/apps", { name: "tea", org_slug: "team" });
  await limit(context, { machines: 0 });
  expect((await create()).status).toBe(422);
  const brew = () => team("POST", "/apps/tea/machines", { config: { image: "nginx" } });
  expect((await brew()).status).toBe(200);
  await context.store.write(() => setQuotas(context.store, { org: orgId(context, "team") }, { machines: 1 }));
  expect((await brew()).body.error).toContain("the limit of organization team for machines is 1, it has 1");
});

test("the quotas of an App end with it, and what it had no longer counts for its organization", async () => {
  const { context, call, create, used } = await scene();
  await limit(context, { machines: 3, "volume-gb": 9 });
  await limit(context, { machines: 2 }, "web");
  await create();
  await create();
  await create("shop");
  await call("POST", "/apps/web/volumes", { name: "data", region: "fra", size_gb: 2 });
  expect([used("machines"), used("volume-gb")]).toEqual([3, 2]);
  expect((await call("DELETE", "/apps/web?force=true")).status).toBe(202);
  expect([used("machines"), used("volume-gb")]).toEqual([1, 0]);
  expect(listQuotas(context.store).filter(({ app }) => app !== null)).toEqual([]);
});

test("quotas hold after a restart", async () => {
  const data = mkdtempSync(join(tmpdir(), "machines-quotas-"));
  afterThisTest(() => rmSync(data, { recursive: true, force: true }));
  const { context, create, close } = await scene({ data });
  await limit(context, { machines: 1 });
  await create();
  await close();
  const again = createService({ data, delays: "none" });
  afterThisTest(() => again.close());
  const answer = await again.app.inject({
    ...{ method: "POST", url: "/v1/apps/web/machines", payload: { config: { image: "nginx" } } },
    headers: { authorization: `Bearer ${again.token}` },
  });
  expect([answer.statusCode, answer.json().error]).toEqual([422, expect.stringContaining("it has 1")]);
});

/** The statuses of a number of consecutive requests. */
async function statuses(count: number, send: () => Promise<Answer>): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < count; i++) all.push((await send()).status);
  return all;
}

test("requests beyond a quota are 429 until their time, whatever they do, and those of others are not", async () => {
  const clock = new ManualClock();
  const { context, service, url, call } = await scene({ clock });
  const team = callerWith({ url, service }, "team-token", { slug: "team" });
  await limit(context, { requests: 2 });
  // A running service reads quotas again after a second.
  clock.advance(1000);
  const show = () => call("GET", "/apps/web");
  expect(await statuses(5, show)).toEqual([200, 200, 200, 200, 429]);
  const over = await call("POST", "/apps/web/machines", { config: { image: "nginx" } });
  expect([over.status, over.body, over.headers.get("retry-after")]).toEqual([
    429,
    { error: "rate limit exceeded: the limit of organization personal for requests is 2 per second" },
    "1",
  ]);
  expect((await team("GET", "/apps?org_slug=team")).status).toBe(200);
  clock.advance(1000);
  expect(await statuses(3, show)).toEqual([200, 200, 429]);
  expect(service.rateLimits.limited).toBe(3);
  await limit(context, { requests: null });
  clock.advance(1000);
  expect(await statuses(9, show)).toEqual(Array(9).fill(200));
});

test("the requests of an App count for both; what one limit refuses does not use up the other, and strangers use up neither", async () => {
  const clock = new ManualClock();
  const { context, service, url, call } = await scene({ clock });
  const stranger = callerWith({ url, service }, "stranger", { slug: "team" });
  const ofShop = callerWith({ url, service }, "of-shop", { apps: [appId(context, "shop")] });
  await limit(context, { requests: 5 });
  await limit(context, { requests: 1 }, "web");
  clock.advance(1000);
  expect(await statuses(5, () => stranger("GET", "/apps/web"))).toEqual(Array(5).fill(403));
  expect(await statuses(2, () => ofShop("GET", "/apps/web"))).toEqual([403, 403]);
  expect(await statuses(9, () => call("GET", "/apps/web"))).toEqual([200, 200, ...Array(7).fill(429)]);
  // Of ten at once, two were those of the token of shop, and two those of web.
  expect(await statuses(7, () => call("GET", "/apps/shop"))).toEqual([...Array(6).fill(200), 429]);
});

test("quotas of requests and documented rate limits hold together", async () => {
  const clock = new ManualClock();
  const { context, call } = await scene({ clock, rateLimits: "documented" });
  await limit(context, { requests: 100 });
  clock.advance(10_000);
  expect(await statuses(4, () => call("GET", "/apps/web"))).toEqual([200, 200, 200, 429]);
  expect((await call("GET", "/apps/web")).body).toEqual({ error: "rate limit exceeded" });
});

test("limits and use are metrics, by organization and App", async () => {
  const app = await scene();
  await limit(app.context, { machines: 4, requests: 50 });
  await limit(app.context, { memory: 1024 }, "web");
  await app.create();
  const found = await figures(app);
  const of = (name: string, org: string, ofApp: string, resource: string) =>
    found.get(`machines_service_quota_${name}{org="${org}",app="${ofApp}",resource="${resource}"}`);
  expect([of("limit", "personal", "", "machines"), of("used", "personal", "", "machines")]).toEqual([4, 1]);
  expect([of("limit", "personal", "web", "memory"), of("used", "personal", "web", "memory")]).toEqual([1024, 256]);
  expect([of("limit", "personal", "", "requests"), of("used", "personal", "", "requests")]).toEqual([50, undefined]);
});

const counts: Readonly<Record<string, string>> = {
  machines: "SELECT count(*) AS n FROM machines WHERE destroyed_at IS NULL",
  memory: "SELECT coalesce(sum(memory_mb), 0) AS n FROM machines WHERE destroyed_at IS NULL",
  volumes: "SELECT count(*) AS n FROM volumes WHERE state NOT LIKE '%_destroy'",
  "volume-gb": "SELECT coalesce(sum(size_gb), 0) AS n FROM volumes WHERE state NOT LIKE '%_destroy'",
  clusters: "SELECT count(*) AS n FROM clusters WHERE status NOT LIKE 'delet%'",
};

/** What is counted, and what is really there, of each quota. */
function recount({ store }: Context): readonly (readonly [string, number, number])[] {
  return listQuotas(store).map(({ app, kind, used }) => {
    const sql = `${counts[kind]}${app === null ? "" : " AND app = (SELECT id FROM apps WHERE name = ?)"}`;
    const { n } = store.get<{ n: number }>(sql, ...(app === null ? [] : [app])) ?? { n: -1 };
    return [`${app ?? ""} ${kind}`, used ?? -1, n];
  });
}

interface Act {
  readonly kind: string;
  readonly app: string;
  readonly size: number;
  readonly pick: number;
}

const act: fc.Arbitrary<Act> = fc.record({
  kind: fc.constantFrom(
    "create",
    "update",
    "destroy",
    "volume",
    "extend",
    "discard",
    "cluster",
    "drop",
    "app",
    "later",
    "quota",
  ),
  app: fc.constantFrom("web", "shop"),
  size: fc.integer({ min: 1, max: 8 }),
  pick: fc.nat(20),
});

/** Does one act of a random life. */
async function play(call: Call, context: Context, clock: ManualClock, { kind, app, size, pick }: Act) {
  const guest = { cpu_kind: "shared", cpus: 1, memory_mb: 256 * size };
  const machines = `/apps/${app}/machines`;
  const one = async (path: string): Promise<string> => {
    const found = (await call("GET", path)).body as unknown;
    const { data = found } = (found ?? {}) as { readonly data?: unknown };
    const all = Array.isArray(data) ? (data as readonly { readonly id: string }[]) : [];
    return all[pick % Math.max(1, all.length)]?.id ?? "none";
  };
  if (kind === "create") return call("POST", machines, { config: { image: "nginx", guest, auto_destroy: pick < 4 } });
  if (kind === "update")
    return call("POST", `${machines}/${await one(machines)}`, { config: { image: "nginx", guest } });
  if (kind === "destroy") return call("DELETE", `${machines}/${await one(machines)}?force=true`);
  const volumes = `/apps/${app}/volumes`;
  if (kind === "volume") return call("POST", volumes, { name: "data", region: "fra", size_gb: size });
  if (kind === "extend") return call("PUT", `${volumes}/${await one(volumes)}/extend`, { size_gb: size + 4 });
  if (kind === "discard") return call("DELETE", `${volumes}/${await one(volumes)}`);
  if (kind === "cluster") return call("POST", "/postgres", { org_slug: "personal", region: "fra", plan: "basic" });
  if (kind === "drop") return call("DELETE", `/postgres/${await one("/postgres?org_slug=personal")}`);
  if (kind === "later") return clock.advance(size * 6 * 3600_000);
  if (kind === "quota")
    return limit(context, { machines: size, memory: 256 * size * 3, "volume-gb": size * 5, clusters: 2 });
  await call("DELETE", `/apps/${app}?force=true`);
  await call("POST", "/apps", { name: app, org_slug: "personal" });
  return limit(context, { machines: size, volumes: 3 }, app);
}

test("after any sequence of operations, the counters are what a recount gives, and no limit is exceeded by growth", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 10, maxLength: 40 }), async (acts) => {
      const clock = new ManualClock();
      const { context, call, close } = await scene({ clock, random: seededRandom("quotas"), delays: "believable" });
      await limit(context, { machines: 4, memory: 4096, volumes: 4, "volume-gb": 20, clusters: 2 });
      await limit(context, { machines: 3, memory: 2048, volumes: 2, "volume-gb": 12 }, "web");
      for (const one of acts) {
        const before = new Map(listQuotas(context.store).map((quota) => [`${quota.app} ${quota.kind}`, quota]));
        await play(call, context, clock, one);
        for (const [name, used, real] of recount(context)) expect([name, used]).toEqual([name, real]);
        if (one.kind === "quota" || one.kind === "app") continue;
        for (const { app, kind, used, limit: most } of listQuotas(context.store))
          expect(used ?? 0).toBeLessThanOrEqual(Math.max(most, before.get(`${app} ${kind}`)?.used ?? 0));
      }
      await close();
    }),
    { numRuns: isThorough ? 25 : 8, seed: 20261128 },
  );
});

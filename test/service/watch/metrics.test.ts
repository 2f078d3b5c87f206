// The metrics about what a service has: Apps, Machines, the proxy, certificates, clusters, and its process.
import { expect, test } from "vitest";
import { ManualClock } from "../../../service/index.ts";
import { countMachines } from "../../../service/http/appMetrics.ts";
import { clusterMetrics } from "../../../service/http/clusterMetrics.ts";
import { Work } from "../../../service/time/costly.ts";
import { Counted, mostApps, otherApps } from "../../../service/watch/byApp.ts";
import { catalogue } from "../../../service/watch/catalogue.ts";
import { EventLoopLag } from "../../../service/watch/eventLoop.ts";
import { linesOf } from "../../../service/watch/exposition.ts";
import { addToken } from "../../../service/store/tokens.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { caller, withApp, withStillClock } from "../client.ts";
import { folder } from "../command.ts";
import { get, withReach } from "../reachable.ts";
import { described, figures } from "./figures.ts";

const day = 24 * 3600;
const checked = { checks: { web: { type: "tcp", port: 80 } } };

test("/metrics has every metric of the catalogue, except those of several members, and no other", async () => {
  const app = await withApp();
  const answer = await fetch(`${app.url}/metrics`, { headers: { authorization: `Bearer ${app.token}` } });
  const names = [...(await answer.text()).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  const { "several members": ofMembers = {}, ...expected } = catalogue;
  expect(names).toEqual(Object.values(expected).flatMap((metrics) => Object.values(metrics).map(({ name }) => name)));
  expect(described.size).toBe(names.length + Object.keys(ofMembers).length);
});

test("Machines are counted by App and state, with the results of their checks and their restarts", async () => {
  const scene = await withStillClock();
  const { call, machine, clock } = scene;
  await call("POST", "/apps", { name: "idle", org_slug: "personal" });
  await machine(checked);
  await machine({ ...checked, env: { MACHINES_SIMULATE: "checks:critical" } });
  await machine({ env: { MACHINES_SIMULATE: "crash" }, restart: { policy: "on-failure", max_retries: 2 } });
  const { id } = await machine();
  await call("DELETE", `/apps/web/machines/${id}?force=true`);
  clock.advance(60_000);
  const found = await figures(scene);
  expect(found.get('machines_service_app_machines{app="web",state="started"}')).toBe(2);
  expect(found.get('machines_service_app_machines{app="web",state="failed"}')).toBe(1);
  expect(found.get('machines_service_app_machines{app="web",state="destroyed"}')).toBe(undefined);
  expect(found.get('machines_service_machines{state="destroyed"}')).toBe(1);
  expect(found.get('machines_service_app_checks{app="web",status="passing"}')).toBe(1);
  expect(found.get('machines_service_app_checks{app="web",status="critical"}')).toBe(1);
  expect(found.get('machines_service_app_restarts_total{app="web"}')).toBe(2);
  // The first restart is then an increase.
  expect(found.get('machines_service_app_restarts_total{app="idle"}')).toBe(0);
  expect([...found.keys()].filter((key) => key.includes('app="idle",state'))).toEqual([]);
});

test("a scrape after a change has it", async () => {
  const scene = await withApp();
  await figures(scene);
  const { id } = await scene.machine();
  const of = async (state: string) =>
    (await figures(scene)).get(`machines_service_app_machines{app="web",state="${state}"}`);
  // A count that took long is remembered for a while.
  await expect.poll(() => of("started")).toBe(1);
  await scene.call("POST", `/apps/web/machines/${id}/stop`);
  await expect.poll(async () => [await of("started"), await of("stopped")]).toEqual([undefined, 1]);
});

test("Apps beyond the limit share a label, which no counter leaves, and those that are gone have none", async () => {
  const { service, call } = await withApp();
  const counted = new Counted(service.context.store, 2);
  for (const name of ["two", "three"]) await call("POST", "/apps", { name, org_slug: "personal" });
  const idOf = (name: string) =>
    service.context.store.get<{ id: string }>("SELECT id FROM apps WHERE name = ?", name)?.id ?? "";
  const [web, two, three] = ["web", "two", "three"].map(idOf) as [string, string, string];
  for (const app of [web, two, three, three]) counted.restarted(app);
  for (const app of [web, three]) counted.answered(app, 200, 1);
  const restarts = () => {
    counted.settle();
    return Object.fromEntries(counted.restarts);
  };
  expect(restarts()).toEqual({ web: 1, two: 1, [otherApps]: 2 });
  expect(counted.proxied.map(([app, { requests }]) => [app, requests])).toEqual([
    ["web", 1],
    [otherApps, 1],
  ]);
  await call("DELETE", "/apps/two");
  await expect.poll(() => idOf("two")).toBe("");
  await call("POST", "/apps", { name: "four", org_slug: "personal" });
  counted.restarted(three);
  counted.restarted(idOf("four"));
  // The free label is that of the new App: an old one that moved would take its count along.
  expect(restarts()).toEqual({ web: 1, four: 1, [otherApps]: 3 });
});

test("an App takes no memory once it is gone, also if /metrics is never read", async () => {
  const { service } = await withApp();
  const { store } = service.context;
  const counted = new Counted(store);
  let kept = 0;
  const all = store.all.bind(store);
  store.all = (sql, ...values) => {
    if (sql.includes("json_each")) kept++;
    return all(sql, ...values);
  };
  for (let i = 0; i < 20 * mostApps; i++) counted.restarted(`gone-${i}`);
  expect(kept).toBeGreaterThan(2);
  expect(counted.restarts.at(-1)?.[1]).toBeGreaterThan(15 * mostApps);
});

test("counting many Machines lets others be served after each piece", async () => {
  const scene = await withApp();
  const { store } = scene.service.context;
  const { id } = await scene.machine();
  const row = store.get<object>("SELECT * FROM machines WHERE id = ?", id);
  await store.write(() => {
    for (let i = 0; i < 2000; i++) store.insert("machines", { ...row, id: `m${i}`, name: `m${i}` });
  });
  // Every look at the clock takes longer than a piece may.
  let [now, turns] = [0, 0];
  const work = new Work(
    () => (now += 10),
    () => Promise.resolve(void turns++),
  );
  const { states } = await countMachines(scene.service.context, work);
  expect(states.get("started")).toBe(2001);
  expect(turns).toBeGreaterThanOrEqual(8);
});

test.skipIf(process.platform !== "linux")("requests at the proxy are counted by App, with their times", async () => {
  const scene = await withReach();
  await scene.offer([{ port: 80, handlers: ["http"] }]);
  await scene.assign("shared_v4");
  const { http = 0 } = scene.service.proxy?.ports ?? {};
  const host = { headers: { host: "web.localhost" } };
  await expect.poll(async () => (await get(`http://127.0.0.1:${http}/`, "", host)).status).toBe(200);
  const count = async (key: string) => (await figures(scene)).get(key) ?? 0;
  await expect.poll(() => count('machines_service_proxy_requests_total{app="web",status="2xx"}')).toBe(1);
  expect(await count('machines_service_proxy_request_duration_seconds_bucket{app="web",le="+Inf"}')).toBeGreaterThan(0);
  expect(await count("machines_service_proxy_max_connections")).toBeGreaterThan(0);
});

test("certificates have the time of their end, and issued ones that of their renewal", async () => {
  const clock = new ManualClock();
  const scene = await withApp({ clock });
  const from = clock.now() / 1000;
  await scene.call("POST", "/apps/web/certificates/acme", { hostname: "www.example.com" });
  await scene.call("POST", "/apps/web/certificates/acme", { hostname: "waits.invalid" });
  const found = await figures(scene);
  const of = (what: string) =>
    found.get(`machines_service_certificate_${what}_timestamp_seconds{app="web",hostname="www.example.com"}`) ?? 0;
  expect((of("expiration") - from) / day).toBeCloseTo(90);
  expect((of("renewal") - from) / day).toBeCloseTo(60);
  expect(found.get('machines_service_certificates{state="valid"}')).toBe(1);
  expect(found.get('machines_service_certificates{state="waiting"}')).toBe(1);
  expect([...found.keys()].filter((key) => key.includes("waits.invalid"))).toEqual([]);
});

test("clusters are up while their server answers, and say how full they are", async () => {
  const scene = await withApp();
  const { store } = scene.service.context;
  const make = async (name: string): Promise<string> =>
    (await scene.call("POST", "/postgres", { org_slug: "personal", region: "ams", plan: "basic", name })).body.data.id;
  const [main, other] = [await make("main"), await make("other")];
  const failed = await make("broken");
  await store.write(() => {
    store.run("UPDATE clusters SET status = 'failed' WHERE id = ?", failed);
    store.run("UPDATE clusters SET storage_used_bytes = 5e9 WHERE id = ?", main);
  });
  const load = { connections: 7, active: 1, most: 100, slow: 2 };
  const lines = [
    ...linesOf(
      clusterMetrics(
        scene.service.context,
        new Map([
          [main, load],
          [other, undefined],
        ]),
      ),
    ),
  ];
  const text = lines.join("");
  for (const [line, value] of [
    ['machines_service_cluster_up{cluster="main"}', 1],
    ['machines_service_cluster_up{cluster="other"}', 0],
    ['machines_service_cluster_up{cluster="broken"}', 0],
    ['machines_service_cluster_storage_bytes{cluster="main"}', 5e9],
    ['machines_service_cluster_connections{cluster="main"}', 7],
    ['machines_service_cluster_max_connections{cluster="main"}', 100],
    ['machines_service_cluster_slow_queries{cluster="main"}', 2],
    ['machines_service_clusters{status="ready"}', 2],
    ['machines_service_clusters{status="failed"}', 1],
  ] as const)
    expect(text).toContain(`${line} ${value}\n`);
  // One that has just become ready was not measured yet.
  expect((await figures(scene)).get('machines_service_cluster_up{cluster="other"}')).toBe(1);
});

test("what other organizations have is counted, and not named", async () => {
  const scene = await withApp();
  const { service } = scene;
  await service.context.store.write(() =>
    addToken(service.context.store, "of-acme", { slug: "acme", expiresAt: null }, 0),
  );
  const acme = caller(scene.url, "of-acme");
  await acme("POST", "/apps", { name: "theirs", org_slug: "acme" });
  await acme("POST", "/apps/theirs/machines", { config: { image: "nginx" } });
  await acme("POST", "/apps/theirs/certificates/acme", { hostname: "www.theirs.example" });
  const made = await acme("POST", "/postgres", { org_slug: "acme", region: "ams", plan: "basic", name: "their-data" });
  await service.context.store.write(() =>
    service.context.store.run("UPDATE clusters SET storage_used_bytes = 9e9 WHERE id = ?", made.body.data.id),
  );
  const found = await figures(scene);
  expect([...found.keys()].filter((key) => /acme|their/.test(key.replace("createAcme", "")))).toEqual([]);
  expect(found.get(`machines_service_app_machines{app="${otherApps}",state="started"}`)).toBe(1);
  const ends = `{app="${otherApps}",hostname="other hostnames"}`;
  expect(found.get(`machines_service_certificate_expiration_timestamp_seconds${ends}`)).toBeGreaterThan(
    found.get(`machines_service_certificate_renewal_timestamp_seconds${ends}`) ?? Number.POSITIVE_INFINITY,
  );
  expect(found.get('machines_service_cluster_up{cluster="other clusters"}')).toBe(1);
  expect(found.get('machines_service_cluster_storage_bytes{cluster="other clusters"}')).toBe(9e9);
});

test("the disk of the data is known, and how late the event loop is", async () => {
  const scene = await withApp({ data: folder() });
  const found = await figures(scene);
  const [free, size] = ["free", "size"].map((what) => found.get(`machines_service_data_disk_${what}_bytes`) ?? 0);
  expect(free).toBeGreaterThan(0);
  expect(size).toBeGreaterThan(free ?? 0);
  expect(found.get("process_start_time_seconds")).toBeGreaterThan(1.7e9);
  let now = 0;
  let run = (): void => {};
  const lag = new EventLoopLag(
    () => now,
    (_, given) => {
      run = given;
      return () => {};
    },
  );
  afterThisTest(() => lag.close());
  for (const at of [100, 230, 330]) {
    now = at;
    run();
  }
  const bucket = (le: number | string) => lag.samples.find(([labels]) => labels["le"] === le)?.[1];
  expect([bucket(0.001), bucket(0.025), bucket(0.05), bucket("+Inf")]).toEqual([2, 2, 3, 3]);
});

test("a token of one App, or of another organization, cannot read names of others in /metrics", async () => {
  const { url, call, service, token } = await withApp();
  const { token: ofApp } = (await call("POST", "/apps/web/deploy_token", {})).body;
  const { store } = service.context;
  await store.write(() => {
    addToken(store, "of-acme", { slug: "acme", expiresAt: null }, 0);
    addToken(store, "reader", { slug: "personal", expiresAt: null, role: "read" }, 0);
  });
  const status = async (of: string) =>
    (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${of}` } })).status;
  expect(await Promise.all([ofApp, "of-acme", "reader", token].map(status))).toEqual([403, 403, 200, 200]);
});

// The audit log: requests and their results.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { Audit } from "../../service/http/audit.ts";
import { ManualClock, startAdmin } from "../../service/index.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { caller, withApp } from "./client.ts";

test("it has every answered request, with its caller and its result", async () => {
  const clock = new ManualClock();
  const { call, url, service, machines, machine } = await withApp({ clock });
  const from = service.audit.last;
  const { id } = await machine();
  clock.advance(5000);
  const shown = await call("GET", `${machines}/none?include_leases=true`);
  await caller(url, "wrong")("GET", machines);
  const entries = service.audit.after(from);
  expect(entries).toEqual([
    {
      seq: from + 1,
      at: clock.now() - 5000,
      id: expect.any(String),
      operation: "machines.create",
      method: "POST",
      path: "/v1/apps/web/machines",
      status: 200,
      org: "personal",
      owner: expect.stringMatching(/@tokens\.personal$/),
      tokenName: "first",
      nonce: false,
      lease: null,
      faults: [],
      ms: expect.any(Number),
      urn: null,
      about: null,
    },
    expect.objectContaining({
      seq: from + 2,
      at: clock.now(),
      id: shown.headers.get("svc-request-id"),
      operation: "machines.get",
      path: `/v1${machines}/none`,
      status: 404,
    }),
    expect.objectContaining({ seq: from + 3, operation: "machines.list", status: 401, org: null, owner: null }),
  ]);
  expect(JSON.stringify(entries)).not.toContain("wrong");
  expect(id).not.toBe("none");
});

test("a guarded request shows whether it had the lease, and never its nonce", async () => {
  const { call, service, machine, machines } = await withApp();
  const { id } = await machine();
  const path = `${machines}/${id}`;
  const from = service.audit.last;
  await call("POST", `${path}/cordon`);
  const { nonce } = (await call("POST", `${path}/lease`, {})).body.data;
  await call("POST", `${path}/cordon`);
  await call("POST", `${path}/cordon`, undefined, { "svc-machine-lease-nonce": nonce });
  await call("POST", `${path}/cordon`, undefined, { "fly-machine-lease-nonce": "another" });
  const entries = service.audit.after(from);
  expect(entries.map(({ operation, status, nonce: sent, lease }) => [operation, status, sent, lease])).toEqual([
    ["machines.cordon", 200, false, "none"],
    ["machines.acquireLease", 201, false, null],
    ["machines.cordon", 409, false, "other"],
    ["machines.cordon", 200, true, "own"],
    ["machines.cordon", 409, true, "other"],
  ]);
  expect(JSON.stringify(entries)).not.toContain(nonce);
});

test("an unknown path has no operation", async () => {
  const { call, service } = await withApp();
  await call("GET", "/nowhere?secret=hunter2");
  expect(service.audit.after(0).at(-1)).toMatchObject({ operation: null, path: "/v1/nowhere", status: 404 });
});

const entryOf = (path: string) => ({
  ...{ at: 0, id: "", operation: null, method: "GET", path, status: 200, org: null, owner: null },
  ...{ tokenName: null, nonce: false, lease: null, faults: [], ms: 0.25, urn: null, about: null },
});

test("the newest entries are kept, and their numbers never skip", () => {
  const audit = new Audit();
  audit.keep(3);
  const add = (path: string) => audit.add(entryOf(path));
  expect([audit.first, audit.last, audit.after(0)]).toEqual([1, 0, []]);
  for (const path of ["a", "b", "c", "d", "e"]) add(path);
  const paths = (after: number, limit?: number) => audit.after(after, limit).map(({ seq, path }) => `${seq}${path}`);
  expect([audit.first, audit.last]).toEqual([3, 5]);
  expect(paths(0)).toEqual(["3c", "4d", "5e"]);
  expect(paths(3)).toEqual(["4d", "5e"]);
  expect(paths(0, 2)).toEqual(["3c", "4d"]);
  expect(paths(5)).toEqual([]);
});

test("old entries have the same form as new ones, at any starting point", () => {
  const audit = new Audit();
  audit.add({ ...entryOf("uncounted"), at: 0 });
  audit.keep(2500);
  const added = Array.from({ length: 4321 }, (_, i) => ({
    ...entryOf(`/v1/é/${i}`),
    status: i % 3 === 0 ? null : 200,
    faults: i % 5 === 0 ? ["f1", "f2"] : [],
  }));
  for (const [i, entry] of added.entries()) {
    audit.add(entry);
    const kept = Math.min(i + 1, 2500);
    if (i % 97 === 0 || i > 4300) expect([audit.first, audit.last]).toEqual([i + 3 - kept, i + 2]);
  }
  const all = added.map((entry, i) => ({ seq: i + 2, ...entry })).slice(-2500);
  expect(audit.after(0)).toEqual(all);
  for (const begin of [1821, 1822, 1823, 2000, 2001, 2002, 3001, 4000, 4321, 4322, 9999]) {
    const rest = all.filter(({ seq }) => seq > begin);
    expect([begin, audit.after(begin)]).toEqual([begin, rest]);
    expect([begin, audit.after(begin, 1300)]).toEqual([begin, rest.slice(0, 1300)]);
  }
  expect(audit.after(0, 0)).toEqual([]);
});

test("nothing is kept without a reader, but the numbers continue", async () => {
  const { call, service } = await withApp({ audit: false, console: "off" });
  const { audit } = service;
  const before = audit.last;
  expect([before, audit.first, audit.after(0)]).toEqual([1, 2, []]);
  audit.keep();
  expect([audit.first, audit.after(0)]).toEqual([2, []]);
  await call("GET", "/nowhere");
  expect(audit.first).toBe(2);
  expect(audit.after(0)).toEqual([expect.objectContaining({ seq: 2, path: "/v1/nowhere" })]);
});

test("the console keeps the newest 10,000; an admin listener keeps more from then on", async () => {
  const { service } = await withApp({ audit: false });
  const { audit } = service;
  const fill = (count: number): void => {
    for (let i = 0; i < count; i++) audit.add(entryOf("/v1/apps/web"));
  };
  fill(12_000);
  expect([audit.after(0).length, audit.first]).toEqual([10_000, audit.last - 9999]);
  const first = audit.first;
  const admin = await startAdmin({ service, listen: { host: "127.0.0.1", port: 0 } });
  afterThisTest(() => admin.close());
  fill(5000);
  expect(audit.after(0).length).toBeGreaterThanOrEqual(15_000);
  expect(audit.first).toBeLessThanOrEqual(first);
});

test("an entry has the resource that its client names, on one line, and the end of a long one", async () => {
  const { call, url, service } = await withApp();
  const urn = "urn:pulumi:dev::shop::machines:index:Machine::web";
  const named = async (header: string) => {
    await call("GET", "/apps/web", undefined, { "pulumi-urn": header });
    return service.audit.after(0).at(-1)?.urn;
  };
  expect(await named(urn)).toBe(urn);
  expect(await named(`${urn}-%C3%A9`)).toBe(`${urn}-é`);
  expect(await named(`${urn}-100%`)).toBe(`${urn}-100%`);
  expect(await named("a%0Ab%1B[31m")).toBe("a\\nb\\u001b[31m");
  expect(await named("")).toBe(null);
  const long = await named(`${"%C3%A9".repeat(600)}::web`);
  expect(long).toMatch(/^…é+::web$/);
  expect(Buffer.byteLength(String(long))).toBeLessThanOrEqual(500);
  await caller(url, "wrong")("GET", "/apps/web", undefined, { "pulumi-urn": urn });
  expect(service.audit.after(0).at(-1)).toMatchObject({ status: 401, urn: null });
});

test("F47 an entry keeps no more of a URL than it shows", async () => {
  const { url, service } = await withApp();
  const long = "a".repeat(15_000);
  const size = (): number => {
    setFlagsFromString("--expose-gc");
    (runInNewContext("gc") as () => void)();
    return process.memoryUsage().heapUsed;
  };
  const ask = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 100)
      await Promise.all(Array.from({ length: 100 }, async () => (await fetch(`${url}/${long}?${i}`)).arrayBuffer()));
  };
  // The first requests fill caches of the client and the service, which do not count as entries.
  await ask(1000);
  const before = size();
  const count = 3000;
  await ask(count);
  const grown = size() - before;
  expect(service.audit.after(0).at(-1)?.path).toHaveLength(200);
  // 45 MB of URLs were requested.
  expect(grown).toBeLessThan(count * 3000);
});

test("it has a request whose client has gone before its answer, such as a cancelled command", async () => {
  const { call, url, token, service, machine, machines } = await withApp();
  const { id } = await machine();
  const from = service.audit.last;
  const cancelled = new AbortController();
  const send = (path: string, body: object) =>
    fetch(`${url}/v1${machines}/${id}/${path}`, {
      ...{ method: "POST", body: JSON.stringify(body), headers: { authorization: `Bearer ${token}` } },
      signal: cancelled.signal,
    }).catch(() => "gone");
  const sent = [send("exec", { command: ["sleep", "100"] }), send("exec", { command: ["sleep", "100"], timeout: 50 })];
  await expect.poll(() => service.context.waits.size).toBe(2);
  cancelled.abort();
  expect(await Promise.all(sent)).toEqual(["gone", "gone"]);
  const entries = () =>
    service.audit.after(from).map(({ operation, status, tokenName }) => [operation, status, tokenName]);
  await expect.poll(entries).toEqual([
    ["machines.exec", null, "first"],
    ["machines.exec", null, "first"],
  ]);
  await call("POST", `${machines}/${id}/exec`, { command: ["true"] });
  expect(entries().slice(2)).toEqual([["machines.exec", 200, "first"]]);
});

test("a request that is injected, without a connection, has one entry", async () => {
  const { service } = await withApp();
  const from = service.audit.last;
  await service.app.inject({
    method: "GET",
    url: "/v1/apps/web",
    headers: { authorization: `Bearer ${service.token}` },
  });
  // The connection of a request closes after its answer.
  await service.app.inject({ method: "GET", url: "/healthz" });
  expect(service.audit.after(from).map(({ path, status }) => [path, status])).toEqual([
    ["/v1/apps/web", 200],
    ["/healthz", 200],
  ]);
});

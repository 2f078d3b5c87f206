// IP addresses of an App (docs/interface.md#ip-addresses).
import { isIPv4, isIPv6 } from "node:net";
import { expect, test } from "vitest";
import { callerWith, withApp } from "../client.ts";

const at = "/apps/web/ip_assignments";
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

test.each([
  ["v4", isIPv4, { shared: false, region: "global" }],
  ["v6", isIPv6, { shared: false, region: "global" }],
  ["shared_v4", isIPv4, { shared: true, region: "global" }],
  ["private_v6", isIPv6, { shared: false, network: { name: "default", org_slug: "personal" } }],
  ["egress_v4", isIPv4, { shared: false, egress: true }],
  ["egress_v6", isIPv6, { shared: false, egress: true }],
] as const)("an address of the type %s", async (type, isIP, expected) => {
  const { call } = await withApp();
  const made = await call("POST", at, { type });
  expect(made.status).toBe(200);
  expect(made.body).toMatchObject({ ...expected, created_at: expect.stringMatching(rfc3339) });
  expect(isIP(made.body.ip)).toBe(true);
  expect(made.body).not.toHaveProperty("ip_pair");
  if (type !== "private_v6") expect(made.body).not.toHaveProperty("network");
  expect((await call("GET", at)).body).toEqual({ ips: [made.body] });
});

test("a private address begins with fdaa:, and belongs to the App's or the requested network", async () => {
  const { call } = await withApp();
  expect((await call("POST", at, { type: "private_v6" })).body.ip).toMatch(/^fdaa:/);
  const other = await call("POST", at, { type: "private_v6", network: "inner", org_slug: "personal" });
  expect(other.body.network).toEqual({ name: "inner", org_slug: "personal" });
});

test("an egress pair is answered as a pair, without a single address, and listed as two", async () => {
  const { call } = await withApp();
  const made = await call("POST", at, { type: "egress_pair", region: "fra" });
  expect(made.body).toMatchObject({ ip: null, region: "fra", egress: true });
  const { v4, v6 } = made.body.ip_pair;
  expect([isIPv4(v4), isIPv6(v6)]).toEqual([true, true]);
  const { ips } = (await call("GET", at)).body;
  expect(ips).toMatchObject([
    { ip: v4, region: "fra", egress: true },
    { ip: v6, region: "fra", egress: true },
  ]);
  expect(ips[0]).not.toHaveProperty("ip_pair");
});

test("an address is regional or global, and may be for one service", async () => {
  const { call } = await withApp();
  expect((await call("POST", at, { type: "v4", region: "ams", service_name: "api" })).body).toMatchObject({
    region: "ams",
    service_name: "api",
  });
  expect((await call("POST", at, { type: "v4", region: "global" })).body.region).toBe("global");
  expect((await call("POST", at, { type: "v4", region: null, service_name: null })).body.region).toBe("global");
});

test.each([
  [{}, 400, "type"],
  [{ type: "v5" }, 400, "type"],
  [{ type: "v4", region: "Nowhere" }, 400, "region"],
  [{ type: "v4", region: "zzz" }, 422, "zzz"],
  [{ type: "private_v6", org_slug: "nobody" }, 404, "organization not found"],
])("%j is refused with %i", async (body, status, text) => {
  const { call } = await withApp();
  const answer = await call("POST", at, body);
  expect([answer.status, answer.body.error]).toEqual([status, expect.stringContaining(text)]);
  expect((await call("GET", at)).body).toEqual({ ips: [] });
});

test("the network of another organization is not assigned", async () => {
  const app = await withApp();
  callerWith(app, "stranger", { slug: "strangers" });
  expect((await app.call("POST", at, { type: "private_v6", org_slug: "strangers" })).status).toBe(403);
});

test("an App has one shared address, which other Apps share", async () => {
  const { call } = await withApp();
  await call("POST", "/apps", { name: "other", org_slug: "personal" });
  const { ip } = (await call("POST", at, { type: "shared_v4" })).body;
  expect((await call("POST", at, { type: "shared_v4" })).status).toBe(422);
  expect((await call("POST", "/apps/other/ip_assignments", { type: "shared_v4" })).body.ip).toBe(ip);
  expect((await call("DELETE", `${at}/${ip}`)).status).toBe(204);
  expect((await call("GET", "/apps/other/ip_assignments")).body.ips).toHaveLength(1);
});

test("every other address belongs to one App, and has the standard format", async () => {
  const { call } = await withApp();
  const ips: string[] = [];
  for (let i = 0; i < 20; i++)
    for (const type of ["v4", "v6", "private_v6"]) ips.push((await call("POST", at, { type })).body.ip);
  expect(new Set(ips).size).toBe(60);
  for (const ip of ips.filter(isIPv6)) expect(new URL(`http://[${ip}]`).hostname).toBe(`[${ip}]`);
});

test("an address is released with 204, and no longer belongs to the App", async () => {
  const { call } = await withApp();
  await call("POST", "/apps", { name: "other", org_slug: "personal" });
  for (const type of ["v4", "v6"]) {
    const { ip } = (await call("POST", at, { type })).body;
    expect((await call("DELETE", `/apps/other/ip_assignments/${ip}`)).status).toBe(404);
    const gone = await call("DELETE", `${at}/${encodeURIComponent(ip)}`);
    expect([gone.status, gone.text]).toEqual([204, ""]);
    expect((await call("DELETE", `${at}/${ip}`)).status).toBe(404);
  }
  expect((await call("GET", at)).body).toEqual({ ips: [] });
});

test("addresses are deleted with their App", async () => {
  const { call } = await withApp();
  await call("POST", at, { type: "v4" });
  await call("DELETE", "/apps/web");
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  expect((await call("GET", at)).body).toEqual({ ips: [] });
});

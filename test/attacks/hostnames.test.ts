// Attacks on the hostnames and certificates of other organizations.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import type { ServiceOptions } from "../../service/index.ts";
import { appSubject } from "../../service/lifecycle/appSubject.ts";
import type { IssuerHost, WantedCertificate } from "../../service/runtime/certificateIssuer.ts";
import { setDns, type DnsAnswer } from "../../service/runtime/dns.ts";
import { SimulatedRuntime } from "../../service/runtime/simulated.ts";
import { callerWith, type Call } from "../service/client.ts";
import { get, hasLoopback, secured, served, withReach } from "../service/reachable.ts";
import { currentCertificate } from "../support/certificates.ts";
import { afterThisTest } from "../support/leftovers.ts";

const host = "shop.example.com";
const services = [
  { protocol: "tcp", internal_port: 8080, ports: [{ port: 80, handlers: ["http"] }] },
  { protocol: "tcp", internal_port: 9000, ports: [{ port: 8883, handlers: ["tls"] }] },
];

interface Tenant {
  readonly app: string;
  readonly id: string;
  readonly org: string;
  readonly call: Call;
}

const at = ({ app }: Tenant, hostname?: string) =>
  `/apps/${app}/certificates${hostname === undefined ? "" : `/${encodeURIComponent(hostname)}`}`;
const ask = (tenant: Tenant, hostname: string) => tenant.call("POST", `${at(tenant)}/acme`, { hostname });
const shown = async (tenant: Tenant, hostname: string) => (await tenant.call("GET", at(tenant, hostname))).body;
const check = async (tenant: Tenant, hostname: string) =>
  (await tenant.call("POST", `${at(tenant, hostname)}/check`)).body;
const isActive = (tenant: Tenant, hostname: string) =>
  expect.poll(async () => (await shown(tenant, hostname)).status).toBe("active");

async function gets(tenant: Tenant, hostname: string): Promise<void> {
  expect((await ask(tenant, hostname)).status).toBe(201);
  await isActive(tenant, hostname);
}

/** A service with Apps of two organizations, each with a Machine that answers with the name of its App. */
async function withTenants(options: ServiceOptions = {}) {
  const ports = new Map<string, number>();
  const service = await withReach({
    runtime: (given) =>
      Object.assign(new SimulatedRuntime(given), {
        reach: {
          endpoint: (machine: string) => `127.0.0.1:${ports.get(machine)}`,
          listens: () => Promise.resolve(true),
        },
      }),
    ...options,
  });
  const create = async (org: string): Promise<Tenant> => {
    const call = callerWith(service, `token-of-${org}`, { slug: org });
    const app = `app-of-${org}`;
    const { id } = (await call("POST", "/apps", { name: app, org_slug: org })).body;
    const server = createServer((_, response) => void response.end(app)).listen(0, "127.0.0.1");
    await once(server, "listening");
    afterThisTest(() => void server.close());
    const made = await call("POST", `/apps/${app}/machines`, { config: { image: "nginx", services } });
    ports.set(made.body.id, (server.address() as AddressInfo).port);
    await call("GET", `/apps/${app}/machines/${made.body.id}/wait?state=started`);
    return { app, id, org, call };
  };
  // The visitors went to the smallest id.
  const [attacker, victim] = [await create("red"), await create("blue")].toSorted((a, b) => (a.id < b.id ? -1 : 1));
  if (!attacker || !victim) throw new Error("there are two");
  const { store } = service.service.context;
  return {
    ...service,
    attacker,
    victim,
    dns: (hostname: string, answer: DnsAnswer | undefined) => setDns(store, hostname, answer),
    /** The App whose Machine answers a visitor. */
    visited: async (hostname: string) =>
      (await get(`http://127.0.0.1:${service.service.proxy?.ports.http}`, hostname)).text,
    named: async (hostname: string) => (await served(service, hostname)).subjectAltName,
  };
}

const codes = ({ validation_errors }: { validation_errors: { code: string }[] }) =>
  validation_errors.map(({ code }) => code);

describe("F70: one hostname for two organizations", () => {
  test("F70: a request for another organization's hostname waits, and says which TXT record proves ownership", async () => {
    const { attacker, victim, visited } = await withTenants();
    await gets(victim, host);
    const asked = await ask(attacker, host);
    expect(asked).toMatchObject({
      status: 201,
      body: { status: "pending_ownership", certificates: [{ source: "fly", status: "pending_ownership" }] },
    });
    const { ownership } = asked.body.dns_requirements;
    expect(asked.body.validation_errors).toMatchObject([
      {
        code: "HOSTNAME_TAKEN",
        message: `${host} belongs to an App of another organization`,
        remediation: expect.stringContaining(`TXT record ${ownership.name} with the value ${ownership.app_value}`),
      },
    ]);
    for (let i = 0; i < 6; i++) expect(await check(attacker, host)).toMatchObject({ status: "pending_ownership" });
    const upload = { hostname: host, ...currentCertificate({ hosts: [host] }) };
    expect((await attacker.call("POST", `${at(attacker)}/custom`, upload)).body.status).toBe("pending_ownership");
    expect(await visited(host)).toBe(victim.app);
    expect(JSON.stringify(await shown(attacker, host))).not.toContain(victim.app);
    expect(await shown(victim, host)).toMatchObject({ status: "active", validation_errors: [] });
  });

  test("F70: the TXT record takes a hostname over, which the first owner sees, and only it gives the hostname back", async () => {
    const { attacker: second, victim: first, visited, named, dns, service } = await withTenants({ audit: true });
    await gets(first, host);
    await ask(second, host);
    const value = async (tenant: Tenant) => (await shown(tenant, host)).dns_requirements.ownership.app_value as string;
    const leads = (await shown(second, host)).dns_requirements;
    const named2 = { cname: [leads.cname], ownership_txt: await value(second) };
    dns(host, { ...named2, ownership_txt: "app-other" });
    expect((await check(second, host)).status).toBe("pending_ownership");
    dns(host, named2);
    await check(second, host);
    await isActive(second, host);
    expect(await visited(host)).toBe(second.app);
    expect(await named(host)).toBe(`DNS:${host}`);
    const lost = await shown(first, host);
    expect(lost).toMatchObject({
      status: "pending_ownership",
      validation_errors: [{ code: "HOSTNAME_TAKEN_OVER", message: expect.stringContaining("another organization") }],
    });
    expect(codes(await check(first, host))).toEqual(["HOSTNAME_TAKEN_OVER"]);
    expect(service.audit.after(0).filter(({ method }) => method === "EVENT")).toMatchObject([
      { operation: "certificates.takenOver", org: first.org, path: `/v1${at(first, host)}` },
    ]);
    expect(await visited(host)).toBe(second.app);
    dns(host, { cname: [(await shown(first, host)).dns_requirements.cname], ownership_txt: await value(first) });
    await check(first, host);
    await isActive(first, host);
    expect(await visited(host)).toBe(first.app);
    expect(await shown(first, host)).toMatchObject({ validation_errors: [] });
  });

  test("F70: a name below another organization's wildcard, and a wildcard above its name, have to be proven", async () => {
    const { attacker, victim, visited, dns } = await withTenants();
    await gets(victim, "*.example.com");
    expect(codes((await ask(attacker, "login.example.com")).body)).toEqual(["HOSTNAME_TAKEN"]);
    expect(await visited("login.example.com")).toBe(victim.app);
    const { ownership } = (await shown(attacker, "login.example.com")).dns_requirements;
    dns("login.example.com", { ownership_txt: ownership.app_value });
    await check(attacker, "login.example.com");
    expect(await visited("login.example.com")).toBe(attacker.app);
    expect(await visited("www.example.com")).toBe(victim.app);
    expect(codes(await shown(victim, "*.example.com"))).toContain("HOSTNAME_TAKEN_OVER");

    await gets(victim, "pay.example.org");
    expect(codes((await ask(attacker, "*.example.org")).body)).toEqual(["HOSTNAME_TAKEN"]);
    expect(await visited("pay.example.org")).toBe(victim.app);
    expect(await visited("any.example.org")).toMatch(/^no App has the host name/);
  });

  test("F70: if two organizations request a hostname from an authority, only the first that it checked has the hostname", async () => {
    const wanted: WantedCertificate[] = [];
    let events: IssuerHost["events"] | undefined;
    const { attacker, victim, visited, dns, service } = await withTenants({
      issuer: (host) => {
        events = host.events;
        return { name: "test", checksItself: true, request: (one) => void wanted.push(one) };
      },
    });
    // It leads to the service; no record says to which App.
    dns(host, { a: ["203.0.113.9"] });
    await ask(attacker, host);
    await ask(victim, host);
    await expect.poll(() => wanted.length).toBe(2);
    expect(await visited(host)).toMatch(/^no App has the host name/);
    const [first, second] = wanted.toSorted((a) => (a.subject.startsWith(victim.id) ? -1 : 1));
    const { fullchain: chain, private_key: key } = currentCertificate({ hosts: [host] });
    for (const one of [first, second]) events?.issued(one?.subject ?? "", { chain, key });
    await isActive(victim, host);
    expect(codes(await shown(attacker, host))).toEqual(["HOSTNAME_TAKEN"]);
    expect(await visited(host)).toBe(victim.app);
    expect(service.context.store.all("SELECT app FROM hostnames WHERE issued_chain IS NOT NULL")).toHaveLength(1);
  });

  test("F70: a hostname of another App of the organization is refused with the name of that App, until it is removed there", async () => {
    const { victim } = await withTenants();
    const second = { ...victim, app: "second" };
    await victim.call("POST", "/apps", { name: second.app, org_slug: victim.org });
    await gets(victim, host);
    const refused = await ask(second, host);
    expect([refused.status, refused.body.error]).toEqual([
      422,
      `Validation failed: hostname "${host}" belongs to App ${victim.app} of this organization; remove it from App ${victim.app} first`,
    ]);
    expect((await second.call("GET", at(second))).body.total_count).toBe(0);
    // A wildcard and the names below it may be those of different Apps of an organization.
    await gets(second, "*.example.com");
    await victim.call("DELETE", at(victim, host));
    await gets(second, host);
  });
});

describe("F71: names of the service", () => {
  test.each([
    "app-of-blue.localhost",
    "9.app-of-blue.localhost",

    "*.app-of-blue.localhost",
    "a.b.localhost",
  ])("F71: %s is nobody's hostname", async (hostname) => {
    const { attacker } = await withTenants();
    const error = `Validation failed: hostname "${hostname}" is a name of the service; use a name of your own domain`;
    const upload = { hostname, ...currentCertificate({ hosts: [hostname] }) };
    for (const answer of [await ask(attacker, hostname), await attacker.call("POST", `${at(attacker)}/custom`, upload)])
      expect([answer.status, answer.body.error]).toEqual([422, error]);
    expect((await attacker.call("GET", at(attacker))).body.total_count).toBe(0);
  });

  test("F71: targets of CNAME records, the name of the API and addresses are nobody's hostnames", async () => {
    const { attacker, visited } = await withTenants({ allowHosts: ["Machines.Example.org"] });
    for (const hostname of ["app-of-blue.machines.test", "machines.example.org", "127.42.0.10"])
      expect([hostname, (await ask(attacker, hostname)).status]).toEqual([hostname, 422]);
    await gets(attacker, "*.example.org");
    expect(await visited("any.example.org")).toBe(attacker.app);
    expect(await visited("machines.example.org")).toMatch(/^no App has the host name/);
  });

  test("F71: an App's own name goes before a hostname of an older store", async () => {
    const { attacker, victim, named, visited, service } = await withTenants();
    const name = `${victim.app}.localhost`;
    const { store } = service.context;
    await gets(attacker, host);
    await store.write(() => store.run("UPDATE hostnames SET hostname = ?", name));
    expect(await visited(name)).toBe(victim.app);
    expect(await named(name)).toBe(`DNS:${name}, DNS:*.${name}`);
    expect(await visited(`a.${name}`)).toMatch(/^no App has the host name/);
    const certificate = await served({ service } as Parameters<typeof served>[0], name);
    expect(certificate.subjectAltName).not.toContain(host);
  });
});

describe("F73: certificates of other organizations", () => {
  test("F73: no App gets the key of another organization's hostname, for a cluster or at its ports", async () => {
    const { attacker, victim, service } = await withTenants();
    await gets(victim, host);
    await gets(victim, "*.example.com");
    for (const hostname of [host, "login.example.com"]) await ask(attacker, hostname);
    const { context, proxy } = service;
    expect(appSubject(context, attacker.id)?.certificates).toEqual([]);
    expect(appSubject(context, victim.id)?.certificates.map(({ hostname }) => hostname)).toEqual([
      "*.example.com",
      host,
    ]);
    const urls = (await proxy?.addressesOf({ id: attacker.id, name: attacker.app })) ?? [];
    const port = Number(
      urls
        .find(({ url }) => url.startsWith("tls:"))
        ?.url.split(":")
        .at(-1),
    );
    for (const [name, expected] of [
      [host, "DNS:localhost"],
      ["login.example.com", "DNS:localhost"],
      [`${attacker.app}.localhost`, `DNS:${attacker.app}.localhost, DNS:*.${attacker.app}.localhost`],
    ] as const)
      expect([name, (await secured("127.0.0.1", port, name)).getPeerX509Certificate()?.subjectAltName]).toEqual([
        name,
        expected,
      ]);
  });

  test.runIf(hasLoopback)("F73: an App's own address serves no certificate of another organization", async () => {
    const { attacker, victim } = await withTenants();
    await gets(victim, host);
    await ask(attacker, host);
    const { ip } = (await attacker.call("POST", `/apps/${attacker.app}/ip_assignments`, { type: "v4" })).body;
    const nameFor = async (name?: string) => {
      const socket = await secured(ip, 8883, name);
      return socket.getPeerX509Certificate()?.subjectAltName;
    };
    await expect.poll(() => nameFor().catch(() => undefined)).toBe("DNS:localhost");
    expect(await nameFor(host)).toBe("DNS:localhost");
  });
});

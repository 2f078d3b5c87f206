// Certificates from the service's own authority, and uploaded ones: the proxy serves them by the name that a client asks for.
import { once } from "node:events";
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect as connectTls } from "node:tls";
import { expect, test } from "vitest";
import { ManualClock } from "../../../service/index.ts";
import { simulatedIssuer } from "../../../service/runtime/certificateIssuer.ts";
import { setDns, type DnsRecords } from "../../../service/runtime/dns.ts";
import { rootFile } from "../../../service/runtime/localAuthority.ts";
import { isResolver, type Resolver } from "../../../service/runtime/resolver.ts";
import type { RuntimeHost } from "../../../service/runtime/runtime.ts";
import { SimulatedRuntime } from "../../../service/runtime/simulated.ts";
import { currentCertificate, makeCertificate } from "../../support/certificates.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { withApp } from "../client.ts";
import { folder } from "../command.ts";
import { served, withReach } from "../reachable.ts";

const at = "/apps/web/certificates";
const host = "www.example.com";
const day = 24 * 3600_000;

type App = Awaited<ReturnType<typeof withReach>>;

const pathOf = (hostname: string) => `${at}/${encodeURIComponent(hostname)}`;
const shown = async ({ call }: App, hostname: string) => (await call("GET", pathOf(hostname))).body;

async function issued(app: App, hostname: string): Promise<void> {
  await app.call("POST", `${at}/acme`, { hostname });
  await expect.poll(async () => (await shown(app, hostname)).status).toBe("active");
}

const nameOf = async (app: App, servername: string) => (await served(app, servername)).subjectAltName;

test("a hostname gets a certificate of the local authority, which is stored and served by its name", async () => {
  const data = folder();
  const app = await withReach({ data });
  await issued(app, host);
  const detail = await shown(app, host);
  expect(detail.certificates).toEqual([
    {
      ...{ source: "fly", status: "active", created_at: expect.any(String), expires_at: expect.any(String) },
      issuer: "machines-service local authority",
      issued: [
        {
          certificate_authority: "machines_service_local_authority",
          expires_at: expect.any(String),
          type: "ecdsa",
        },
      ],
    },
  ]);
  const ca = readFileSync(rootFile(data), "utf8");
  const socket = connectTls({ port: app.service.proxy?.ports.https ?? 0, host: "127.0.0.1", servername: host, ca });
  afterThisTest(() => void socket.destroy());
  await once(socket, "secureConnect");
  expect(Date.parse(socket.getPeerCertificate().valid_to)).toBe(Date.parse(detail.certificates[0].expires_at));
  const { serialNumber } = await served(app, host);
  await app.close();
  const again = await withReach({ data });
  expect((await served(again, host)).serialNumber).toBe(serialNumber);
  expect((await served(again, host.toUpperCase())).serialNumber).toBe(serialNumber);
});

test("a hostname without a certificate, and one whose certificates are deleted, are served none of their name", async () => {
  const app = await withReach();
  setDns(app.service.context.store, host, {});
  await app.call("POST", `${at}/acme`, { hostname: host });
  expect(await nameOf(app, host)).toBe("DNS:localhost");
  setDns(app.service.context.store, host, undefined);
  await app.call("POST", `${pathOf(host)}/check`);
  await expect.poll(() => nameOf(app, host)).toBe(`DNS:${host}`);
  await app.call("DELETE", `${pathOf(host)}/acme`);
  expect(await nameOf(app, host)).toBe("DNS:localhost");
});

test("a wildcard serves the names below it, and a certificate of a name itself comes first", async () => {
  const app = await withReach();
  await issued(app, "*.example.com");
  expect(await nameOf(app, host)).toBe("DNS:*.example.com");
  expect(await nameOf(app, "a.b.example.com")).toBe("DNS:localhost");
  await issued(app, host);
  expect(await nameOf(app, host)).toBe(`DNS:${host}`);
});

test("an uploaded certificate is served instead of an issued one, until it expires", async () => {
  const app = await withReach();
  await issued(app, host);
  const authority = currentCertificate({ commonName: "Test Authority", hosts: [] });
  const by = { commonName: "Test Authority", private_key: authority.private_key };
  const leaf = currentCertificate({ hosts: [host], by, until: new Date(Date.now() + 10 * day) });
  await app.call("POST", `${at}/custom`, {
    ...{ hostname: host, private_key: leaf.private_key },
    fullchain: leaf.fullchain + authority.fullchain,
  });
  const first = await served(app, host);
  expect(first.fingerprint256).toBe(new X509Certificate(leaf.fullchain).fingerprint256);
  app.service.context.clock.advance(11 * day);
  expect((await served(app, host)).fingerprint256).not.toBe(first.fingerprint256);
  expect(await nameOf(app, host)).toBe(`DNS:${host}`);
});

test("an uploaded certificate that is replaced while the DNS does not answer is served; earlier the hostname lost it", async () => {
  const app = await withReach();
  let answer: DnsRecords = { unreachable: "ETIMEOUT" };
  const resolver: Resolver = {
    name: "test",
    recordsOf: () => Promise.resolve(answer),
    addressesOf: () => Promise.resolve([]),
    textsOf: () => Promise.resolve([]),
  };
  Object.assign(app.service.context, { resolver });
  const upload = async () => {
    const certificate = currentCertificate({ hosts: [host] });
    const { body } = await app.call("POST", `${at}/custom`, { hostname: host, ...certificate });
    return { body, fingerprint: new X509Certificate(certificate.fullchain).fingerprint256 };
  };
  // Nothing has proven the ownership yet.
  const first = await upload();
  expect(first.body.status).toBe("pending_ownership");
  answer = { ownership_txt: first.body.dns_requirements.ownership.app_value };
  expect((await app.call("POST", `${pathOf(host)}/check`)).body.status).toBe("active");
  answer = { unreachable: "ETIMEOUT" };
  const second = await upload();
  expect(second.body).toMatchObject({ status: "active", validation_errors: [{ code: "DNS_UNREACHABLE" }] });
  expect((await served(app, host)).fingerprint256).toBe(second.fingerprint);
  // An answer without the record still ends it.
  answer = {};
  expect((await upload()).body.status).toBe("pending_ownership");
});

test("an engine hears that an uploaded certificate has expired, also one of an older store; earlier it did not", async () => {
  const data = folder();
  const heard = new Set<string>();
  const start = async () => {
    const clock = new ManualClock();
    const runtime = (given: RuntimeHost) =>
      Object.assign(new SimulatedRuntime(given), {
        changed: (ids: ReadonlySet<string>) => ids.forEach((id) => heard.add(id)),
      });
    return { ...(await withApp({ data, clock, runtime })), clock };
  };
  const { call, close, clock, service } = await start();
  const { store } = service.context;
  const { id } = (await call("GET", "/apps/web")).body;
  const upload = (hostname: string, until: number) =>
    call("POST", `${at}/custom`, {
      hostname,
      ...makeCertificate({ hosts: [hostname], until: new Date(clock.now() + until) }),
    });
  await upload(host, 10 * day);
  await upload("old.example.com", 20 * day);
  await upload("gone.example.com", 15 * day);
  await call("DELETE", `${pathOf("gone.example.com")}/custom`);
  // A renewed one does not expire with the one before.
  await upload("renewed.example.com", 12 * day);
  await upload("renewed.example.com", 30 * day);
  await expect.poll(() => heard).toContain(id);
  const heardBy = async (days: number) => {
    heard.clear();
    clock.advance(days * day);
    // What is heard of a later change is heard after it.
    const { id: other } = (await call("POST", "/apps", { name: `after-${days}`, org_slug: "personal" })).body;
    await expect.poll(() => heard).toContain(other);
    return heard.has(id);
  };
  expect([await heardBy(9), await heardBy(2), await heardBy(8)]).toEqual([false, true, false]);
  await store.write(() => store.run("DELETE FROM timers WHERE subject LIKE '%old.example.com'"));
  await close();
  const again = await start();
  again.clock.advance(19 * day);
  heard.clear();
  again.clock.advance(2 * day);
  await expect.poll(() => heard).toContain(id);
});

test("a certificate is renewed after two thirds of its time, and the next connection gets the new one", async () => {
  const app = await withReach();
  await issued(app, host);
  const { serialNumber } = await served(app, host);
  app.service.context.clock.advance(59 * day);
  expect((await served(app, host)).serialNumber).toBe(serialNumber);
  app.service.context.clock.advance(2 * day);
  await expect.poll(async () => (await served(app, host)).serialNumber).not.toBe(serialNumber);
  const expires = Date.parse((await shown(app, host)).certificates[0].expires_at);
  expect(expires - app.service.context.clock.now()).toBeGreaterThan(89 * day);
});

test("a hostname whose certificate was simulated gets a real one from the next run of the service", async () => {
  const data = folder();
  const before = await withReach({ data, issuer: simulatedIssuer });
  await issued(before, host);
  expect(await nameOf(before, host)).toBe("DNS:localhost");
  await before.close();
  const app = await withReach({ data });
  await expect.poll(() => nameOf(app, host)).toBe(`DNS:${host}`);
  expect((await shown(app, host)).status).toBe("active");
});

test.each([
  ["127.0.0.1", true],
  ["127.0.0.1:53", true],
  ["::1", true],
  ["[::1]:5353", true],
  ["", false],
  ["localhost", false],
  ["127.0.0.1:0", false],
  ["127.0.0.1:70000", false],
  ["[127.0.0.1]:53", false],
  ["300.0.0.1", false],
])("%j is the address of a resolver: %s", (text, is) => {
  expect(isResolver(text)).toBe(is);
});

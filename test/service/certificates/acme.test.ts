// Certificates from a real ACME authority, Pebble, which looks at the service's proxy and at a DNS server of the test.
import { once } from "node:events";
import { createServer as createHttps, request as sendHttps } from "node:https";
import { connect as connectTls } from "node:tls";
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import acme from "acme-client";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { acmeIssuer } from "../../../service/runtime/acme/index.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import {
  blocked,
  findPebble,
  startAuthority,
  startDns,
  type TestAuthority,
  type TestDns,
} from "../../support/pebble.ts";
import { currentCertificate } from "../../support/certificates.ts";
import { trust } from "../../support/trust.ts";
import { folder } from "../command.ts";
import { callerWith } from "../client.ts";
import { served, withReach } from "../reachable.ts";
import { freePort } from "../../support/freePort.ts";

let programs = { pebble: "", dns: "" };
const at = "/apps/web/certificates";
const host = "www.example.com";
const day = 24 * 3600_000;

type App = Awaited<ReturnType<typeof withReach>>;

const pathOf = (hostname: string) => `${at}/${encodeURIComponent(hostname)}`;
const ask = ({ call }: App, hostname: string) => call("POST", `${at}/acme`, { hostname });
const check = async ({ call }: App, hostname: string) => (await call("POST", `${pathOf(hostname)}/check`)).body;
const shown = async ({ call }: App, hostname: string) => (await call("GET", pathOf(hostname))).body;
const problems = async (app: App, hostname: string): Promise<string> =>
  JSON.stringify((await shown(app, hostname)).validation_errors);
const isActive = (app: App, hostname: string) =>
  expect.poll(async () => (await shown(app, hostname)).status).toBe("active");

interface Ports {
  readonly http: number;
  readonly https: number;
}

interface Started {
  readonly app: App;
  readonly ports: Ports;
  readonly authority: TestAuthority;
  readonly dns: TestDns;
}

interface Wishes {
  readonly data?: string;
  /** Another address of the authority than its own. */
  readonly via?: (authority: TestAuthority) => Promise<string>;
  /** Ports at which nothing listens, instead of those of the proxy. */
  readonly closed?: readonly ("http" | "https")[];
  /** What was started before, without its service. */
  readonly again?: Started;
  readonly remembers?: boolean;
}

/** A service that asks an authority, which looks at its proxy. */
async function start({ data, via, closed = [], again, remembers = false }: Wishes = {}): Promise<Started> {
  const dns = again?.dns ?? (await startDns(programs));
  const ports = again?.ports ?? { http: await freePort(), https: await freePort() };
  const seen = { ...ports, ...Object.fromEntries(closed.map((scheme) => [scheme, 9])) };
  const authority = again?.authority ?? (await startAuthority(programs, { dns, ...seen, remembers }));
  trust(authority.trusted);
  const issuer = acmeIssuer((await via?.(authority)) ?? authority.directory);
  const app = await withReach({ issuer, dns: dns.address, ...(data ? { data } : {}) }, undefined, ports);
  return { app, ports, authority, dns };
}

describe("certificates from an ACME authority", () => {
  let found: typeof programs | undefined;
  beforeAll(async () => {
    found = await findPebble();
    if (found) programs = found;
  });
  beforeEach(({ skip }) => skip(found === undefined));

  test("a certificate is issued when the authority gets its answer by HTTP, and served with its chain", async () => {
    const { app, authority } = await start();
    expect((await ask(app, host)).body).toMatchObject({ status: "pending_validation", configured: true });
    await isActive(app, host);
    const detail = await shown(app, host);
    expect(detail).toMatchObject({
      validation_errors: [],
      certificates: [{ source: "fly", issuer: expect.stringMatching(/Pebble/), issued: [{ type: "ecdsa" }] }],
    });
    const ca = await authority.root();
    const socket = connectTls({ port: app.service.proxy?.ports.https ?? 0, host: "127.0.0.1", servername: host, ca });
    afterThisTest(() => void socket.destroy());
    await once(socket, "secureConnect");
    expect(socket.authorized).toBe(true);
    const expires = Date.parse(socket.getPeerCertificate().valid_to);
    expect(Date.parse(detail.certificates[0].expires_at)).toBe(expires);
    // The key is sealed.
    const row = app.service.context.store.get<{ issued_key: Uint8Array }>("SELECT issued_key FROM hostnames");
    expect(Buffer.from(row?.issued_key ?? []).toString("latin1")).not.toContain("PRIVATE KEY");
  });

  test("where HTTP is closed the authority gets its answer by TLS, and other clients notice nothing", async () => {
    const { app } = await start({ closed: ["http"] });
    await app.call("POST", "/apps", { name: "other", org_slug: "personal" });
    await ask(app, host);
    await expect
      .poll(() => served(app, "web.localhost").then(({ subjectAltName }) => subjectAltName))
      .toBe("DNS:web.localhost, DNS:*.web.localhost");
    await isActive(app, host);
    expect((await served(app, host)).subjectAltName).toBe(`DNS:${host}`);
  });

  test("a wildcard asks for a TXT record, which is found by a check, also after a restart of the service", async () => {
    const data = folder();
    const wildcard = "*.example.com";
    const before = await start({ data });
    await ask(before.app, wildcard);
    await expect.poll(() => problems(before.app, wildcard)).toContain("DNS_CHALLENGE_MISSING");
    const said = await problems(before.app, wildcard);
    await before.app.close();
    const { app, dns } = await start({ data, again: before });
    await check(app, wildcard);
    expect(await problems(app, wildcard)).toContain(/the value ([\w-]{43})\./.exec(said)?.[1]);
    const value = / with the value ([\w-]{43})\./.exec(said)?.[1] ?? "";
    expect(said).toContain(`Create a TXT record _acme-challenge.example.com with the value ${value}.`);
    await dns.set("set-txt", { host: "_acme-challenge.example.com.", value });
    await check(app, wildcard);
    await isActive(app, wildcard);
    expect((await served(app, "any.example.com")).subjectAltName).toBe("DNS:*.example.com");
  });

  test("an order that was ended elsewhere is replaced by another one", async () => {
    const data = folder();
    const wildcard = "*.example.com";
    const { app, authority, dns } = await start({ data });
    await ask(app, wildcard);
    const valueIn = async () => / with the value ([\w-]{43})\./.exec(await problems(app, wildcard))?.[1];
    await expect.poll(valueIn).toBeDefined();
    const first = await valueIn();
    const client = new acme.Client({
      directoryUrl: authority.directory,
      accountKey: readFileSync(join(data, "acme-account.key"), "utf8"),
    });
    await client.createAccount({ onlyReturnExisting: true });
    const { acme_order = "" } =
      app.service.context.store.get<{ acme_order: string }>("SELECT acme_order FROM hostnames") ?? {};
    const order = await client.getOrder({ url: JSON.parse(acme_order).order } as never);
    for (const one of await client.getAuthorizations(order)) await client.deactivateAuthorization(one);
    await check(app, wildcard);
    await expect.poll(valueIn).not.toBe(first);
    await dns.set("set-txt", { host: "_acme-challenge.example.com.", value: await valueIn() });
    await check(app, wildcard);
    await isActive(app, wildcard);
  });

  test("a hostname that the authority refuses, and one that it cannot check, say why and stay pending", async () => {
    const { app } = await start({ closed: ["http", "https"] });
    await ask(app, blocked);
    await expect.poll(() => problems(app, blocked)).toMatch(/AUTHORITY_REFUSED.*refused: .*policy/i);
    await ask(app, host);
    await expect.poll(() => problems(app, host)).toMatch(/AUTHORITY_CHECK_FAILED.*tls-alpn-01: Failed to connect/);
    expect(await shown(app, host)).toMatchObject({ status: "pending_validation", rate_limited_until: null });
    // It has failed once; after five times it has to wait.
    for (let failures = 2; failures <= 5; failures++) {
      await check(app, host);
      const attempts = () =>
        app.service.context.store.get<{ n: number }>(
          "SELECT json_array_length(attempts) AS n FROM hostnames WHERE hostname = ?",
          host,
        )?.n;
      await expect.poll(attempts).toBe(failures % 5);
    }
    expect((await shown(app, host)).rate_limited_until).toMatch(/Z$/);
  });

  test("when the authority limits requests, none is sent before it accepts them again", async () => {
    let limited = 0;
    const { app } = await start({
      via: async (authority) => {
        const { port, directory } = authority;
        const front = await limiting(authority, () => ++limited < 3);
        return directory.replace(`:${port}/`, `:${front}/`);
      },
    });
    await ask(app, host);
    await expect.poll(() => problems(app, host)).toMatch(/AUTHORITY_RATE_LIMITED.*too many/);
    const { rate_limited_until: until } = await shown(app, host);
    const left = Date.parse(until) - app.service.context.clock.now();
    expect(left).toBeGreaterThan(3500_000);
    expect(left).toBeLessThanOrEqual(7200_000);
    const seen = limited;
    await check(app, host);
    app.service.context.clock.advance(3600_000);
    await check(app, host);
    expect(limited).toBe(seen);
    app.service.context.clock.advance(3601_000);
    // The answer has to arrive before the clock moves: the time limit is counted from then.
    const limitedUntil = async () => Date.parse((await shown(app, host)).rate_limited_until ?? until);
    await expect.poll(limitedUntil).toBeGreaterThan(Date.parse(until));
    expect(limited).toBe(2);
    app.service.context.clock.advance(7201_000);
    await isActive(app, host);
  });

  test("an authority that is down is tried again, and its certificate comes once it is back", async () => {
    const { app, authority, dns, ports } = await start();
    await authority.stop();
    await ask(app, host);
    await expect.poll(() => problems(app, host)).toMatch(/AUTHORITY_UNREACHABLE.*ECONNREFUSED/);
    expect(await shown(app, host)).toMatchObject({ status: "pending_validation", rate_limited_until: null });
    await startAuthority(programs, { dns, ...ports, port: authority.port });
    app.service.context.clock.advance(11 * 60_000);
    await isActive(app, host);
  });

  test("a certificate is renewed before it ends, and the next connection gets the new one", async () => {
    const { app } = await start();
    await ask(app, host);
    await isActive(app, host);
    const { serialNumber } = await served(app, host);
    app.service.context.clock.advance(61 * day);
    await expect.poll(async () => (await served(app, host)).serialNumber).not.toBe(serialNumber);
    expect((await shown(app, host)).status).toBe("active");
  });

  test("while a renewal fails the old certificate is served until it ends, then the hostname is pending", async () => {
    const { app, authority } = await start();
    await ask(app, host);
    await isActive(app, host);
    const { serialNumber } = await served(app, host);
    await authority.stop();
    app.service.context.clock.advance(61 * day);
    await expect.poll(() => problems(app, host)).toContain("AUTHORITY_UNREACHABLE");
    expect((await shown(app, host)).status).toBe("active");
    expect((await served(app, host)).serialNumber).toBe(serialNumber);
    app.service.context.clock.advance(30 * day);
    await expect.poll(async () => (await shown(app, host)).status).toBe("pending_validation");
    expect((await served(app, host)).subjectAltName).toBe("DNS:localhost");
  });

  test("what was requested before the service ended is requested again after it begins", async () => {
    const data = folder();
    const first = await start({ data });
    await first.authority.stop();
    await ask(first.app, host);
    await expect.poll(() => problems(first.app, host)).toContain("AUTHORITY_UNREACHABLE");
    await first.app.close();
    const { dns, ports, authority } = first;
    await startAuthority(programs, { dns, ...ports, port: authority.port });
    const { app } = await start({ data, again: first });
    await isActive(app, host);
  });

  test("F70: what one organization has proved to the authority is no proof for another one", async () => {
    const { app, dns } = await start({ remembers: true });
    await ask(app, host);
    await isActive(app, host);
    await app.call("DELETE", pathOf(host));
    // The authority finds nothing there.
    await dns.set("add-a", { host: `${host}.`, addresses: ["127.0.0.9"] });
    const call = callerWith(app, "other", { slug: "other" });
    await call("POST", "/apps", { name: "theirs", org_slug: "other" });
    await call("POST", "/apps/theirs/certificates/acme", { hostname: host });
    const theirs = async () => (await call("GET", `/apps/theirs/certificates/${host}`)).body;
    await expect.poll(async () => JSON.stringify(await theirs())).toMatch(/AUTHORITY_CHECK_FAILED|"active"/);
    expect((await theirs()).status).toBe("pending_validation");
  });

  test("an issuer that may issue for any name is asked once the DNS says that the hostname is the App's", async () => {
    const dns = await startDns(programs);
    const asked: string[] = [];
    const request = ({ hostname }: { readonly hostname: string }) => void asked.push(hostname);
    const app = await withReach({ dns: dns.address, issuer: () => ({ name: "any", needsOwnership: true, request }) });
    for (const hostname of [host, "*.example.net"]) {
      const { body } = await ask(app, hostname);
      const before = asked.length;
      await check(app, hostname);
      expect(await problems(app, hostname)).toContain("OWNERSHIP_NOT_PROVEN");
      expect(asked.length).toBe(before);
      const { name, app_value: value } = body.dns_requirements.ownership;
      await dns.set("set-txt", { host: `${name}.`, value });
      await check(app, hostname);
      expect(asked.at(-1)).toBe(hostname);
      expect((await shown(app, hostname)).validation_errors).toEqual([]);
    }
  });

  test("the DNS decides about a custom certificate, and a resolver that does not answer is reported", async () => {
    const { app, dns } = await start();
    const own = currentCertificate({ hosts: [host] });
    const { body } = await app.call("POST", `${at}/custom`, { hostname: host, ...own });
    expect(body.status).toBe("pending_ownership");
    const { name, app_value: value } = body.dns_requirements.ownership;
    await dns.set("set-txt", { host: `${name}.`, value });
    expect(await check(app, host)).toMatchObject({
      status: "active",
      dns_provider: dns.address,
      dns_records: { a: ["127.0.0.1"], ownership_txt: value },
    });
    expect((await served(app, host)).fingerprint256).toBe(new X509Certificate(own.fullchain).fingerprint256);
    await dns.set("set-servfail", { host: `${host}.` });
    // What it has found before still holds.
    expect(await check(app, host)).toMatchObject({
      status: "active",
      validation_errors: [{ code: "DNS_UNREACHABLE" }],
    });
    expect((await served(app, host)).fingerprint256).toBe(new X509Certificate(own.fullchain).fingerprint256);
  });
});

/** An authority in front of another that refuses orders as long as it is to. */
async function limiting({ port, trusted, key }: TestAuthority, isLimited: () => boolean): Promise<number> {
  const front = createHttps({ cert: trusted, key }, (request, response) => {
    if (request.url === "/order-plz" && isLimited()) {
      request.resume();
      response.writeHead(429, { "content-type": "application/problem+json", "retry-after": "7200" });
      response.end(JSON.stringify({ type: "urn:ietf:params:acme:error:rateLimited", detail: "too many new orders" }));
      return;
    }
    const { method, url, headers } = request;
    const passed = sendHttps(
      { host: "127.0.0.1", port, servername: "localhost", method, path: url, headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    request.pipe(passed);
  });
  const free = await freePort();
  front.listen(free, "127.0.0.1");
  await once(front, "listening");
  afterThisTest(() => {
    front.close();
    front.closeAllConnections();
  });
  return free;
}

// The service's own names: its hostname, and the names of Apps below its domain, with certificates from a real ACME authority.
import { once } from "node:events";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { acmeIssuer } from "../../../service/runtime/acme/index.ts";
import type { IssuerFactory, IssuerHost } from "../../../service/runtime/certificateIssuer.ts";
import { ManualClock } from "../../../service/index.ts";
import { findPebble, startAuthority, startDns } from "../../support/pebble.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { trust } from "../../support/trust.ts";
import { folder } from "../command.ts";
import { get, withReach } from "../reachable.ts";
import { freePort } from "../../support/freePort.ts";

const hostname = "machines.example.com";
const appsDomain = "apps.example.com";
const publicNames = { hostname, appsDomain };
const web = [
  { port: 80, handlers: ["http"] },
  { port: 443, handlers: ["tls", "http"] },
] as const;

type App = Awaited<ReturnType<typeof withReach>>;

/** The names in the certificate that a client gets for a name. */
async function namesFor(app: App, servername: string, ca?: string): Promise<string> {
  const port = app.service.proxy?.ports.https ?? 0;
  const socket: TLSSocket = connectTls({
    host: "127.0.0.1",
    port,
    servername,
    rejectUnauthorized: ca !== undefined,
    ca,
  });
  afterThisTest(() => void socket.destroy());
  await once(socket, "secureConnect");
  const { subjectaltname = "" } = socket.getPeerCertificate();
  socket.destroy();
  return subjectaltname;
}

const https = (app: App, host: string, path = "/", options: object = {}) =>
  get(`https://127.0.0.1:${app.service.proxy?.ports.https}${path}`, host, { servername: host, ...options });
const http = (app: App, host: string, path = "/", options: object = {}) =>
  get(`http://127.0.0.1:${app.service.proxy?.ports.http}${path}`, host, options);

describe("names of the service, without an ACME authority", () => {
  test("the API answers at its hostname, by HTTPS alone", async () => {
    const app = await withReach({ publicNames });
    const { https: port } = app.service.proxy?.ports ?? {};
    expect(JSON.parse((await https(app, hostname)).text)).toMatchObject({ name: "machines-service" });
    const headers = { host: hostname, authorization: `Bearer ${app.service.token}` };
    expect(await https(app, hostname, "/v1/apps/web", { headers })).toMatchObject({ status: 200 });
    expect(await http(app, hostname, "/v1/apps?a=1")).toMatchObject({
      status: 301,
      location: `https://${hostname}:${port}/v1/apps?a=1`,
    });
    expect(await http(app, hostname, "/v1/apps", { method: "POST" })).toMatchObject({ status: 308 });
    expect(await namesFor(app, hostname)).toBe(`DNS:${hostname}`);
  });

  test("the cookie of the console is secure at the hostname, and plain at this computer", async () => {
    const app = await withReach({ publicNames });
    const open = async (url: string, options: object) => {
      const body = JSON.stringify({ code: app.service.consoleCode() });
      const { cookies } = await sent(url, body, options);
      return cookies;
    };
    const { https: port } = app.service.proxy?.ports ?? {};
    const headers = { host: hostname, "content-length": "" };
    const secure = await open(`https://127.0.0.1:${port}/console/session`, { servername: hostname, headers });
    expect(secure).toMatch(/^__Host-machines_console_.*; Secure$/);
    const plain = await open(`${app.url}/console/session`, {});
    expect(plain).toMatch(/^machines_console_/);
    expect(plain).not.toContain("Secure");
  });

  test("requests for WebSockets at the hostname are the API's", async () => {
    const app = await withReach({ publicNames });
    const port = app.service.proxy?.ports.https ?? 0;
    const socket = connectTls({ host: "127.0.0.1", port, servername: hostname, rejectUnauthorized: false });
    afterThisTest(() => void socket.destroy());
    const lines = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: eA=="];
    const target = "/local/apps/web/machines/1/terminal";
    socket.write([`GET ${target} HTTP/1.1`, `Host: ${hostname}`, ...lines, "", ""].join("\r\n"));
    let text = "";
    socket.on("data", (part: Buffer) => (text += part.toString()));
    await once(socket, "close");
    expect(text).toMatch(/^HTTP\/1\.1 401 /);
    expect(text).toContain("token validation error");
  });

  test("each App answers below the domain, and its addresses say so", async () => {
    const app = await withReach({ publicNames });
    await app.offer(web);
    const { http: plain, https: secure } = app.service.proxy?.ports ?? {};
    expect(await https(app, `web.${appsDomain}`)).toMatchObject({ status: 200, text: `web.${appsDomain} /` });
    expect(await http(app, `WEB.${appsDomain}.`)).toMatchObject({ status: 200 });
    expect(await http(app, `other.${appsDomain}`)).toMatchObject({ status: 404 });
    expect(await http(app, `a.web.${appsDomain}`)).toMatchObject({ status: 404 });
    expect(await namesFor(app, `web.${appsDomain}`)).toBe(`DNS:web.${appsDomain}`);
    const urls = [`http://web.${appsDomain}:${plain}`, `https://web.${appsDomain}:${secure}`];
    const { addresses } = await app.service.app
      .inject({ url: "/local/apps/web/addresses", headers: { authorization: `Bearer ${app.service.token}` } })
      .then((answer) => answer.json<{ addresses: { url: string }[] }>());
    expect(addresses.map(({ url }) => url)).toEqual(urls);
    expect((await app.call("GET", "/apps/web")).body).toMatchObject({ http_url: urls[0], https_url: urls[1] });
  });

  test("no App can have a name of the service, also not by a wildcard", async () => {
    const app = await withReach({ publicNames });
    for (const name of [hostname, appsDomain, `other.${appsDomain}`, `*.${appsDomain}`, `a.b.${appsDomain}`]) {
      const { status, body } = await app.call("POST", "/apps/web/certificates/acme", { hostname: name });
      expect([name, status, body.error]).toEqual([name, 422, expect.stringContaining("name of the service")]);
    }
    expect((await app.call("POST", "/apps/web/certificates/acme", { hostname: "*.example.com" })).status).toBe(201);
    await app.offer(web);
    expect(JSON.parse((await https(app, hostname)).text)).toMatchObject({ name: "machines-service" });
  });
});

/** Sends a body, and returns the cookie of the answer. */
async function sent(url: string, body: string, { headers = {}, ...options }: { headers?: object } & object) {
  const { request } = url.startsWith("https:") ? await import("node:https") : await import("node:http");
  const length = { "content-length": body.length };
  const asked = request(url, {
    method: "POST",
    rejectUnauthorized: false,
    agent: false,
    ...options,
    headers: { ...headers, ...length },
  });
  asked.end(body);
  const [answer] = await once(asked, "response");
  answer.resume();
  return { status: answer.statusCode as number, cookies: String(answer.headers["set-cookie"]) };
}

/** A service on the clock of the test, whose authority the test plays. */
async function withAuthority(more: { readonly data?: string; readonly clock?: ManualClock } = {}) {
  const asked: string[] = [];
  let host: IssuerHost | undefined;
  const issuer: IssuerFactory = (given) => {
    host = given;
    return { name: "played", checksItself: true, request: ({ hostname: name }) => void asked.push(name) };
  };
  const { clock = new ManualClock(), ...kept } = more;
  const app = await withReach({ issuer, publicNames, clock, ...kept });
  const refuse = (name: string, more: object = {}): void =>
    host?.events.refused(`/${name}`, {
      ...{ code: "AUTHORITY_REFUSED", message: "no", remediation: "", isFailedCheck: true, ...more },
    });
  return { app, asked, clock, refuse };
}

describe("requests of certificates", () => {
  const name = `web.${appsDomain}`;

  test("one that was refused is repeated after longer and longer pauses, whatever clients ask", async () => {
    const { app, asked, clock, refuse } = await withAuthority();
    await app.offer(web);
    expect(asked).toEqual([hostname]);
    const of = () => asked.filter((one) => one === name).length;
    // This client waits for the answer of the authority.
    const first = namesFor(app, name);
    await expect.poll(of).toBe(1);
    refuse(name);
    expect(await first).toBe("DNS:localhost");
    for (const [round, minutes] of [10, 20, 40, 80].entries()) {
      expect(await namesFor(app, name)).toBe("DNS:localhost");
      clock.advance(minutes * 60_000 - 1);
      expect(await namesFor(app, name)).toBe("DNS:localhost");
      expect(of()).toBe(round + 1);
      clock.advance(1);
      await expect.poll(of).toBe(round + 2);
      refuse(name);
      await app.service.context.store.unsettled;
    }
  });

  test.each([
    ["repeated after a start", {}, [hostname]],
    ["not repeated after a start while the authority limits requests", { limitedUntil: Number.MAX_SAFE_INTEGER }, []],
  ])("one that was refused is %s", async (_, reason, again) => {
    const given = { data: folder(), clock: new ManualClock() };
    const first = await withAuthority(given);
    await first.app.offer(web);
    await expect.poll(() => first.asked).toEqual([hostname]);
    first.refuse(hostname, reason);
    await first.app.service.context.store.unsettled;
    await first.app.close();
    given.clock.advance(60_000);
    const second = await withAuthority(given);
    await second.app.offer(web);
    given.clock.advance(2000);
    await expect.poll(() => second.asked).toEqual(again);
    second.refuse(hostname, reason);
    // A request would be sent before this answer.
    expect(await namesFor(second.app, hostname)).toBe("DNS:localhost");
    expect(second.asked).toEqual(again);
  });

  test("while the authority limits them, none is made for any name", async () => {
    const { app, asked, clock, refuse } = await withAuthority();
    await app.offer(web);
    refuse(hostname, { limitedUntil: clock.now() + 3600_000 });
    await app.service.context.store.unsettled;
    expect(await namesFor(app, name)).toBe("DNS:localhost");
    expect(asked).toEqual([hostname]);
    clock.advance(3600_000);
    await expect.poll(() => asked).toEqual([hostname, hostname]);
  });

  test("at most 40 Apps get a request in an hour, and the others later", async () => {
    const { app, asked, clock } = await withAuthority();
    for (let i = 0; i < 42; i++) {
      await app.call("POST", "/apps", { name: `app-${i}`, org_slug: "personal" });
      await app.offer(web, `app-${i}`);
      const answered = namesFor(app, `app-${i}.${appsDomain}`);
      answered.catch(() => {});
      if (i >= 40) expect(await answered).toBe("DNS:localhost");
      else await expect.poll(() => asked.length).toBe(i + 2);
    }
    expect(asked).toHaveLength(41);
    clock.advance(3600_000);
    void namesFor(app, `app-41.${appsDomain}`).catch(() => {});
    await expect.poll(() => asked).toContain(`app-41.${appsDomain}`);
  });

  test("one of an App that is gone is not renewed", async () => {
    const { app, asked, clock, refuse } = await withAuthority();
    await app.offer(web);
    const waits = namesFor(app, name);
    await expect.poll(() => asked).toContain(name);
    refuse(name);
    await waits;
    await app.call("DELETE", "/apps/web?force=true");
    clock.advance(600_000);
    const { store } = app.service.context;
    await expect.poll(() => store.all("SELECT name FROM own_certificates")).toEqual([{ name: hostname }]);
    expect(asked.filter((one) => one === name)).toHaveLength(1);
  });
});

describe("names of the service, with an ACME authority", () => {
  let programs: Awaited<ReturnType<typeof findPebble>>;
  beforeAll(async () => {
    programs = await findPebble();
  });
  beforeEach(({ skip }) => skip(programs === undefined));

  /** An authority, and how to start a service that asks it; `asked` has the names of all orders. */
  async function begin() {
    if (!programs) throw new Error("no authority");
    const dns = await startDns(programs);
    const ports = { http: await freePort(), https: await freePort() };
    const authority = await startAuthority(programs, { dns, ...ports });
    trust(authority.trusted);
    const asked: string[] = [];
    const issuer: IssuerFactory = (host) => {
      const real = acmeIssuer(authority.directory)(host);
      return {
        name: real.name,
        checksItself: true,
        ...(real.challenges ? { challenges: real.challenges } : {}),
        request: (wanted) => {
          asked.push(wanted.hostname);
          real.request(wanted);
        },
        close: async () => real.close?.(),
      };
    };
    const data = folder();
    const start = () => withReach({ issuer, dns: dns.address, data, publicNames }, undefined, ports);
    return { start, asked, authority };
  }

  test("the first visitor of a name waits for its certificate, which is kept over a restart", async () => {
    const { start, asked, authority } = await begin();
    const app = await start();
    await app.offer(web);
    await expect.poll(() => namesFor(app, hostname)).toBe(`DNS:${hostname}`);
    const ca = await authority.root();
    // Many at once cause one order, and none of them makes other names wait.
    const many = Array.from({ length: 20 }, () => namesFor(app, `web.${appsDomain}`));
    expect(await namesFor(app, "web.localhost")).toBe("DNS:web.localhost, DNS:*.web.localhost");
    expect(new Set(await Promise.all(many)).size).toBeLessThanOrEqual(2);
    await expect.poll(() => namesFor(app, `web.${appsDomain}`)).toBe(`DNS:web.${appsDomain}`);
    expect(await namesFor(app, `web.${appsDomain}`, ca)).toBe(`DNS:web.${appsDomain}`);
    expect(await https(app, `web.${appsDomain}`, "/", { ca, rejectUnauthorized: true })).toMatchObject({ status: 200 });
    expect(asked).toEqual([hostname, `web.${appsDomain}`]);
    const row = app.service.context.store.get<{ key: Uint8Array }>("SELECT key FROM own_certificates");
    expect(Buffer.from(row?.key ?? []).toString("latin1")).not.toContain("PRIVATE KEY");
    await app.close();
    const again = await start();
    await again.offer(web);
    expect(await namesFor(again, hostname, ca)).toBe(`DNS:${hostname}`);
    expect(await namesFor(again, `web.${appsDomain}`, ca)).toBe(`DNS:web.${appsDomain}`);
    expect(asked).toEqual([hostname, `web.${appsDomain}`]);
    // The operator sees when the one of the hostname ends, and the first one of all Apps.
    const scraped = await fetch(`${again.url}/metrics`, {
      headers: { authorization: `Bearer ${again.service.token}` },
    }).then((answer) => answer.text());
    const metric = "machines_service_certificate_renewal_timestamp_seconds";
    expect(scraped).toContain(`${metric}{app="(service)",hostname="${hostname}"}`);
    expect(scraped).toContain(`${metric}{app="other Apps",hostname="other hostnames"}`);
    // It is renewed after two thirds of its time, while its App is there.
    again.service.context.clock.advance(60 * 24 * 3600_000);
    await expect.poll(() => asked.length).toBe(4);
    expect(new Set(asked.slice(2))).toEqual(new Set([hostname, `web.${appsDomain}`]));
  });

  test("names without an App that has a service cause no order", async () => {
    const { start, asked } = await begin();
    const app = await start();
    await app.call("POST", "/apps", { name: "bare", org_slug: "personal" });
    await expect.poll(() => namesFor(app, hostname)).toBe(`DNS:${hostname}`);
    for (const name of ["none", "bare", "a.web", "xn--nothing"])
      expect(await namesFor(app, `${name}.${appsDomain}`)).toBe("DNS:localhost");
    expect(await namesFor(app, appsDomain)).toBe("DNS:localhost");
    expect(asked).toEqual([hostname]);
    expect(app.service.context.store.all("SELECT name FROM own_certificates")).toEqual([{ name: hostname }]);
  });
});

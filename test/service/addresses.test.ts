// Addresses of Apps that are loopback addresses of this computer: the proxy answers at them.
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { request as sendHttp } from "node:http";
import { describe, expect, test } from "vitest";
import { seededRandom } from "../../service/index.ts";
import { bind, type Bind } from "../../service/runtime/bind.ts";
import { blockOf } from "../../service/runtime/loopback.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { withApp } from "./client.ts";
import { connected, echoed, get, hasLoopback, mayBindAll, secured, withReach } from "./reachable.ts";
import { freePort } from "../support/freePort.ts";

type App = Awaited<ReturnType<typeof withReach>>;

const http = { handlers: ["http"] };
const https = { handlers: ["tls", "http"] };

/** The error of the system, for a server that is to listen. */
const refusal = (code: string): Error => Object.assign(new Error(`listen ${code}`), { code });

/** Where `url` says that an App can be opened by its own addresses. */
const urlsOf = async (app: App, name = "web"): Promise<string[]> => {
  const { body } = await app.call("GET", `/apps/${name}`);
  const found = (await app.service.proxy?.addressesOf({ id: body.id, name })) ?? [];
  return found.filter(({ ip }) => ip !== undefined).map(({ url }) => url);
};

/** The log of a service. */
function log() {
  const lines: string[] = [];
  return { lines, log: { write: (line: string) => void lines.push(line) } };
}

function dataFolder(): string {
  const data = mkdtempSync(join(tmpdir(), "machines-addresses-"));
  afterThisTest(() => rmSync(data, { recursive: true, force: true }));
  return data;
}

describe.runIf(hasLoopback)("addresses of Apps", () => {
  test("at its own address an App answers any host name, HTTP, WebSockets and raw connections", async () => {
    const app = await withReach();
    const [ip, [web, raw, marked]] = [await app.assign("v4"), [await freePort(), await freePort(), await freePort()]];
    expect(blockOf(ip)).toBe(app.service.context.loopbackBlock);
    await app.offer([{ port: web, ...http }, { port: raw }, { port: marked, handlers: ["proxy_proto"] }]);
    await expect.poll(() => urlsOf(app)).toHaveLength(3);
    expect((await urlsOf(app)).sort()).toEqual(
      [`http://${ip}:${web}`, `tcp://${ip}:${raw}`, `tcp://${ip}:${marked}`].sort(),
    );
    expect(await get(`http://${ip}:${web}/a?b=1`)).toMatchObject({ status: 200, text: "any.example /a?b=1" });
    const upgrade = sendHttp(`http://${ip}:${web}/`, { headers: { connection: "upgrade", upgrade: "websocket" } });
    upgrade.end();
    const [, socket] = await once(upgrade, "upgrade");
    expect(await echoed(socket)).toBe("hello\n");
    socket.destroy();
    expect(await echoed(await connected(ip, raw))).toBe("hello\n");
    expect(await echoed(await connected(ip, marked))).toMatch(
      new RegExp(String.raw`^PROXY TCP4 127\.0\.0\.1 ${ip.replaceAll(".", String.raw`\.`)} \d+ ${marked}\r\nhello\n$`),
    );
    // Another App has another address, and not these ports.
    await app.call("POST", "/apps", { name: "other", org_slug: "personal" });
    const other = await app.assign("v4", "other");
    expect(other).not.toBe(ip);
    expect((await get(`http://${other}:${web}/`)).status).toBe("ECONNREFUSED");
  });

  test("HTTPS and TLS have the certificate of the requested name, or of the App's hostname", async () => {
    const app = await withReach();
    const [ip, [plain, web, raw]] = [await app.assign("v4"), [await freePort(), await freePort(), await freePort()]];
    await app.offer([
      { port: plain, ...http, force_https: true },
      { port: web, ...https },
      { port: raw, handlers: ["tls"] },
    ]);
    await expect.poll(() => urlsOf(app)).toHaveLength(3);
    const nameOf = async (port: number, servername?: string): Promise<string | undefined> =>
      (await secured(ip, port, servername)).getPeerCertificate().subjectaltname;
    expect(await nameOf(web)).toBe("DNS:localhost");
    expect(await nameOf(web, "web.localhost")).toBe("DNS:web.localhost, DNS:*.web.localhost");
    expect(await get(`https://${ip}:${web}/x`)).toMatchObject({ status: 200, text: "any.example /x" });
    expect(await get(`http://${ip}:${plain}/x`, `shop.example:${plain}`)).toMatchObject({
      status: 301,
      location: `https://shop.example:${web}/x`,
    });
    expect(await echoed(await secured(ip, raw))).toBe("hello\n");
    const kept = await secured(ip, raw);
    await app.call("POST", "/apps/web/certificates/acme", { hostname: "shop.example" });
    await expect.poll(() => nameOf(web)).toBe("DNS:shop.example");
    await expect.poll(() => nameOf(raw)).toBe("DNS:shop.example");
    // A new certificate ends no connection.
    expect(await echoed(kept)).toBe("hello\n");
  });

  test("an App is found by its name at the shared address, if it has that address", async () => {
    const app = await withReach();
    const [plain, web, raw] = [await freePort(), await freePort(), await freePort()];
    await app.call("POST", "/apps", { name: "other", org_slug: "personal" });
    await app.call("POST", "/apps", { name: "third", org_slug: "personal" });
    const ip = await app.assign("shared_v4");
    expect(await app.assign("shared_v4", "other")).toBe(ip);
    await app.offer([
      { port: plain, ...http },
      { port: web, ...https },
    ]);
    await app.offer([{ port: plain, ...http }, { port: web, handlers: ["tls"] }, { port: raw }], "other");
    await app.offer([{ port: plain, ...http }], "third");
    const named = async (name: string) => get(`http://${ip}:${plain}/`, `${name}.localhost`);
    await expect.poll(() => named("web")).toMatchObject({ status: 200, text: "web.localhost /" });
    expect(await named("other")).toMatchObject({ status: 200, text: "other.localhost /" });
    expect(await named("third")).toMatchObject({ status: 404 });
    // One port has HTTPS of one App and TLS of another.
    const secure = `https://${ip}:${web}/`;
    await expect
      .poll(() => get(secure, "web.localhost", { servername: "web.localhost" }))
      .toMatchObject({ status: 200, text: "web.localhost /" });
    expect(await get(secure, "web.localhost")).toMatchObject({ status: 200 });
    const kept = await secured(ip, web, "other.localhost");
    expect(await echoed(kept)).toBe("hello\n");
    // A raw connection says nothing of an App.
    expect((await get(`http://${ip}:${raw}/`)).status).toBe("ECONNREFUSED");
    const ended = once(kept, "close");
    expect((await app.release(ip, "other")).status).toBe(204);
    await ended;
    expect(await named("other")).toMatchObject({ status: 404 });
    expect(await named("web")).toMatchObject({ status: 200 });
  });

  test("a released address and that of a deleted App or a removed port are not answered, and connections end", async () => {
    const app = await withReach();
    const [first, second] = [await app.assign("v4"), await app.assign("v4")];
    const [raw, web] = [await freePort(), await freePort()];
    const machine = await app.offer([{ port: raw }, { port: web, ...http }]);
    await expect.poll(() => urlsOf(app)).toHaveLength(4);
    const [one, two] = [await connected(first, raw), await connected(second, raw)];
    expect([await echoed(one), await echoed(two)]).toEqual(["hello\n", "hello\n"]);
    let ended = once(one, "close");
    await app.release(first);
    await ended;
    await expect.poll(async () => (await get(`http://${first}:${web}/`)).status).toBe("ECONNREFUSED");
    expect(await echoed(two)).toBe("hello\n");
    await app.call("DELETE", `${app.machines}/${machine}?force=true`);
    await expect.poll(async () => (await get(`http://${second}:${web}/`)).status).toBe("ECONNREFUSED");
    await app.offer([{ port: raw }]);
    await expect.poll(() => urlsOf(app)).toEqual([`tcp://${second}:${raw}`]);
    const three = await connected(second, raw);
    ended = once(three, "close");
    await app.call("DELETE", "/apps/web?force=true");
    await ended;
    await expect.poll(async () => (await get(`http://${second}:${raw}/`)).status).toBe("ECONNREFUSED");
  });

  test("after a restart all addresses are answered again, and new ones are from the same block", async () => {
    const data = dataFolder();
    const before = await withReach({ data });
    const [own, shared, raw] = [await before.assign("v4"), await before.assign("shared_v4"), await freePort()];
    await before.offer([{ port: raw, ...http }]);
    await before.service.close();
    const app = await withReach({ data });
    await expect.poll(() => get(`http://${own}:${raw}/`)).toMatchObject({ status: 200 });
    await expect.poll(() => get(`http://${shared}:${raw}/`, "web.localhost")).toMatchObject({ status: 200 });
    expect(blockOf(await app.assign("v4"))).toBe(blockOf(own));
  });

  test("two services of a computer have different addresses, even if their data has the same identity", async () => {
    const [one, two] = [
      await withReach({ random: seededRandom("same") }),
      await withReach({ random: seededRandom("same") }),
    ];
    expect(one.service.context.dataId).toBe(two.service.context.dataId);
    const raw = await freePort();
    const ips = await Promise.all([one, two].flatMap((app) => [app.assign("v4"), app.assign("shared_v4")]));
    expect(new Set(ips).size).toBe(4);
    for (const app of [one, two]) await app.offer([{ port: raw, ...http }]);
    for (const [i, name] of ["any.example", "web.localhost", "any.example", "web.localhost"].entries())
      await expect.poll(() => get(`http://${ips[i]}:${raw}/`, name)).toMatchObject({ status: 200 });
  });

  test("an address that another service has taken since stays, is logged, and new ones are from another block", async () => {
    const data = dataFolder();
    const before = await withReach({ data });
    const own = await before.assign("v4");
    const block = blockOf(own);
    await before.service.close();
    const seen = log();
    const taken: Bind = (server, host, port) =>
      blockOf(host) === block && port === 4283 ? Promise.reject(refusal("EADDRINUSE")) : bind(server, host, port);
    const app = await withReach({ data, ...seen }, taken);
    expect(seen.lines.join("")).toContain("another service has taken the block");
    const raw = await freePort();
    await app.offer([{ port: raw, ...http }]);
    await expect.poll(() => get(`http://${own}:${raw}/`)).toMatchObject({ status: 200 });
    expect(blockOf(await app.assign("v4"))).not.toBe(block);
  });

  test("a port that another process has is logged once, and answered once it is free", async () => {
    const seen = log();
    let tried = 0;
    let ip = "";
    const counting: Bind = (server, host, at) => {
      if (host === ip) tried++;
      return bind(server, host, at);
    };
    const app = await withReach(seen, counting);
    ip = await app.assign("v4");
    const other = createServer();
    other.listen(0, ip);
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    await app.offer([{ port, ...http }]);
    const warnings = (): string[] => seen.lines.filter((line) => line.includes("cannot listen at an address"));
    await expect.poll(warnings).toHaveLength(1);
    await app.offer([{ port, ...http }]);
    await app.assign("v6");
    // Each change tries again, and none is in the log.
    await expect.poll(() => tried).toBeGreaterThanOrEqual(3);
    expect(await urlsOf(app)).toEqual([]);
    other.close();
    await once(other, "close");
    // Something changes.
    await app.assign("v6");
    await expect.poll(() => get(`http://${ip}:${port}/`)).toMatchObject({ status: 200 });
    expect(warnings()).toHaveLength(1);
  });

  test("without the right to bind ports below 1024, HTTP and HTTPS use the proxy's numbers", async () => {
    const seen = log();
    const unprivileged: Bind = (server, host, port) =>
      port < 1024 ? Promise.reject(refusal("EACCES")) : bind(server, host, port);
    const app = await withReach(seen, unprivileged);
    const [ip, shared, raw] = [await app.assign("v4"), await app.assign("shared_v4"), await freePort()];
    await app.offer([{ port: 80, ...http, force_https: true }, { port: 443, ...https }, { port: raw }, { port: 25 }]);
    const ports = app.service.proxy?.ports ?? { http: 0, https: 0 };
    await expect
      .poll(() => urlsOf(app))
      .toEqual([`tcp://${ip}:${raw}`, `http://${ip}:${ports.http}`, `https://${ip}:${ports.https}`]);
    for (const [at, name] of [
      [ip, "any.example"],
      [shared, "web.localhost"],
    ] as const) {
      await expect.poll(() => get(`https://${at}:${ports.https}/`, name)).toMatchObject({ status: 200 });
      expect(await get(`http://${at}:${ports.http}/`, name)).toMatchObject({
        status: 301,
        location: `https://${name}:${ports.https}/`,
      });
    }
    expect(seen.lines.filter((line) => line.includes("may not listen"))).toHaveLength(3);
  });

  test.runIf(mayBindAll)("with the right to bind them, the ports of HTTP and HTTPS are the App's own", async () => {
    const app = await withReach();
    const ip = await app.assign("v4");
    await app.offer([{ port: 80, ...http, force_https: true }, { port: 443, ...https }, { port: 25 }]);
    await expect.poll(() => urlsOf(app)).toEqual([`tcp://${ip}:25`, `http://${ip}`, `https://${ip}`]);
    expect(await get(`http://${ip}/a`)).toMatchObject({ status: 301, location: "https://any.example/a" });
    expect(await get(`https://${ip}/a`)).toMatchObject({ status: 200, text: "any.example /a" });
    expect(await echoed(await connected(ip, 25))).toBe("hello\n");
  });

  test("the service listens only for ports that exist", async () => {
    let bound = 0;
    const counting: Bind = (server, host, port) => {
      bound++;
      return bind(server, host, port);
    };
    const app = await withReach({ proxy: { ports: 2000 } }, counting);
    for (let i = 0; i < 500; i++) await app.assign("v4");
    // The claim of the block.
    expect(bound).toBe(1);
    const raw = await freePort();
    await app.offer([{ port: raw, ...http }]);
    await expect.poll(() => bound).toBe(501);
    await expect.poll(() => urlsOf(app)).toHaveLength(500);
  });

  test.each(["EADDRNOTAVAIL", "EADDRINUSE"])(
    "addresses are simulated where the system answers %s for all loopback addresses",
    async (code) => {
      const app = await withReach({}, () => Promise.reject(refusal(code)));
      expect(await app.assign("v4")).toMatch(/^198\.1[89]\./);
      expect(await app.assign("shared_v4")).toBe("198.18.0.1");
      await app.offer([{ port: 80, ...http }]);
      expect(await urlsOf(app)).toEqual([]);
    },
  );

  test("other types stay simulated, and addresses of earlier versions stay as they are", async () => {
    const data = dataFolder();
    const before = await withReach({ data }, () => Promise.reject(refusal("EADDRNOTAVAIL")));
    const old = [await before.assign("v4"), await before.assign("shared_v4")];
    await before.call("POST", "/apps", { name: "other", org_slug: "personal" });
    await before.service.close();
    const app = await withReach({ data });
    const { body } = await app.call("GET", "/apps/web/ip_assignments");
    expect(body.ips.map(({ ip }: { ip: string }) => ip)).toEqual(old);
    expect(blockOf(await app.assign("shared_v4", "other"))).toBeDefined();
    for (const type of ["v6", "private_v6", "egress_v4", "egress_v6"])
      expect(blockOf(await app.assign(type))).toBeUndefined();
  });
});

test("the simulated runtime has no reachable addresses", async () => {
  const { call } = await withApp();
  expect((await call("POST", "/apps/web/ip_assignments", { type: "v4" })).body.ip).toMatch(/^198\.1[89]\./);
});

// Proxies in front of the service: what those that the operator trusts say of their clients, and what all others say.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { describe, expect, test } from "vitest";
import { afterThisTest } from "../support/leftovers.ts";
import { get, hasLoopback, withReach } from "./reachable.ts";

const trusted = "127.0.0.9";
const other = "127.0.0.8";
const publicNames = { hostname: "machines.example.com", appsDomain: "apps.example.com" };
const host = "web.apps.example.com";
const web = [
  { port: 80, handlers: ["http"], force_https: true },
  { port: 443, handlers: ["tls", "http"] },
] as const;

type App = Awaited<ReturnType<typeof withReach>>;

async function started(hasProxyProtocol = false): Promise<App> {
  const options = { trustProxy: [trusted], publicNames };
  const app = await withReach(options, undefined, undefined, { hasProxyProtocol });
  await app.offer(web);
  return app;
}

/** What a Machine gets of a request from an address with headers. */
async function seen(app: App, localAddress: string, headers: object, scheme: "http" | "https" = "http") {
  const named = { host, ...headers };
  const url = `${scheme}://127.0.0.1:${app.service.proxy?.ports[scheme]}/headers`;
  const { status, text, location } = await get(url, "", { localAddress, headers: named, servername: host });
  return { status, location, got: text.startsWith("{") ? (JSON.parse(text) as Record<string, string>) : {} };
}

describe.runIf(hasLoopback)("headers of proxies in front", () => {
  test("F80: headers of trusted networks count, and all others are replaced by the truth", async () => {
    const app = await started();
    const said = { "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https" };
    const { got } = await seen(app, trusted, said);
    expect(got).toMatchObject({
      ...{ "x-forwarded-for": "203.0.113.7", "x-real-ip": "203.0.113.7", "fly-client-ip": "203.0.113.7" },
      ...{ "x-forwarded-proto": "https", "x-forwarded-port": "443" },
      forwarded: 'for=203.0.113.7;host="web.apps.example.com";proto=https',
    });
    // To the others, the App answers only by HTTPS.
    expect(await seen(app, other, said)).toMatchObject({ status: 301 });
    expect((await seen(app, other, said, "https")).got).toMatchObject({
      ...{ "x-forwarded-for": other, "x-real-ip": other, "x-forwarded-proto": "https" },
    });
    expect(await seen(app, trusted, { ...said, "x-forwarded-proto": "http" })).toMatchObject({ status: 301 });
  });

  test.each([
    ["1.1.1.1, 203.0.113.7", "203.0.113.7"],
    [`203.0.113.7, ${trusted}`, "203.0.113.7"],
    [`1.1.1.1, 203.0.113.7, ${trusted}, ${trusted}`, "203.0.113.7"],
    ["203.0.113.7:1234", "203.0.113.7"],
    ["[2001:db8::7]:1234", "2001:db8::7"],
    ["2001:db8::7", "2001:db8::7"],
    ["::ffff:203.0.113.7", "203.0.113.7"],
    ["unknown", trusted],
    [`1.1.1.1, unknown, ${trusted}`, trusted],
    ["", trusted],
  ])("of X-Forwarded-For %j, the nearest address that is not trusted is the client", async (list, client) => {
    const app = await started();
    const { got } = await seen(app, trusted, { "x-forwarded-for": list, "x-forwarded-proto": "https" });
    expect(got["x-forwarded-for"]).toBe(client);
  });

  test("names of this computer are not for clients behind a trusted proxy, and the API knows them", async () => {
    const app = await started();
    const at = `http://127.0.0.1:${app.service.proxy?.ports.http}/`;
    const from = (headers: object) => get(at, "", { localAddress: trusted, headers });
    const away = { "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https" };
    expect(await from({ host: "web.localhost", "x-forwarded-proto": "https" })).toMatchObject({ status: 200 });
    expect(await from({ host: "other.localhost", ...away })).toMatchObject({ status: 404 });
    // Its scheme is that of the client, so nothing is redirected in a circle.
    expect(await from({ host: publicNames.hostname, ...away })).toMatchObject({ status: 200 });
    expect(await from({ host: publicNames.hostname })).toMatchObject({ status: 301 });
  });

  test("failed attempts to sign in count for the client, also at the API itself", async () => {
    const app = await started();
    const attempt = async (client: string): Promise<number> => {
      const headers = { "x-forwarded-for": client, "content-type": "application/json" };
      const answer = await app.service.app.inject({
        ...{ method: "POST", url: "/console/session", headers, payload: { token: "wrong" } },
        remoteAddress: trusted,
      });
      return answer.statusCode;
    };
    await expect.poll(() => attempt("203.0.113.7"), { interval: 0 }).toBe(429);
    expect(await attempt("203.0.113.8")).toBe(401);
  });
});

describe.runIf(hasLoopback)("the PROXY protocol of trusted networks", () => {
  const line = "PROXY TCP4 203.0.113.7 203.0.113.1 4711 80\r\n";
  const request = "GET /headers HTTP/1.1\r\nHost: web.localhost\r\nConnection: close\r\n\r\n";

  const open = async (app: App, localAddress: string, scheme: "http" | "https" = "http"): Promise<Socket> => {
    const socket = connect({ host: "127.0.0.1", port: app.service.proxy?.ports[scheme] ?? 0, localAddress });
    socket.on("error", () => {});
    afterThisTest(() => void socket.destroy());
    await once(socket, "connect");
    return socket;
  };

  /** All that comes until the connection is closed. */
  const textOf = async (socket: Socket): Promise<string> => {
    let text = "";
    socket.on("data", (part: Buffer) => (text += part.toString()));
    await once(socket, "close");
    return text;
  };

  const withoutRedirects = async (): Promise<App> => {
    const app = await withReach({ trustProxy: [trusted], publicNames }, undefined, undefined, {
      hasProxyProtocol: true,
    });
    await app.offer([
      { port: 80, handlers: ["http"] },
      { port: 443, handlers: ["tls", "http"] },
    ]);
    return app;
  };

  test("the client in it is the one that counts, by HTTP and by HTTPS", async () => {
    const app = await withoutRedirects();
    const plain = await open(app, trusted);
    // The header and the request may come in any pieces.
    plain.write(line.slice(0, 9));
    await expect.poll(() => app.service.proxy?.clients.size).toBe(0);
    plain.write(line.slice(9) + request);
    // It is not on this computer, whose names are for itself alone.
    expect(await textOf(plain)).toContain("HTTP/1.1 404 Not Found");
    const here = await open(app, trusted);
    here.write(`${line.replace("203.0.113.7", "127.0.0.77")}${request}`);
    expect(await textOf(here)).toContain('"x-forwarded-for":"127.0.0.77"');
    const bytes = Buffer.concat([
      Buffer.from("0d0a0d0a000d0a515549540a2111000c", "hex"),
      Buffer.from([127, 0, 0, 66, 127, 0, 0, 1, 18, 103, 1, 187]),
    ]);
    const below = await open(app, trusted, "https");
    below.write(bytes);
    const secure = connectTls({ socket: below, servername: "web.localhost", rejectUnauthorized: false });
    afterThisTest(() => void secure.destroy());
    secure.write(request);
    const text = await textOf(secure);
    expect(text).toContain('"x-forwarded-for":"127.0.0.66"');
    expect(text).toContain('"x-forwarded-proto":"https"');
  });

  test("connections without it are closed, and those of others that begin with it are refused", async () => {
    const app = await withoutRedirects();
    const missing = await open(app, trusted);
    missing.write(request);
    expect(await textOf(missing)).toBe("");
    const wrong = await open(app, trusted);
    wrong.write("PROXY TCP4 1.2.3.4\r\n");
    expect(await textOf(wrong)).toBe("");
    const foreign = await open(app, other);
    foreign.write(line + request);
    expect(await textOf(foreign)).toMatch(/^HTTP\/1\.1 400 Bad Request/);
    const usual = await open(app, other);
    usual.write(request);
    expect(await textOf(usual)).toContain(`"x-forwarded-for":"${other}"`);
    const half = await open(app, trusted);
    half.end("PROXY TCP4");
    expect(await textOf(half)).toBe("");
  });

  test("limits of connections count the clients in it, and not the load balancer", async () => {
    const app = await withReach(
      { trustProxy: [trusted], proxy: { most: 100, ofAddress: 2 } },
      ...([undefined, undefined, { hasProxyProtocol: true }] as const),
    );
    const from = async (client: string): Promise<Socket> => {
      const socket = await open(app, trusted);
      socket.write(line.replace("203.0.113.7", client));
      return socket;
    };
    const sockets = [await from("203.0.113.1"), await from("203.0.113.2"), await from("203.0.113.3")];
    await expect.poll(() => app.service.proxy?.clients.addresses).toBe(3);
    const [first] = sockets;
    const closed = first && once(first, "close");
    first?.resume();
    sockets.push(await from("203.0.113.1"), await from("203.0.113.1"));
    // The oldest one of this client makes room.
    await closed;
    await expect.poll(() => [app.service.proxy?.clients.size, app.service.proxy?.clients.addresses]).toEqual([4, 3]);
  });
});

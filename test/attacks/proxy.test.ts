// Attacks on the proxy: what its clients open and send grows without a bound, and takes the descriptors and the memory of the API.
import { once } from "node:events";
import { createServer, request, type ClientRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { connect, createServer as createNetServer, type AddressInfo, type Server, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import type { Service, ServiceOptions } from "../../service/index.ts";
import { KeptConnections } from "../../service/proxy/agents.ts";
import { Clients } from "../../service/proxy/clients.ts";
import { addressOf } from "../../service/runtime/endpoint.ts";
import { proxyLimits } from "../../service/proxy/limits.ts";
import { Recent } from "../../service/store/recent.ts";
import { addToken } from "../../service/store/tokens.ts";
import { caller } from "../service/client.ts";
import { connected, echoed, get, hasLoopback, secured, served, withReach } from "../service/reachable.ts";
import { makeCertificate } from "../support/certificates.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { endProxied, startProxied, type Starting } from "../support/withProxied.ts";

const host = "127.0.0.1";
const http = { port: 80, handlers: ["http"] } as const;
const https = { port: 443, handlers: ["http", "tls"] } as const;
const half = "GET / HTTP/1.1\r\nHost: web.localhost\r\nx-half: ";

/** A client that sends this, reads nothing and never closes. */
function client(port: number, text: string, from = host): Promise<Socket> {
  const socket = connect({ port, host, localAddress: from, allowHalfOpen: true });
  afterThisTest(() => void socket.destroy());
  socket.on("error", () => socket.destroy());
  return new Promise((resolve) => {
    socket.once("connect", () => socket.write(text, () => resolve(socket)));
    socket.once("close", () => resolve(socket));
  });
}

const clients = (count: number, port: number, text: string, from?: string): Promise<Socket[]> =>
  Promise.all(Array.from({ length: count }, () => client(port, text, from)));

/** Resolves once the other side has ended a connection. */
async function ended(socket: Socket | undefined): Promise<void> {
  if (!socket || socket.destroyed) return;
  const over = Promise.race([once(socket, "end"), once(socket, "close")]);
  socket.resume();
  await over;
}

/** Listens until the end of the test. */
async function listening(server: Server): Promise<number> {
  server.listen(0, host);
  await once(server, "listening");
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => void sockets.add(socket));
  afterThisTest(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A service in a process of its own, with an App `web` whose Machine answers HTTP. */
async function inProcess(starting: Omit<Starting, "endpoints"> = {}) {
  const machine = await listening(createServer((_, response) => response.end("ok")));
  const running = await startProxied({ ...starting, endpoints: { 8080: machine } });
  afterThisTest(() => endProxied(running));
  const call = caller(running.url, running.token);
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const services = [{ protocol: "tcp", internal_port: 8080, ports: [http, https] }];
  await call("POST", "/apps/web/machines", { config: { image: "nginx", services } });
  const answer = (scheme: "http" | "https" = "http") =>
    get(`${scheme}://${host}:${running.ports[scheme]}`, "web.localhost");
  await expect.poll(async () => (await answer()).status).toBe(200);
  return { ...running, call, answer };
}

/** A service in this process, and the number of connections of its proxy. */
async function withProxy(options: ServiceOptions["proxy"] = {}) {
  const app = await withReach({ delays: "none", proxy: options });
  await app.offer([http]);
  await app.offer([https]);
  const { proxy } = app.service;
  if (!proxy) throw new Error("the service has no proxy");
  const url = `http://${host}:${proxy.ports.http}`;
  await expect.poll(async () => (await get(url, "web.localhost")).status).toBe(200);
  /** The port on this computer of a raw port of `web`. */
  const raw = async (port: number): Promise<number> => {
    const found = async () => (await proxy.addressesOf(appNamed(app.service, "web"))).find((one) => one.port === port);
    await expect.poll(found).toBeDefined();
    return Number(new URL((await found())?.url ?? "").port);
  };
  return { ...app, url, proxy, ports: proxy.ports, size: () => proxy.clients.size, raw };
}

function appNamed({ context }: Service, name: string): { id: string; name: string } {
  const found = context.store.get<{ id: string; name: string }>("SELECT id, name FROM apps WHERE name = ?", name);
  if (!found) throw new Error(`there is no App ${name}`);
  return found;
}

/** A WebSocket to the App `web`; undefined if the proxy refused it. */
async function upgraded(port: number): Promise<Socket | undefined> {
  const headers = { host: "web.localhost", connection: "upgrade", upgrade: "websocket" };
  const asked = request({ host, port, headers, agent: false });
  asked.end();
  const refused = new Promise<undefined>((resolve) => {
    asked.on("response", (response) => resolve(void response.resume()));
    asked.on("error", () => resolve(undefined));
  });
  const accepted = once(asked, "upgrade").then(([, socket]) => socket as Socket);
  const socket = await Promise.race([accepted, refused]);
  afterThisTest(() => void socket?.destroy());
  return socket;
}

/** A request to `web` whose body comes back as it is sent; undefined if the proxy refused it. */
async function streamed(port: number): Promise<{ upload: ClientRequest; answer: IncomingMessage } | undefined> {
  const headers = { host: "web.localhost" };
  const upload = request({ host, port, path: "/echo", method: "POST", headers, agent: false });
  afterThisTest(() => void upload.destroy());
  upload.on("error", () => {});
  upload.write("first");
  const answer = await once(upload, "response").then(
    ([response]) => response as IncomingMessage,
    () => undefined,
  );
  if (answer?.statusCode !== 200) return undefined;
  await once(answer, "data");
  return { upload, answer };
}

/** What `open` gives, once it gives something: with a short time for headers, a slow computer's own requests are refused too. */
async function opened<T>(open: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await open();
    if (found) return found;
  }
}

const webSocket = (port: number): Promise<Socket> => opened(() => upgraded(port));

const stream = (port: number) => opened(() => streamed(port));

const pipelined = (count: number): string => "GET / HTTP/1.1\r\nHost: web.localhost\r\n\r\n".repeat(count);

/** A service in a process of its own, whose Machine holds the requests that it gets. */
async function withHolding() {
  const pending: ServerResponse[] = [];
  const machine = await listening(
    createServer((_, response) => {
      pending.push(response);
      response.once("close", () => void (pending.includes(response) && pending.splice(pending.indexOf(response), 1)));
    }),
  );
  const running = await startProxied({ endpoints: { 8080: machine } });
  afterThisTest(() => endProxied(running));
  const call = caller(running.url, running.token);
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const services = [{ protocol: "tcp", internal_port: 8080, ports: [http] }];
  const { body } = await call("POST", "/apps/web/machines", { config: { image: "nginx", services } });
  await call("GET", `/apps/web/machines/${body.id}/wait?state=started`);
  return { ...running, pending };
}

describe("F74: clients of the proxy that never finish", () => {
  test("leave the API its descriptors, and the App its visitors", async () => {
    const { ports, call, answer } = await inProcess({ files: 600 });
    // A port's connections are accepted in turn, so a visitor who has an answer came after all clients. One who is slow to send while
    // more of them come from the same address may be closed.
    await clients(400, ports.http, half);
    expect((await answer()).status).toBe(200);
    await clients(400, ports.https, "");
    expect((await answer("https")).status).toBe(200);
    expect((await call("POST", "/apps", { name: "other", org_slug: "personal" })).status).toBe(201);
    expect((await answer()).status).toBe(200);
  });

  test.each([
    ["half of a request", half, "http"],
    ["nothing", "", "http"],
    ["bytes that are not HTTP", "\u0016\u0003\u0001 nonsense\r\n\r\n", "http"],
    ["no handshake", "", "https"],
    ["half of a handshake", "\u0016\u0003\u0001\u0002\u0000\u0001\u0000", "https"],
    ["bytes that are not TLS", half, "https"],
  ] as const)("clients of the proxy that never finish are closed after a time: %s", async (_, text, scheme) => {
    expect(proxyLimits()).toMatchObject({ headersMs: 10_000, handshakeMs: 10_000 });
    const { ports, size } = await withProxy({ headersMs: 10, handshakeMs: 10, checkMs: 10 });
    await clients(20, ports[scheme], text);
    await expect.poll(size).toBe(0);
  });

  test("do not end WebSockets, raw connections, streams and uploads with the time for headers", async () => {
    const { ports, offer, raw } = await withProxy({ headersMs: 100, handshakeMs: 100, checkMs: 10 });
    await offer([{ port: 5432 }]);
    const tcp = await connected(host, await raw(5432));
    const socket = await webSocket(ports.http);
    const { upload, answer } = await stream(ports.http);
    // Others are closed meanwhile.
    const [unfinished] = await clients(1, ports.http, half);
    await ended(unfinished);
    expect(await echoed(socket)).toBe("hello\n");
    expect(await echoed(tcp)).toBe("hello\n");
    upload.write("event");
    expect(String((await once(answer, "data"))[0])).toBe("event");
  });

  test.each(["HTTP", "HTTPS"])(
    "clients of the proxy that never finish are closed after an hour without a byte in either direction, by %s",
    async (scheme) => {
      let now = 0;
      const limits = proxyLimits({ checkMs: 3600_000 });
      expect(limits.idleMs).toBe(3600_000);
      const counted = new Clients(limits, { warn: () => {} }, () => now);
      const held: ServerResponse[] = [];
      const hold = (_: unknown, response: ServerResponse) => void held.push(response);
      const { fullchain: cert, private_key: key } = makeCertificate({ hosts: ["localhost"] });
      const server = scheme === "HTTP" ? createServer(hold) : createSecureServer({ cert, key }, hold);
      server.prependListener("connection", (socket) => counted.take(socket));
      server.prependListener("secureConnection", (socket) => counted.secured(socket));
      counted.watch(server);
      const port = await listening(server);
      const open = () => (scheme === "HTTP" ? connected(host, port) : secured(host, port));
      const [silent, receiving, sending] = await Promise.all([open(), open(), open()]);
      for (const socket of [silent, receiving, sending])
        socket.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99\r\n\r\n`);
      await expect.poll(() => held.length).toBe(3);
      counted.check();
      const received = held.map(({ req }) => req.on("data", () => {}));
      const toReceiving = held.find(({ req }) => req.socket.remotePort === receiving.localPort);
      const fromSending = received.find(({ socket }) => socket.remotePort === sending.localPort);
      for (now = 0; now < limits.idleMs; now += limits.idleMs / 4) {
        counted.check();
        expect(counted.size).toBe(3);
        toReceiving?.write("x");
        sending.write("y");
        if (fromSending) await once(fromSending, "data");
      }
      counted.check();
      await ended(silent);
      expect(counted.size).toBe(2);
      counted.close();
    },
  );

  test.runIf(hasLoopback)(
    "clients of the proxy that never finish from one address leave room for those from others",
    async () => {
      const { ports, size, url } = await withProxy({ most: 8, ofAddress: 5 });
      const socket = await webSocket(ports.http);
      await clients(30, ports.http, half);
      expect(size()).toBeLessThanOrEqual(5);
      // The App's visitors, from this address too, and a connection in use.
      expect((await get(url, "web.localhost")).status).toBe(200);
      const other = { localAddress: "127.0.0.2" };
      for (let i = 0; i < 20; i++) {
        await clients(5, ports.http, half);
        expect((await get(url, "web.localhost", other)).status).toBe(200);
      }
      expect(await echoed(socket)).toBe("hello\n");
    },
  );

  test.runIf(hasLoopback)(
    "clients of the proxy that never finish from many addresses leave room as well, and none of them is remembered",
    async () => {
      const { ports, size, url, proxy } = await withProxy({ most: 8, ofAddress: 5 });
      for (let i = 2; i < 100; i++) await client(ports.http, half, `127.0.1.${i}`);
      expect(size()).toBeLessThanOrEqual(8);
      expect(proxy.clients.addresses).toBeLessThanOrEqual(8);
      expect((await get(url, "web.localhost")).status).toBe(200);
    },
  );

  test("clients of the proxy that never finish in use make room when they are silent for a minute, and not before", async () => {
    let now = 0;
    const counted = new Clients(
      proxyLimits({ most: 2, ofAddress: 2, checkMs: 3600_000 }),
      { warn: () => {} },
      () => now,
    );
    const server = createNetServer((socket) => {
      counted.use(socket);
      socket.on("error", () => socket.destroy());
      socket.pipe(socket);
    });
    server.prependListener("connection", (socket) => counted.take(socket));
    const port = await listening(server);
    const first = await connected(host, port);
    const second = await connected(host, port);
    for (const socket of [first, second]) await echoed(socket);
    counted.check();
    const refused = await connected(host, port);
    await ended(refused);
    now += 60_000;
    await echoed(second);
    counted.check();
    const third = await connected(host, port);
    expect(await echoed(third)).toBe("hello\n");
    await ended(first);
    expect(await echoed(second)).toBe("hello\n");
    counted.close();
  });
});

describe("F75: names that clients make up", () => {
  test("do not fill the memory, whatever the port in the header Host is", async () => {
    const { ports, memory } = await inProcess();
    const before = await memory();
    const ask = async (first: number): Promise<void> => {
      for (let i = first; i < 4000; i += 10) {
        // It is refused, and its connection is closed.
        const text = `GET / HTTP/1.1\r\nHost: 80.web.localhost:${String(i).padStart(15_000, "1")}\r\n\r\n`;
        await ended((await client(ports.http, text)).resume());
      }
    };
    await Promise.all(Array.from({ length: 10 }, (_, i) => ask(i)));
    // They are 60 MB.
    expect((await memory()) - before).toBeLessThan(10);
  });

  test("a made-up name is the same name in each spelling, and a port that is none is no name", async () => {
    const { url } = await withProxy();
    const statuses = async (names: readonly string[]) =>
      new Set(await Promise.all(names.map(async (name) => (await get(url, name)).status)));
    expect(await statuses(["web.localhost", "WEB.localhost:80", "web.localhost.:65535", "80.web.localhost"])).toEqual(
      new Set([200]),
    );
    expect(
      await statuses([`web.localhost:${"1".repeat(6)}`, `${"8".repeat(100)}.web.localhost`, "a:b", "", "."]),
    ).toEqual(new Set([400, 404]));
  });

  test("have no certificate of their own: an App has one for all of its names", async () => {
    const app = await withProxy();
    const serials = new Set<string>();
    for (const name of ["web.localhost", "443.web.localhost", "9.web.localhost", "10.WEB.localhost"]) {
      const certificate = await served(app, name);
      expect(certificate.checkHost(name)).toBeDefined();
      serials.add(certificate.serialNumber);
    }
    expect(serials.size).toBe(1);
  });

  test("drive out those that were used longest ago", () => {
    const recent = new Recent<number>(3);
    for (let i = 0; i < 1000; i++) {
      recent.set(`name ${i}`, i);
      if (i > 0) expect(recent.get("name 0")).toBe(0);
    }
    expect([...recent.keys()]).toEqual(["name 998", "name 999", "name 0"]);
  });
});

describe("F76: descriptors behind the proxy", () => {
  test("descriptors behind the proxy are not taken by requests of one connection, which are sent one after the other", async () => {
    const { ports, pending } = await withHolding();
    const socket = await client(ports.http, pipelined(10));
    let text = "";
    socket.on("data", (part: Buffer) => (text += part.toString()));
    for (let i = 0; i < 10; i++) {
      await expect.poll(() => pending.length).toBe(1);
      pending.pop()?.end(`answer ${i};`);
    }
    await expect
      .poll(() => text.match(/answer \d;/g)?.join(""))
      .toBe(Array.from({ length: 10 }, (_, i) => `answer ${i};`).join(""));
    await ended(await client(ports.http, pipelined(200)));
    expect(pending.length).toBeLessThanOrEqual(1);
  });

  test("descriptors behind the proxy are not taken by ranges of public ports", async () => {
    const { offer, service, call } = await withProxy({ ports: 60 });
    const context = service.context;
    await context.store.write(() => addToken(context.store, "other", { slug: "other", expiresAt: null }, 0));
    const others = caller(service.app.listeningOrigin, "other");
    await others("POST", "/apps", { name: "theirs", org_slug: "other" });
    await offer([{ start_port: 20_000, end_port: 65_000 } as never]);
    const urls = async (name: string) => (await service.proxy?.addressesOf(appNamed(service, name))) ?? [];
    // Half of the ports are for other organizations.
    await expect.poll(async () => (await urls("web")).filter(({ url }) => url.startsWith("tcp")).length).toBe(30);
    const services = [{ protocol: "tcp", internal_port: 9000, ports: [{ port: 5432 }] }];
    await others("POST", "/apps/theirs/machines", { config: { image: "nginx", services } });
    await expect.poll(async () => (await urls("theirs")).length).toBe(1);
    // They are given back.
    for (const { id } of (await call("GET", "/apps/web/machines")).body)
      await call("DELETE", `/apps/web/machines/${id}?force=true`);
    await offer([{ port: 6379 }]);
    await expect.poll(async () => (await urls("web")).map(({ port }) => port)).toEqual([6379]);
  });

  test("descriptors behind the proxy are not taken by connections that are kept for the next request", async () => {
    const kept = new KeptConnections(3);
    afterThisTest(() => kept.close());
    const endpoints: string[] = [];
    for (let i = 0; i < 6; i++)
      endpoints.push(
        `${host}:${await listening(createServer((_, response) => response.setHeader("keep-alive", "timeout=600").end()))}`,
      );
    for (const endpoint of endpoints) {
      const asked = request({ ...addressOf(endpoint), agent: kept.of(endpoint) }).end();
      const [answer] = (await once(asked, "response")) as [IncomingMessage];
      await once(answer.resume(), "end");
      expect(kept.open).toBeLessThanOrEqual(4);
    }
    kept.close();
    await expect.poll(() => kept.open).toBe(0);
  });
});

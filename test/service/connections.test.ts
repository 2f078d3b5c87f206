// Connections, which need no token (F47): their number, their duration, and their release.
import { connect, type Server, type Socket } from "node:net";
import { connect as connectSecurely } from "node:tls";
import { promisify } from "node:util";
import { afterEach, expect, test } from "vitest";
import type { ServiceOptions } from "../../service/index.ts";
import { inSlices } from "../../service/runtime/closing.ts";
import type { Command, Outcome } from "../../service/runtime/runtime.ts";
import { SimulatedRuntime } from "../../service/runtime/simulated.ts";
import { makeCertificate } from "../support/certificates.ts";
import { startService } from "../support/startService.ts";
import { caller, callerWith, withApp } from "./client.ts";

const sockets: Socket[] = [];
const started: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(started.splice(0).map((service) => service.close()));
});

const portOf = (url: string): number => Number(new URL(url).port);

/** A client that sends this, reads nothing and never closes: only the service can release its connection. */
function unreadingClient(url: string, text = ""): Promise<Socket> {
  const socket = connect({ port: portOf(url), host: "127.0.0.1", allowHalfOpen: true });
  sockets.push(socket);
  socket.on("error", () => undefined);
  return new Promise((done) =>
    socket.once("connect", () => (text === "" ? done(socket) : socket.write(text, () => done(socket)))),
  );
}

const unreadingClients = (count: number, url: string, text?: string): Promise<Socket[]> =>
  Promise.all(Array.from({ length: count }, () => unreadingClient(url, text)));

/** The number of open connections of the service. */
const held = (server: object): Promise<number> => {
  const net = server as Server;
  return promisify(net.getConnections.bind(net))();
};

async function secureService(options: ServiceOptions = {}) {
  const { fullchain: cert, private_key: key } = makeCertificate({ hosts: ["localhost"] });
  const service = await startService({ tls: { cert, key }, ...options });
  started.push(service);
  return service;
}

const unfinished = [
  ["nothing", ""],
  ["half of the headers", "GET /v1/apps/web HTTP/1.1\r\nHost: local"],
  ["half of a body", 'POST /v1/apps HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"name"'],
  ["bytes that are not HTTP", "\u0016\u0003\u0001 nonsense\r\n\r\n"],
] as const;

test.each(unfinished)("F47 connections with %s are closed, whatever their clients do", async (_, text) => {
  const { url, call, service } = await withApp({ connections: { checkMs: 10 } });
  const { server } = service.app;
  expect([server.headersTimeout, server.requestTimeout]).toEqual([10_000, 15_000]);
  await unreadingClients(160, url, text);
  expect((await call("GET", "/apps/web")).status).toBe(200);
  // As if the time limit had passed.
  server.headersTimeout = server.requestTimeout = 1;
  // Only the connection of the tests' own client remains.
  await expect.poll(() => held(server)).toBeLessThanOrEqual(1);
});

test("F27, F47: an incomplete body with a token is abandoned too, and has no effect", async () => {
  const { url, token, call, service } = await withApp({ connections: { checkMs: 10 } });
  const { server } = service.app;
  const head = `POST /v1/apps HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Length: 1000\r\n\r\n`;
  await unreadingClients(20, url, `${head}{"name":"half"`);
  server.headersTimeout = server.requestTimeout = 1;
  await expect.poll(() => held(server)).toBeLessThanOrEqual(1);
  server.headersTimeout = server.requestTimeout = 0;
  expect((await call("GET", "/apps/half")).status).toBe(404);
});

test("F47 connections without a TLS handshake are closed", async () => {
  const { url, service } = await secureService({ connections: { handshakeMs: 10 } });
  await unreadingClients(50, url);
  await expect.poll(() => held(service.app.server)).toBe(0);
});

test("F47 HTTPS connections without a request are closed", async () => {
  const { url, service } = await secureService({ connections: { checkMs: 10 } });
  const { server } = service.app;
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      const socket = connectSecurely({ port: portOf(url), host: "127.0.0.1", rejectUnauthorized: false });
      sockets.push(socket);
      await new Promise((done, fail) => socket.once("secureConnect", done).once("error", fail));
      socket.on("error", () => undefined).pause();
    }),
  );
  server.headersTimeout = server.requestTimeout = 1;
  await expect.poll(() => held(server)).toBe(0);
});

test("F47 unread answers are abandoned", async () => {
  const { url, service } = await withApp();
  const { server } = service.app;
  expect(server.timeout).toBe(60_000);
  // As if the minute had passed; existing connections keep their own limit.
  server.timeout = 1;
  const one = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const accepted = new Promise<Socket>((done) => server.once("connection", done));
  await unreadingClient(url, one.repeat(200));
  const socket = await accepted;
  await expect.poll(() => socket.destroyed).toBe(true);
});

test("F27, F47: a client that opens connections up to the limit loses its oldest ones and blocks nobody", async () => {
  const { url, token, service } = await withApp({ connections: { most: 200, waiting: 100 } });
  const silent = await unreadingClients(1, url);
  const closed = new Set<Socket>();
  const watch = (socket: Socket) =>
    socket
      .resume()
      .on("close", () => closed.add(socket))
      .on("end", () => socket.end());
  silent.forEach(watch);
  for (let i = 0; i < 300; i++) silent.push(watch(await unreadingClient(url)));
  // A new connection each time.
  for (let i = 0; i < 20; i++) {
    const answer = await caller(url, token)("GET", "/apps/web", undefined, { connection: "close" });
    expect(answer.status).toBe(200);
  }
  await expect.poll(() => closed.size).toBeGreaterThanOrEqual(200);
  expect(await held(service.app.server)).toBeLessThanOrEqual(101);
  expect(silent.slice(0, 200).every((socket) => closed.has(socket))).toBe(true);
  expect(silent.slice(-50).some((socket) => closed.has(socket))).toBe(false);
});

test("F47 over HTTPS the oldest idle connection is closed as well", async () => {
  const { url, service } = await secureService({ connections: { most: 40, waiting: 20 } });
  const first = await unreadingClients(30, url);
  const secure = connectSecurely({ port: portOf(url), host: "127.0.0.1", rejectUnauthorized: false });
  sockets.push(secure);
  let text = "";
  secure.on("data", (part: Buffer) => (text += part.toString()));
  secure.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await expect.poll(() => text).toContain("200 OK");
  await expect.poll(() => held(service.app.server)).toBeLessThanOrEqual(20);
  expect(first[0]?.destroyed).toBe(false);
});

test("F47 a long poll outlives the limits, and is answered", async () => {
  const { url, call, service, machine, machines } = await withApp({
    connections: { most: 20, waiting: 5, checkMs: 10 },
  });
  const { server } = service.app;
  const { id } = await machine();
  const waiting = call("GET", `${machines}/${id}/wait?state=stopped&timeout=60`);
  await expect.poll(() => service.context.waits.size).toBe(1);
  await unreadingClients(30, url, "GET / HTTP/1.1\r\nHost: local");
  server.headersTimeout = server.requestTimeout = 1;
  // All except the long poll, and the other one of the tests' own client.
  await expect.poll(() => held(server)).toBeLessThanOrEqual(2);
  server.headersTimeout = server.requestTimeout = 0;
  expect(service.context.waits.size).toBe(1);
  await call("POST", `${machines}/${id}/stop`, {});
  expect((await waiting).body).toMatchObject({ ok: true, state: "stopped" });
});

test("F47 long polls can use only a part of the connections", async () => {
  const { call, service, machine, machines } = await withApp({ connections: { most: 8, waiting: 5 } });
  const { id } = await machine();
  const path = `${machines}/${id}/wait?state=stopped&timeout=60`;
  const waiting = Array.from({ length: 3 }, () => call("GET", path));
  await expect.poll(() => service.context.waits.size).toBe(3);
  const more = await call("GET", path);
  expect([more.status, more.headers.get("retry-after")]).toEqual([503, "5"]);
  expect(more.body.error).toBe("too many requests are held, at most 3 may be");
  // A request that need not be held is answered.
  expect((await call("GET", `${machines}/${id}/wait?state=started`)).status).toBe(200);
  await call("POST", `${machines}/${id}/stop`, {});
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(service.context.waits.size).toBe(0);
});

test("F47 long polls of one organization leave places for another one", async () => {
  const app = await withApp({ connections: { most: 24, waiting: 16 } });
  const { call, service, machine, machines } = app;
  const { waits } = service.context;
  const { id } = await machine({}, { skip_launch: true });
  const red = callerWith(app, "fm2_of_red", { slug: "red" });
  await red("POST", "/apps", { name: "red", org_slug: "red" });
  const { id: theirs } = (await red("POST", "/apps/red/machines", { config: { image: "nginx" }, skip_launch: true }))
    .body;
  const path = `/apps/red/machines/${theirs}/wait?state=destroyed&timeout=60`;
  const waiting = Array.from({ length: 6 }, () => red("GET", path));
  await expect.poll(() => waits.size).toBe(6);
  const refused = await red("GET", path);
  expect([refused.status, refused.headers.get("retry-after"), refused.body.error]).toEqual([
    ...[503, "5"],
    "too many requests of this organization are held, at most 6 may be",
  ]);
  const own = call("GET", `${machines}/${id}/wait?state=destroyed&timeout=60`);
  await expect.poll(() => waits.size).toBe(7);
  await red("DELETE", `/apps/red/machines/${theirs}?force=true`);
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 200));
  // Its places are free again.
  const { id: next } = (await red("POST", "/apps/red/machines", { config: { image: "nginx" }, skip_launch: true }))
    .body;
  const again = red("GET", `/apps/red/machines/${next}/wait?state=destroyed&timeout=60`);
  await expect.poll(() => waits.size).toBe(2);
  await red("DELETE", `/apps/red/machines/${next}?force=true`);
  await call("DELETE", `${machines}/${id}?force=true`);
  expect([(await again).status, (await own).status]).toEqual([200, 200]);
});

test("F47 a command for which there is no place is refused before it runs", async () => {
  const ran: string[] = [];
  const app = await withApp({
    connections: { most: 8, waiting: 5 },
    delays: "none",
    runtime: (host) =>
      Object.assign(new SimulatedRuntime(host), {
        exec: (_: unknown, { words }: Command): Promise<Outcome> => {
          ran.push(words.join(" "));
          return Promise.resolve({ stdout: "", stderr: "", exitCode: 0, exitSignal: 0 });
        },
      }),
  });
  const { call, service, machine, machines } = app;
  const { id } = await machine();
  await expect.poll(() => app.state(id)).toBe("started");
  const waiting = Array.from({ length: 3 }, () => call("GET", `${machines}/${id}/wait?state=stopped&timeout=60`));
  await expect.poll(() => service.context.waits.size).toBe(3);
  const refused = await call("POST", `${machines}/${id}/exec`, { command: ["pay"] });
  expect([refused.status, refused.headers.get("retry-after"), ran]).toEqual([503, "5", []]);
  await call("POST", `${machines}/${id}/stop`, {});
  await Promise.all(waiting);
  await call("POST", `${machines}/${id}/start`, {});
  await expect.poll(() => app.state(id)).toBe("started");
  expect((await call("POST", `${machines}/${id}/exec`, { command: ["pay"] })).status).toBe(200);
  expect(ran).toEqual(["pay"]);
});

test("F47 connections that expire together are closed in slices, each once", async () => {
  const closed: number[] = [];
  const close = inSlices<number>((one) => closed.push(one));
  const all = Array.from({ length: 1000 }, (_, i) => i);
  for (const one of all) close(one);
  expect(closed).toEqual([]);
  await new Promise(setImmediate);
  expect(closed.length).toBeGreaterThan(0);
  expect(closed.length).toBeLessThan(200);
  await expect.poll(() => closed.length).toBe(1000);
  close(1000);
  await expect.poll(() => closed).toEqual([...all, 1000]);
});

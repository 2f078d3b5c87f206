// The proxy as a process of its own, which follows the service over its API.
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { createServer, request as sendHttp, type ClientRequest, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test, vi } from "vitest";
import { ManualClock, type ServiceOptions } from "../../service/index.ts";
import { answersPath, startPath } from "../../service/proxy/feedPaths.ts";
import type { RuntimeHost } from "../../service/runtime/runtime.ts";
import { SimulatedRuntime } from "../../service/runtime/simulated.ts";
import { revokeTokens } from "../../service/store/tokens.ts";
import { currentCertificate } from "../support/certificates.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { hang } from "../support/patience.mts";
import { figures } from "./watch/figures.ts";
import { fileOf, ownProxy, proxyToken, reportsOf, startProxy, wayTo } from "./ownProxies.ts";
import { connected, echoed, get, secured, withReach } from "./reachable.ts";
import { freePort } from "../support/freePort.ts";

const poll = { timeout: hang, interval: 10 };
const minute = 60_000;
const idle = minute;

type Reached = Awaited<ReturnType<typeof withReach>>;
type Own = Awaited<ReturnType<typeof ownProxy>>;

const web = { port: 80, handlers: ["http"] };

/** Requests a path of the App `web` by a proxy. */
const ask = ({ http }: Pick<Own, "http">, path = "/", name = "web") =>
  get(`http://127.0.0.1:${http}${path}`, `${name}.localhost`);

/** A Machine that requests start, and that is stopped when it is idle. */
async function sleeper(app: Reached, more: object = {}): Promise<string> {
  const services = [{ protocol: "tcp", internal_port: 8080, ports: [web], autostart: true, autostop: "stop", ...more }];
  const { body } = await app.call("POST", "/apps/web/machines", { config: { image: "nginx", services } });
  return body.id;
}

const stateOf = async (app: Reached, id: string): Promise<string> =>
  (await app.call("GET", `/apps/web/machines/${id}`)).body.state;

/** An answer that ends with its request. */
async function openStream({ http }: Own): Promise<ClientRequest> {
  const request = sendHttp({
    host: "127.0.0.1",
    port: http,
    path: "/echo",
    method: "POST",
    headers: { host: "web.localhost" },
  });
  request.on("error", () => {});
  afterThisTest(() => void request.destroy());
  request.write("begun");
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.resume().on("error", () => {});
  return request;
}

/** A service with a clock of the test, which keeps what proxies report. */
const withReports = (more: ServiceOptions & { readonly clock?: ManualClock } = {}) =>
  withReach({ clock: new ManualClock(), ...({ keepBodies: true } as object), ...more });

/** Waits until a report says so, and is taken. */
const reported = (app: Reached, isIt: (report: ReturnType<typeof reportsOf>[number]) => boolean): Promise<void> =>
  vi.waitFor(() => expect(reportsOf(app).some(isIt)).toBe(true), poll);

test("it leads requests to the Machines of an App, from the first change on that concerns it", async () => {
  const app = await withReach();
  await app.offer([web]);
  const proxy = await ownProxy(app);
  expect(await ask(proxy, "/path")).toMatchObject({ status: 200, text: "web.localhost /path" });
  expect(await ask(proxy, "/", "other")).toMatchObject({ status: 404 });
  await app.call("POST", "/apps", { name: "other", org_slug: "personal" });
  await app.offer([web], "other");
  await vi.waitFor(async () => expect(await ask(proxy, "/", "other")).toMatchObject({ status: 200 }), poll);
  await app.call("DELETE", "/apps/web");
  await vi.waitFor(async () => expect(await ask(proxy)).toMatchObject({ status: 404 }), poll);
});

test("a request starts a Machine that sleeps, once, whichever of two proxies gets it", async () => {
  const app = await withReach({ delays: "believable" });
  const id = await sleeper(app);
  const proxies = [await ownProxy(app), await ownProxy(app)] as const;
  await vi.waitFor(async () => expect(await stateOf(app, id)).toBe("started"), poll);
  await app.call("POST", `/apps/web/machines/${id}/stop`);
  await vi.waitFor(async () => expect(await stateOf(app, id)).toBe("stopped"), poll);
  const answers = await Promise.all([...proxies, ...proxies].map((proxy) => ask(proxy)));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const { body } = await app.call("GET", `/apps/web/machines/${id}`);
  const starts = (body.events as { type: string; status: string }[]).filter(({ status }) => status === "starting");
  expect(starts).toHaveLength(2);
});

test("a token of a proxy starts only Machines that a request may start", async () => {
  const app = await withReach();
  const token = await proxyToken(app);
  const start = async (id: string) =>
    (await fetch(app.url + startPath(id), { method: "POST", headers: { authorization: `Bearer ${token}` } })).status;
  const [may, mayNot, cordoned] = [await sleeper(app), await sleeper(app, { autostart: false }), await sleeper(app)];
  for (const id of [may, mayNot, cordoned]) await app.call("POST", `/apps/web/machines/${id}/stop`);
  await app.call("POST", `/apps/web/machines/${cordoned}/cordon`);
  for (const id of [may, mayNot, cordoned, "unknown"]) expect(await start(id)).toBe(204);
  expect(await Promise.all([may, mayNot, cordoned].map((id) => stateOf(app, id)))).toEqual([
    ...["started", "stopped", "stopped"],
  ]);
});

test("a Machine is stopped when it has been idle at all proxies", async () => {
  const app = await withReports();
  const clock = app.clock as ManualClock;
  const id = await sleeper(app);
  const [first] = [await ownProxy(app), await ownProxy(app)];
  const stream = await openStream(first);
  await reported(app, ({ busy }) => busy.includes(id));
  const [busy] = reportsOf(app).filter((one) => one.busy.includes(id));
  clock.advance(2 * idle);
  expect(await stateOf(app, id)).toBe("started");
  stream.end();
  await vi.waitFor(() => {
    const last = reportsOf(app).findLast(({ replica }) => replica === busy?.replica);
    expect(last?.busy).toEqual([]);
  }, poll);
  clock.advance(idle - 1);
  expect(await stateOf(app, id)).toBe("started");
  clock.advance(1);
  await vi.waitFor(async () => expect(await stateOf(app, id)).toBe("stopped"), poll);
});

test("of a proxy that was killed, the requests count for a minute", async () => {
  const app = await withReports();
  const clock = app.clock as ManualClock;
  const id = await sleeper(app);
  const [first, second] = [await ownProxy(app), await ownProxy(app)];
  const [broken, kept] = [await openStream(first), await openStream(second)];
  await vi.waitFor(() => {
    const busy = new Set(reportsOf(app).flatMap((one) => (one.busy.includes(id) ? one.replica : [])));
    expect(busy.size).toBe(2);
  }, poll);
  const ended = once(broken, "close");
  first.child.kill("SIGKILL");
  await ended;
  // Only its own connections break.
  expect(kept.destroyed).toBe(false);
  expect(await ask(second)).toMatchObject({ status: 200 });
  clock.advance(2 * idle);
  expect(await stateOf(app, id)).toBe("started");
  second.child.kill("SIGKILL");
  await second.end;
  // The service has noticed it once it lets the time pass.
  await vi.waitFor(async () => {
    clock.advance(idle);
    expect(await stateOf(app, id)).toBe("stopped");
  }, poll);
});

test("without the service it routes as before and starts nothing, and then learns what has changed", async () => {
  const app = await withReach();
  const way = await wayTo(app.url);
  await app.offer([web]);
  const proxy = await ownProxy(app, [], way.url);
  await app.call("POST", "/apps", { name: "sleeping", org_slug: "personal" });
  const services = [{ protocol: "tcp", internal_port: 8080, ports: [web], autostart: true }];
  const { body } = await app.call("POST", "/apps/sleeping/machines", { config: { image: "nginx", services } });
  await vi.waitFor(async () => expect(await ask(proxy, "/", "sleeping")).toMatchObject({ status: 200 }), poll);
  await app.call("POST", `/apps/sleeping/machines/${body.id}/stop`);
  const readiness = async () => (await (await fetch(`${proxy.health}/readyz`)).json()) as object;
  const { at } = (await readiness()) as { readonly at: number };
  way.close();
  await vi.waitFor(async () => expect(await readiness()).toMatchObject({ status: "ok", connected: false }), poll);
  expect(await ask(proxy)).toMatchObject({ status: 200 });
  await app.call("POST", "/apps", { name: "new", org_slug: "personal" });
  await app.offer([web], "new");
  expect(await ask(proxy, "/", "new")).toMatchObject({ status: 404 });
  const waiting = await vi.waitFor(async () => {
    const answer = await ask(proxy, "/", "sleeping");
    expect(answer.status).toBe(503);
    return answer;
  }, poll);
  expect(waiting.text).toContain("1 stopped");
  expect((await app.call("GET", `/apps/sleeping/machines/${body.id}`)).body.state).toBe("stopped");
  await way.open();
  await vi.waitFor(async () => expect(await ask(proxy, "/", "new")).toMatchObject({ status: 200 }), poll);
  expect(await ask(proxy, "/", "sleeping")).toMatchObject({ status: 200 });
  expect(await ask(proxy)).toMatchObject({ status: 200 });
  // It continues where it stood.
  const feeds = way.asked.filter((line) => line.startsWith("GET /local/proxy/feed"));
  expect(feeds[0]).not.toContain("run=");
  expect(Number(/&at=(\d+)/.exec(feeds.at(-1) ?? "")?.[1])).toBeGreaterThanOrEqual(at);
});

test("it accepts no connection before it knows what the service has", async () => {
  const app = await withReach();
  await app.offer([web]);
  const way = await wayTo(app.url);
  way.close();
  const [http, health] = [await freePort(), await freePort()];
  const token = await proxyToken(app);
  const proxy = startProxy(way.url, token, ["--http", String(http), "--health", `127.0.0.1:${health}`]);
  await vi.waitFor(async () => expect((await fetch(`http://127.0.0.1:${health}/readyz`)).status).toBe(503), poll);
  expect((await fetch(`http://127.0.0.1:${health}/healthz`)).status).toBe(200);
  expect(await ask({ http })).toMatchObject({ status: "ECONNREFUSED" });
  await way.open();
  await proxy.running;
  expect(await ask({ http })).toMatchObject({ status: 200 });
  expect((await fetch(`http://127.0.0.1:${health}/readyz`)).status).toBe(200);
});

test("a token that is no proxy's is refused, and said once", async () => {
  const app = await withReach();
  const proxy = startProxy(app.url, app.token);
  const refusal = "needs a token of the role proxy";
  await vi.waitFor(() => expect(proxy.said()).toContain(refusal), poll);
  // A second kind of failure comes after several attempts.
  await app.close();
  await vi.waitFor(() => expect(proxy.said()).toContain("ECONNREFUSED"), poll);
  expect(proxy.said().split(refusal)).toHaveLength(2);
  expect(proxy.said()).not.toContain(app.token);
});

test("with a revoked token it is told nothing more, and routes as before", async () => {
  const app = await withReports();
  const clock = app.clock as ManualClock;
  await app.offer([web]);
  const proxy = await ownProxy(app);
  const { store } = app.service.context;
  const { id } = store.get<{ id: string }>("SELECT substr(hash, 1, 12) AS id FROM tokens WHERE role = 'proxy'") ?? {
    id: "",
  };
  revokeTokens(store, id);
  clock.advance(15_000);
  await vi.waitFor(() => expect(proxy.said()).toContain("token validation error"), poll);
  expect(await ask(proxy)).toMatchObject({ status: 200 });
});

test("certificates of hostnames are served, and the next connection gets a new one", async () => {
  const app = await withReach();
  await app.offer([web, { port: 443, handlers: ["tls", "http"] }]);
  const proxy = await ownProxy(app);
  const host = "www.example.com";
  const upload = async (): Promise<string> => {
    const leaf = currentCertificate({ hosts: [host] });
    const { status, text } = await app.call("POST", "/apps/web/certificates/custom", { hostname: host, ...leaf });
    expect([status, text]).toEqual([201, expect.any(String)]);
    return new X509Certificate(leaf.fullchain).fingerprint256;
  };
  const served = async (): Promise<string | undefined> => {
    const socket = await secured("127.0.0.1", proxy.https, host);
    socket.on("error", () => {});
    return socket.getPeerX509Certificate()?.fingerprint256;
  };
  for (let times = 0; times < 2; times++) {
    const wanted = await upload();
    await vi.waitFor(async () => expect(await served()).toBe(wanted), poll);
  }
  const secure = await get(`https://127.0.0.1:${proxy.https}/`, host, { servername: host });
  expect(secure).toMatchObject({ status: 200, text: `${host} /` });
  expect(await get(`http://127.0.0.1:${proxy.http}/`, host)).toMatchObject({ status: 200 });
  await app.call("DELETE", `/apps/web/certificates/${host}/custom`);
  await app.call("DELETE", `/apps/web/certificates/${host}`);
  await vi.waitFor(
    async () => expect(await get(`http://127.0.0.1:${proxy.http}/`, host)).toMatchObject({ status: 404 }),
    poll,
  );
  expect(proxy.said()).not.toContain("PRIVATE KEY");
});

test("Apps answer below a domain, whose certificate is in a file", async () => {
  const leaf = currentCertificate({ hosts: ["*.apps.example.com"] });
  const files = [
    ...["--tls-cert", fileOf(leaf.fullchain), "--tls-key", fileOf(leaf.private_key)],
    ...["--apps-domain", "apps.example.com"],
  ];
  const app = await withReach();
  await app.offer([web, { port: 443, handlers: ["tls", "http"] }]);
  const proxy = await ownProxy(app, files);
  const host = "web.apps.example.com";
  expect(await get(`https://127.0.0.1:${proxy.https}/`, host, { servername: host })).toMatchObject({ status: 200 });
  const socket = await secured("127.0.0.1", proxy.https, host);
  expect(socket.getPeerX509Certificate()?.subjectAltName).toBe("DNS:*.apps.example.com");
});

test("raw ports are those that it is given, and clients are those of the PROXY protocol", async () => {
  const app = await withReach();
  await app.offer([{ port: 5432, handlers: ["proxy_proto"] }]);
  const at = await freePort();
  const proxy = await ownProxy(app, [...["--tcp", `web:5432=${at}`, "--trust-proxy", "127.0.0.1", "--proxy-protocol"]]);
  const socket = await connected("127.0.0.1", at);
  socket.write("PROXY TCP4 203.0.113.7 127.0.0.1 4321 5432\r\n");
  expect(await echoed(socket)).toBe("PROXY TCP4 203.0.113.7 127.0.0.1 4321 5432\r\nhello\n");
  const named = await connected("127.0.0.1", proxy.http);
  named.write("PROXY TCP4 203.0.113.7 127.0.0.1 4321 80\r\nGET / HTTP/1.1\r\nhost: web.localhost\r\n\r\n");
  const [answer] = (await once(named, "data")) as [Buffer];
  // Names below localhost are only for clients of its computer.
  expect(answer.toString()).toMatch(/^HTTP\/1.1 404 /);
});

test("at its end it answers what was sent, and then ends", async () => {
  const app = await withReach();
  await app.offer([web]);
  const proxy = await ownProxy(app);
  const stream = await openStream(proxy);
  proxy.child.kill("SIGTERM");
  await vi.waitFor(async () => expect(await ask(proxy)).toMatchObject({ status: "ECONNREFUSED" }), poll);
  expect((await fetch(`${proxy.health}/readyz`)).status).toBe(503);
  const closed = once(stream, "close");
  stream.end();
  await closed;
  expect(await proxy.end).toEqual([0, null]);
});

test("metrics and charts of the service have what proxies answer, each answer once", async () => {
  const app = await withReports();
  await app.offer([web]);
  const proxy = await ownProxy(app);
  for (let times = 0; times < 3; times++) expect(await ask(proxy)).toMatchObject({ status: 200 });
  expect(await ask(proxy, "/", "missing")).toMatchObject({ status: 404 });
  proxy.child.kill("SIGTERM");
  expect(await proxy.end).toEqual([0, null]);
  const count = async (): Promise<number | undefined> =>
    (await figures(app)).get('machines_service_proxy_requests_total{app="web",status="2xx"}');
  expect(await count()).toBe(3);
  expect((await figures(app)).get('machines_service_proxy_request_duration_seconds_count{app="web"}')).toBe(3);
  const chart = app.service.proxy?.traffic.take() ?? [];
  expect(chart.map(({ route, answers: { requests } }) => [route, requests])).toEqual([
    ["", 3],
    ["http://web.localhost", 3],
  ]);

  // An answer of the service that was lost.
  const { app: id } = chart[0] ?? { app: "" };
  const [replica = ""] = reportsOf(app).map((report) => report.replica);
  const tell = async (number: number, of = replica, to = id): Promise<number> => {
    const answers = [{ app: to, route: "http://web.localhost", statuses: { 200: 2, 0: 1 }, times: { 3: 2 } }];
    const headers = { authorization: `Bearer ${proxy.token}` };
    return (
      await fetch(app.url + answersPath, {
        ...{ method: "POST", headers, body: JSON.stringify({ replica: of, number, answers }) },
      })
    ).status;
  };
  expect([await tell(7), await tell(7), await tell(8, replica, "gone")]).toEqual([204, 204, 204]);
  expect(await tell(9, "unknown")).toBe(409);
  expect(await count()).toBe(5);
});

test("a Machine ends once no proxy sends it requests", async () => {
  const server = createServer((request, response) => {
    response.flushHeaders();
    request.pipe(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  afterThisTest(() => void server.close());
  const endpoint = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  let host: RuntimeHost | undefined;
  const app = await withReports({
    runtime: (given) => {
      host = given;
      const reach = { endpoint: () => endpoint, listens: () => Promise.resolve(true) };
      return Object.assign(new SimulatedRuntime(given), { reach });
    },
  });
  const id = await app.offer([web]);
  expect(host?.drained(id)).toBe(undefined);
  const [first, second] = [await ownProxy(app), await ownProxy(app)];
  const streams = [await openStream(first), await openStream(second)];
  await app.call("POST", `/apps/web/machines/${id}/cordon`);
  const drained = vi.fn<() => void>();
  const whole = host?.drained(id)?.then(drained);
  // Each has a request, which ends later.
  const drainingAt = (): number => {
    const last = new Map(reportsOf(app).map(({ replica, draining }) => [replica, draining]));
    return [...last.values()].filter((one) => one.includes(id)).length;
  };
  await vi.waitFor(() => expect(drainingAt()).toBe(2), poll);
  streams[0]?.end();
  await vi.waitFor(() => expect(drainingAt()).toBe(1), poll);
  expect(drained).not.toHaveBeenCalled();
  streams[1]?.end();
  await whole;
  expect(drained).toHaveBeenCalled();
  // Without a request, it is over when they know.
  await host?.drained(id);
});

test("a proxy asks the service for the answer to a certificate authority, and passes on nothing else of that path", async () => {
  const app = await withReach({
    runtime: (given) =>
      Object.assign(new SimulatedRuntime(given), {
        reach: { endpoint: () => undefined, listens: () => Promise.resolve(false) },
        challengeRoutes: { open: () => Promise.resolve(() => {}) },
      }),
    issuer: () => ({
      name: "https://ca.example/directory",
      request() {},
      challenges: {
        answerOf: (token) => (token === "open-1" ? "open-1.thumbprint" : undefined),
        proofOf: () => undefined,
      },
      close: () => Promise.resolve(),
    }),
  });
  const way = await wayTo(app.url);
  const proxy = await ownProxy(app, [], way.url);
  const path = "/.well-known/acme-challenge/";
  // The hostname needs not be known here yet.
  const at = (token: string) => get(`http://127.0.0.1:${proxy.http}${path}${token}`, "shop.example.com");
  expect(await at("open-1")).toMatchObject({ status: 200, text: "open-1.thumbprint\n" });
  for (const other of ["other", "", "..%2f..%2fhealthz", "open-1/more"]) expect((await at(other)).status).toBe(404);
  expect(way.asked.filter((line) => line.includes(path))).toEqual([
    `GET ${path}open-1 HTTP/1.1`,
    `GET ${path}other HTTP/1.1`,
  ]);
  way.close();
  expect((await at("open-1")).status).toBe(404);
});

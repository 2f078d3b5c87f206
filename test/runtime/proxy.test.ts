// The proxy: requests from this computer reach the Machines of an App, and none is lost when they change.
import { once } from "node:events";
import { readFileSync, mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { describe, expect, test } from "vitest";
import { rootFile } from "../../service/runtime/localAuthority.ts";
import { delayProfiles } from "../../service/time/delays.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { image } from "./image.ts";
import { load } from "./requests.ts";
import { docker, hasEngine, withRuntime } from "./runtimes.ts";

type App = Awaited<ReturnType<typeof withRuntime>>;

/** A service at port 80, whose Machines get requests when their check passes. */
const web = (more: object = {}, port: object = {}) => ({
  protocol: "tcp",
  internal_port: 8080,
  ports: [{ port: 80, handlers: ["http"], ...port }],
  checks: [{ type: "http", path: "/", interval: "1s" }],
  ...more,
});

interface Asked {
  readonly host?: string;
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
  readonly scheme?: "http" | "https";
  readonly ca?: string;
  readonly maxVersion?: "TLSv1.2";
}

/** A request through the proxy; the answer's body is not read yet. */
async function open(app: App, path: string, asked: Asked = {}): Promise<IncomingMessage> {
  const { host = "web.localhost", method = "GET", headers, body, scheme = "http", ca, maxVersion } = asked;
  const port = app.service.proxy?.ports[scheme];
  const options = { host: "127.0.0.1", port, path, method, headers: { host, ...headers }, agent: false };
  const request =
    scheme === "http"
      ? httpRequest(options)
      : httpsRequest({ ...options, servername: host, ...(ca ? { ca } : {}), ...(maxVersion ? { maxVersion } : {}) });
  request.end(body);
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  // The other side may close the connection before it has the whole body.
  request.on("error", () => {});
  return answer;
}

async function textOf(answer: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of answer) text += String(chunk);
  return text;
}

/** The whole answer of a request through the proxy. */
async function fetchBy(app: App, path: string, asked: Asked = {}) {
  const answer = await open(app, path, asked);
  return { status: answer.statusCode, headers: answer.headers, text: await textOf(answer) };
}

const started = async (app: App, config: object): Promise<string> => {
  const id = await app.create(config);
  await app.reaches(id, "started");
  return id;
};

describe.runIf(hasEngine)("the proxy", () => {
  test("a request by host name reaches a Machine of the App, with its headers and body", async () => {
    const app = await withRuntime("docker");
    const id = await app.create({ services: [web()] });
    // It waits until the Machine has started and its check passes.
    expect(await fetchBy(app, "/")).toMatchObject({ status: 200, text: `${id} of web\n` });
    const { text } = await fetchBy(app, "/headers", { headers: { "x-own": "yes" } });
    expect(JSON.parse(text)).toMatchObject({
      "X-Own": ["yes"],
      "X-Forwarded-Proto": ["http"],
      "X-Forwarded-Host": ["web.localhost"],
    });
    const body = "x".repeat(100_000);
    expect((await fetchBy(app, "/length", { method: "POST", body })).text).toBe("100000\n");
    expect(await fetchBy(app, "/", { host: "other.localhost" })).toMatchObject({
      status: 404,
      text: 'no App has the host name "other.localhost"\n',
    });
    expect((await fetchBy(app, "/", { host: "81.web.localhost" })).text).toBe(
      "App web has no service for http at port 81\n",
    );
  });

  test("an answer is streamed, and another protocol passes after an upgrade", async () => {
    const app = await withRuntime("docker");
    await started(app, { services: [web()] });
    const answer = await open(app, "/slow/300");
    const [first] = (await once(answer, "data")) as [Buffer];
    expect(first.toString()).toBe("begun\n");
    expect(await textOf(answer)).toBe("ended\n");
    const request = httpRequest({
      host: "127.0.0.1",
      port: app.service.proxy?.ports.http,
      path: "/upgrade",
      headers: { host: "web.localhost", connection: "upgrade", upgrade: "websocket" },
    });
    request.end();
    const [, socket] = await once(request, "upgrade");
    socket.write("hello");
    expect(String((await once(socket, "data"))[0])).toBe("hello");
    socket.destroy();
  });

  test("an answer passes with all of its headers, but not with those about the connection", async () => {
    const app = await withRuntime("docker");
    await started(app, { services: [web()] });
    const rich = await open(app, "/rich");
    expect((await textOf(rich)).length).toBe(8 << 20);
    expect(rich).toMatchObject({ headers: { "set-cookie": ["a=1", "b=2"] }, trailers: { "x-trailer": "end" } });
    expect(rich.headers).not.toHaveProperty("x-hop");
    const sent = { "x-hop": "yes", connection: "close, x-hop", "x-forwarded-for": "1.2.3.4", cookie: ["a=1", "b=2"] };
    const seen = JSON.parse((await fetchBy(app, "/headers", { headers: sent })).text);
    expect(seen).toMatchObject({ "X-Forwarded-For": ["127.0.0.1"], Cookie: ["a=1; b=2"] });
    expect(seen).not.toHaveProperty("X-Hop");
    const head = await fetchBy(app, "/release", { method: "HEAD" });
    expect(head).toMatchObject({ status: 200, text: "", headers: { "content-length": "2" } });
  });

  test("a refused upload and a refused upgrade have their answers", async () => {
    const app = await withRuntime("docker");
    await started(app, { services: [web()] });
    const headers = { expect: "100-continue" };
    for (const body of ["x", "x".repeat(8 << 20)])
      expect(await fetchBy(app, "/refused", { method: "POST", body, headers })).toMatchObject({
        status: 413,
        text: "too large\n",
      });
    const asked = { connection: "upgrade", upgrade: "websocket" };
    expect(await fetchBy(app, "/release", { headers: asked })).toMatchObject({ status: 200, text: "1\n" });
    expect(await fetchBy(app, "/", { headers: asked, host: "other.localhost" })).toMatchObject({ status: 404 });
  });

  test("requests go to Machines that run, are not cordoned and pass their checks", async () => {
    const app = await withRuntime("docker");
    const [good, cordoned] = [await started(app, { services: [web()] }), await started(app, { services: [web()] })];
    await started(app, { services: [web()], env: { MACHINES_SIMULATE: "checks:critical" } });
    const answering = async (): Promise<Set<string>> => {
      const answers = await Promise.all(Array.from({ length: 20 }, () => fetchBy(app, "/")));
      return new Set(answers.map(({ text }) => text.split(" ")[0] ?? ""));
    };
    await expect.poll(answering).toEqual(new Set([good, cordoned]));
    await app.post(cordoned, "cordon");
    expect(await answering()).toEqual(new Set([good]));
    await app.post(cordoned, "uncordon");
    await app.post(good, "cordon");
    expect(await answering()).toEqual(new Set([cordoned]));
    await app.post(cordoned, "cordon");
    expect(await fetchBy(app, "/")).toMatchObject({
      status: 503,
      text: "App web cannot answer: of its Machines, 1 failing its checks, 2 cordoned\n",
    });
  });

  test("a Machine that stops gets no new request, and those that have begun end", async () => {
    const app = await withRuntime("docker");
    const ids = [await started(app, { services: [web()] }), await started(app, { services: [web()] })];
    await fetchBy(app, "/");
    const slow = await Promise.all(Array.from({ length: 6 }, () => open(app, "/slow/700")));
    const [stopping, other] = ids as [string, string];
    await app.post(stopping, "stop");
    for (let round = 0; round < 10; round++) expect((await fetchBy(app, "/")).text).toContain(other);
    for (const answer of slow) expect(await textOf(answer)).toContain("ended");
    await app.reaches(stopping, "stopped");
  });

  test("a Machine that is killed loses no request that can be repeated", async () => {
    const app = await withRuntime("docker");
    await started(app, { services: [web()] });
    await started(app, { services: [web()] });
    await fetchBy(app, "/");
    const requests = load(app.service.proxy?.ports.http ?? 0, "/", { app: "web" });
    for (let round = 0; round < 3; round++) {
      const before = requests.seen.answered;
      await expect.poll(() => requests.seen.answered).toBeGreaterThan(before + 50);
      const filters = { label: [`machines-service.data=${app.dataId()}`] };
      const [container] = await docker.listContainers({ filters });
      await docker.getContainer(container?.Id ?? "").kill();
      await expect.poll(async () => (await docker.listContainers({ filters })).length).toBe(2);
    }
    expect((await requests.stop()).lost).toEqual([]);
  });

  test("clients that break off or ask for what it does not speak do no harm", async () => {
    const app = await withRuntime("docker");
    await started(app, { services: [web()] });
    await fetchBy(app, "/");
    const port = app.service.proxy?.ports.http ?? 0;
    for (const name of ["web.localhost", "none.localhost"]) {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => {});
      await once(socket, "connect");
      socket.write(`GET /upgrade HTTP/1.1\r\nhost: ${name}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`);
      socket.resetAndDestroy();
    }
    const offer = { connection: "upgrade, http2-settings", upgrade: "h2c", "http2-settings": "" };
    expect((await fetchBy(app, "/", { headers: offer })).status).toBe(200);
    expect(
      (await fetchBy(app, "http://web.localhost/headers", { headers: { "x-forwarded-proto": "gopher" } })).text,
    ).toContain('"X-Forwarded-Proto":["http"]');
    expect(await fetchBy(app, "/", { host: "web.localhost\u00ff" }).catch(() => ({ status: 404 }))).toMatchObject({
      status: 404,
    });
    expect((await fetchBy(app, "/")).status).toBe(200);
  });

  test("a request waits for the only Machine while it is updated", async () => {
    const app = await withRuntime("docker");
    const id = await started(app, { services: [web()] });
    expect((await fetchBy(app, "/")).status).toBe(200);
    const update = app.call("POST", `${app.machines}/${id}`, {
      config: { image, services: [web()], env: { NEW: "1" } },
    });
    const answers: (number | undefined)[] = [];
    while ((await app.state(id)) !== "started" || answers.length < 20) answers.push((await fetchBy(app, "/")).status);
    expect((await update).status).toBe(200);
    expect(new Set(answers)).toEqual(new Set([200]));
  });

  test("autostart starts a Machine for a request, and autostop stops it when it is idle", async () => {
    const app = await withRuntime("docker", { delays: { ...delayProfiles.none, retryAlways: 1000, idle: 500 } });
    // Longer than a request waits for a Machine whose checks fail.
    const checks = [{ type: "http", path: "/", grace_period: "6s" }];
    const sleeping = web({ autostart: true, autostop: "stop", checks });
    const id = await started(app, { services: [sleeping] });
    await app.reaches(id, "stopped");
    expect(await fetchBy(app, "/")).toMatchObject({ status: 200, text: `${id} of web\n` });
    await app.reaches(id, "stopped");
    const kept = await started(app, { services: [web({ autostop: "suspend", min_machines_running: 1 })] });
    const second = await started(app, { services: [web({ autostop: "suspend", min_machines_running: 1 })] });
    const states = async () => [await app.state(kept), await app.state(second)].sort();
    await expect.poll(states).toEqual(["started", "suspended"]);
  });

  test("at the hard limit a request waits, and below it Machines share the load", async () => {
    const app = await withRuntime("docker");
    const limited = web({ concurrency: { type: "requests", soft_limit: 1, hard_limit: 2 } });
    await started(app, { services: [limited] });
    await started(app, { services: [limited] });
    await fetchBy(app, "/");
    const slow = await Promise.all(Array.from({ length: 4 }, () => open(app, "/slow/400")));
    const waiting = fetchBy(app, "/");
    const first = await Promise.race([
      waiting.then(() => "answered"),
      once(slow[0] as IncomingMessage, "data").then(() => "slow"),
    ]);
    expect(first).toBe("slow");
    for (const answer of slow) answer.resume();
    expect((await waiting).status).toBe(200);
  });

  test("https uses a certificate of the local authority, and force_https redirects to it", async () => {
    const data = mkdtempSync(join(tmpdir(), "machines-proxy-"));
    afterThisTest(() => rmSync(data, { recursive: true, force: true }));
    const app = await withRuntime("docker", { data });
    const ports = [
      { port: 80, handlers: ["http"], force_https: true },
      {
        port: 443,
        handlers: ["tls", "http"],
        http_options: { response: { headers: { "X-Added": "yes", "X-Removed": false } }, compress: true },
        tls_options: { versions: ["TLSv1.3"] },
      },
    ];
    const id = await started(app, { services: [web({ ports })] });
    const { https } = app.service.proxy?.ports ?? {};
    expect(await fetchBy(app, "/path?a=1")).toMatchObject({
      status: 301,
      headers: { location: `https://web.localhost:${https}/path?a=1` },
    });
    const ca = readFileSync(rootFile(data), "utf8");
    expect(await fetchBy(app, "/", { scheme: "https", ca })).toMatchObject({ status: 200, text: `${id} of web\n` });
    const { headers } = await fetchBy(app, "/headers", { scheme: "https", ca });
    expect(headers).toMatchObject({ "x-added": "yes" });
    expect(headers).not.toHaveProperty("x-removed");
    const long = { "accept-encoding": "gzip", "x-long": "a".repeat(2000) };
    expect((await fetchBy(app, "/headers", { scheme: "https", ca, headers: long })).headers).toMatchObject({
      "content-encoding": "gzip",
    });
    await expect(fetchBy(app, "/", { scheme: "https", ca, maxVersion: "TLSv1.2" })).rejects.toThrow(
      /disconnected|hang up|RESET/,
    );
    await expect(fetchBy(app, "/", { scheme: "https" })).rejects.toThrow(/certificate/);
  });

  test("raw connections have a port of their own, with TLS where the service asks for it", async () => {
    const data = mkdtempSync(join(tmpdir(), "machines-proxy-"));
    afterThisTest(() => rmSync(data, { recursive: true, force: true }));
    const app = await withRuntime("docker", { data });
    await app.call("POST", "/apps", { name: "other", org_slug: "personal" });
    // Changes of two Apps at once.
    const raw = { config: { image, services: [{ protocol: "tcp", internal_port: 9000, ports: [{ port: 903 }] }] } };
    await Promise.all(["other", "other"].map((name) => app.call("POST", `/apps/${name}/machines`, raw)));
    const ports = [
      { port: 900 },
      { port: 901, handlers: ["tls"], tls_options: { versions: ["TLSv1.3"] } },
      { port: 902, handlers: ["proxy_proto"] },
    ];
    await started(app, { services: [{ protocol: "tcp", internal_port: 9000, ports }] });
    const { proxy, context } = app.service;
    const web_ = context.store.get<{ id: string; name: string }>("SELECT id, name FROM apps WHERE name = 'web'");
    const addresses = (await proxy?.addressesOf(web_ ?? { id: "", name: "" })) ?? [];
    expect(addresses.map(({ port, url }) => [port, url.replace(/:\d+$/, "")])).toEqual([
      [900, "tcp://127.0.0.1"],
      [901, "tls://127.0.0.1"],
      [902, "tcp://127.0.0.1"],
    ]);
    const [plain = 0, secure = 0, marked = 0] = addresses.map(({ url }) => Number(new URL(url).port));
    const echoed = async (socket: ReturnType<typeof connect>): Promise<string> => {
      socket.write("hello\n");
      let text = "";
      while (!text.endsWith("hello\n")) text += String((await once(socket, "data"))[0]);
      socket.destroy();
      return text;
    };
    expect(await echoed(connect(plain, "127.0.0.1"))).toBe("hello\n");
    const ca = readFileSync(rootFile(data), "utf8");
    expect(await echoed(connectTls({ host: "127.0.0.1", port: secure, servername: "web.localhost", ca }))).toBe(
      "hello\n",
    );
    const old = connectTls({ host: "127.0.0.1", port: secure, servername: "web.localhost", ca, maxVersion: "TLSv1.2" });
    await expect(once(old, "secureConnect")).rejects.toThrow(/protocol version/);
    expect(await echoed(connect(marked, "127.0.0.1"))).toMatch(
      /^PROXY TCP4 127\.0\.0\.1 127\.0\.0\.1 \d+ 902\r\nhello\n$/,
    );
  });
});

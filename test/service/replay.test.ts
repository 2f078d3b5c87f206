// Requests that a Machine replays in another one, by the proxy of the service and by one that is a process of its own.
import { once } from "node:events";
import { createServer, request as send, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mostKeptBody } from "../../service/proxy/keptBody.ts";
import { replayOf } from "../../service/proxy/replay.ts";
import { SimulatedRuntime } from "../../service/runtime/simulated.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { callerWith } from "./client.ts";
import { ownProxy } from "./ownProxies.ts";
import { withReach } from "./reachable.ts";

/** What a Machine's program answers. */
type Program = (request: IncomingMessage, response: ServerResponse, machine: string) => void;

const port = { port: 80, handlers: ["http"] };

async function listening(program: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> {
  const server = createServer(program);
  server.on("upgrade", (request, socket) => {
    const source = request.headers["fly-replay-src"];
    if (source === undefined)
      return void socket.end("HTTP/1.1 200 OK\r\nfly-replay: elsewhere=true\r\ncontent-length: 0\r\n\r\n");
    socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
    socket.end(String(source));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  afterThisTest(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A service whose Machines each have a program of their own. A path `/to/TEXT` is replayed once, with this header. */
async function withPrograms(program: Program = () => {}) {
  const ports = new Map<string, number>();
  /** Machines that have got a request, in this order. */
  const asked: string[] = [];
  const app = await withReach({
    runtime: (given) =>
      Object.assign(new SimulatedRuntime(given), {
        reach: {
          endpoint: (id: string) => (ports.has(id) ? `127.0.0.1:${ports.get(id)}` : undefined),
          listens: () => Promise.resolve(true),
        },
      }),
  });
  /** Creates a Machine of an App in a region, by default a started one. */
  const machine = async (region: string, name = "web", more: object = {}, call = app.call): Promise<string> => {
    const services = [{ protocol: "tcp", internal_port: 8080, ports: [port], autostart: true, autostop: "off" }];
    const config = { image: "nginx", services };
    const { body, text } = await call("POST", `/apps/${name}/machines`, { region, config, ...more });
    if (body?.id === undefined) throw new Error(text);
    const id = String(body.id);
    ports.set(
      id,
      await listening((request, response) => {
        asked.push(id);
        const source = request.headers["fly-replay-src"];
        const to = /^\/to\/(.*)$/.exec(decodeURIComponent(request.url ?? ""))?.[1];
        if (to !== undefined && source === undefined)
          return void response.setHeader("fly-replay", to).end("not for clients");
        program(request, response, id);
        if (response.writableEnded) return;
        let body = "";
        request.on("data", (part: Buffer) => (body += part.toString()));
        request.on("end", () => response.end(JSON.stringify({ machine: id, source, body, length: body.length })));
      }),
    );
    app.service.proxy?.forget("");
    return id;
  };
  return { ...app, machine, asked, http: app.service.proxy?.ports.http ?? 0 };
}

/** Sends a request to an App by a proxy. */
async function ask(
  { http }: { readonly http: number },
  path: string,
  { name = "web", body, ...options }: { name?: string; body?: string; method?: string; headers?: object } = {},
) {
  const request = send({
    ...{ host: "127.0.0.1", port: http, path: encodeURI(path), agent: false },
    ...options,
    headers: { host: `${name}.localhost`, ...options.headers },
  });
  request.end(body);
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  let text = "";
  for await (const part of answer) text += String(part);
  const json = text.startsWith("{")
    ? (JSON.parse(text) as { machine: string; source?: string; body: string; length: number })
    : undefined;
  return { status: answer.statusCode, text, headers: answer.headers, ...json };
}

describe("a Machine hands a request on", () => {
  test("to a Machine, a region or any other Machine, which gets to know by whom and why", async () => {
    const app = await withPrograms();
    const ams = await app.machine("ams");
    const iad = await app.machine("iad");
    for (const to of [`instance=${iad}`, "region=iad", 'region="nrt,iad,ams"', `prefer_instance=${iad}`])
      expect(await ask(app, `/to/${to};state=write`, { headers: { "fly-force-instance-id": ams } }), to).toMatchObject({
        status: 200,
        machine: iad,
        source: expect.stringMatching(new RegExp(`^instance=${ams};region=ams;t=\\d{16};state=write$`)),
      });
    const elsewhere = await ask(app, "/to/elsewhere=true", { headers: { "fly-force-instance-id": iad } });
    expect(elsewhere).toMatchObject({ status: 200, machine: ams });
    expect(elsewhere.headers).not.toHaveProperty("fly-replay");
    // A preference is not a condition.
    expect(await ask(app, '/to/region="nrt,any"')).toMatchObject({ status: 200 });
    expect(await ask(app, "/to/prefer_instance=gone")).toMatchObject({ status: 200 });
  });

  test("with its body, whether its length is known or not", async () => {
    const app = await withPrograms();
    const [ams, iad] = [await app.machine("ams"), await app.machine("iad")];
    const body = "x".repeat(mostKeptBody);
    const headers = { "fly-force-instance-id": ams };
    for (const framing of [{ "content-length": body.length }, { "transfer-encoding": "chunked" }])
      expect(
        await ask(app, `/to/instance=${iad}`, { method: "POST", body, headers: { ...headers, ...framing } }),
      ).toMatchObject({ status: 200, machine: iad, length: body.length });
    const tooLong = await ask(app, `/to/instance=${iad}`, { method: "POST", body: `${body}x`, headers });
    expect(tooLong).toMatchObject({ status: 502, text: expect.stringContaining("longer than 1048576 bytes") });
  });

  test("to another App of its organization, and to no App of another one", async () => {
    const app = await withPrograms();
    const other = callerWith(app, "of-acme", { slug: "acme" });
    for (const [name, call, org_slug] of [
      ["api", app.call, "personal"],
      ["theirs", other, "acme"],
    ] as const)
      expect((await call("POST", "/apps", { name, org_slug })).status).toBe(201);
    expect((await app.call("POST", "/apps", { name: "apart", org_slug: "personal", network: "apart" })).status).toBe(
      201,
    );
    const web = await app.machine("ams");
    const api = await app.machine("iad", "api");
    await app.machine("ams", "theirs", {}, other);
    await app.machine("ams", "apart");
    expect(await ask(app, "/to/app=api;region=iad")).toMatchObject({ status: 200, machine: api });
    const missing = await ask(app, "/to/app=missing");
    for (const name of ["theirs", "apart", "missing"]) {
      const refused = await ask(app, `/to/app=${name}`);
      expect(refused.status).toBe(502);
      // Who asks does not get to know whether an App of another organization exists.
      expect(refused.text.replaceAll(name, "missing")).toBe(missing.text);
    }
    expect(app.asked.filter((one) => one !== web)).toEqual([api]);
  });

  test("to one that sleeps, which starts", async () => {
    const app = await withPrograms();
    const ams = await app.machine("ams");
    const iad = await app.machine("iad");
    await app.call("POST", `/apps/web/machines/${iad}/stop`);
    await app.call("GET", `/apps/web/machines/${iad}/wait?state=stopped`);
    expect(await ask(app, "/to/region=iad")).toMatchObject({ status: 200, machine: iad });
    expect(app.asked).toEqual([ams, iad]);
  });

  test("five times at most", async () => {
    const app = await withPrograms((_, response) => void response.setHeader("fly-replay", "elsewhere=true").end());
    await app.machine("ams");
    await app.machine("iad");
    expect(await ask(app, "/")).toMatchObject({ status: 502, text: expect.stringContaining("5 times") });
    expect(app.asked).toHaveLength(6);
  });

  test.each([
    ["instanc=1", '"instanc" is no field: did you mean instance?'],
    ["elsewhere=perhaps", 'elsewhere is "perhaps", not true or false'],
    ["region=ams;region=iad", "it has region twice"],
    ["ams", '"ams" is not FIELD=VALUE'],
    [";", "it is empty; known fields are instance, prefer_instance, region, app, state, elsewhere"],
  ])("and the header %j is an error that says why", async (to, reason) => {
    const app = await withPrograms();
    const machine = await app.machine("ams");
    expect(await ask(app, `/to/${to}`)).toMatchObject({
      status: 502,
      text: `Machine ${machine} of App web hands the request on (fly-replay), and ${reason}\n`,
    });
  });

  test("and no Machine of its wish is there", async () => {
    const app = await withPrograms();
    await app.machine("ams");
    for (const to of ["region=iad", "instance=gone"])
      expect(await ask(app, `/to/${to}`)).toMatchObject({
        status: 503,
        text: "App web cannot answer: it has no such Machine with a service at this port\n",
      });
  });

  test("also a WebSocket", async () => {
    const app = await withPrograms();
    await app.machine("ams");
    await app.machine("iad");
    const headers = { host: "web.localhost", connection: "upgrade", upgrade: "websocket" };
    const request = send({ host: "127.0.0.1", port: app.http, path: "/socket", headers }).end();
    const [, socket, first] = (await once(request, "upgrade")) as [IncomingMessage, NodeJS.ReadableStream, Buffer];
    let text = first.toString();
    for await (const part of socket) text += String(part);
    expect(text).toMatch(/^instance=\w+;region=(?:ams|iad);t=\d{16}$/);
  });

  test("by a proxy that is a process of its own", async () => {
    const app = await withPrograms();
    expect((await app.call("POST", "/apps", { name: "api", org_slug: "personal" })).status).toBe(201);
    const ams = await app.machine("ams");
    const iad = await app.machine("iad");
    const api = await app.machine("ams", "api");
    const proxy = await ownProxy(app);
    const headers = { "fly-force-instance-id": ams };
    expect(await ask(proxy, "/to/region=iad", { headers })).toMatchObject({ status: 200, machine: iad });
    expect(await ask(proxy, "/to/app=api", { headers })).toMatchObject({ status: 200, machine: api });
  });
});

test("a client cannot say that a Machine handed its request on", async () => {
  const app = await withPrograms();
  const machine = await app.machine("ams");
  const answer = await ask(app, "/", { headers: { "fly-replay-src": "instance=any" } });
  expect(answer).toMatchObject({ status: 200, machine });
  expect(answer.source).toBeUndefined();
});

test("every header is read, or refused with a sentence", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^(?:(?:instance|region|app|state|elsewhere)[ =";,a-z]{0,9})*$/), (text) => {
      try {
        expect(replayOf(text, "sender").text).toBe(text);
      } catch (error) {
        expect(String(error)).toMatch(/^Error: .+/);
      }
    }),
  );
  fc.assert(
    fc.property(fc.stringMatching(/^[^"\0-\x1f]+$/), (state) => {
      expect(replayOf(`state="${state}"`, "sender").state).toBe(state.trim());
    }),
  );
});

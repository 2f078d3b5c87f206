// A service with a proxy and no containers: its Machines are simulated, and programs of the test answer for them.
import type { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttp, request as sendHttp, type IncomingMessage } from "node:http";
import { request as sendHttps } from "node:https";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { ServiceOptions } from "../../service/index.ts";
import type { ProxyPorts, Public } from "../../service/proxy/proxy.ts";
import { bind as bindBySystem, type Bind } from "../../service/runtime/bind.ts";
import { SimulatedRuntime } from "../../service/runtime/simulated.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { withApp } from "./client.ts";

const host = "127.0.0.1";

async function listening(server: Server): Promise<number> {
  server.listen(0, host);
  await once(server, "listening");
  afterThisTest(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Whether this system accepts listening at any address of 127.0.0.0/8. */
export const hasLoopback = process.platform === "linux";

/** Whether this process may bind ports below 1024. */
export const mayBindAll = hasLoopback && process.getuid?.() === 0;

/** A service whose Machines answer: an HTTP server at their port 8080, and an echo at 9000. */
export async function withReach(
  options: ServiceOptions = {},
  bind: Bind = bindBySystem,
  ports: ProxyPorts = { http: 0, https: 0 },
  open: Public = {},
) {
  const web = createHttp((request, response) => {
    // A stream in both directions.
    if (request.url === "/echo") {
      response.flushHeaders();
      return void request.pipe(response);
    }
    if (request.url === "/headers") return void response.end(JSON.stringify(request.headers));
    response.end(`${String(request.headers["x-forwarded-host"])} ${request.url}`);
  });
  web.on("upgrade", (_, socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
    socket.pipe(socket);
  });
  const echo = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.pipe(socket);
  });
  const [webPort, echoPort] = [await listening(web), await listening(echo)];
  const app = await withApp({
    runtime: (given) =>
      Object.assign(new SimulatedRuntime(given), {
        reach: {
          endpoint: (_: string, port: number) => `127.0.0.1:${port === 9000 ? echoPort : webPort}`,
          listens: () => Promise.resolve(true),
        },
      }),
    ...options,
  });
  await app.service.proxy?.listen(ports, bind, open);
  return {
    ...app,
    /** Assigns an address to an App. */
    assign: async (type: string, name = "web"): Promise<string> =>
      (await app.call("POST", `/apps/${name}/ip_assignments`, { type })).body.ip,
    release: (ip: string, name = "web") => app.call("DELETE", `/apps/${name}/ip_assignments/${ip}`),
    /** Creates a started Machine with these public ports: those with a handler `http` lead to 8080, others to 9000. */
    offer: async (ports: readonly PublicPort[], name = "web"): Promise<string> => {
      const services = ports.map((port) => ({
        protocol: "tcp",
        internal_port: port.handlers?.includes("http") ? 8080 : 9000,
        ports: [port],
      }));
      const { body } = await app.call("POST", `/apps/${name}/machines`, { config: { image: "nginx", services } });
      return body.id;
    },
  };
}

/** A public port of the configuration. */
export interface PublicPort {
  readonly port: number;
  readonly handlers?: readonly string[];
  readonly force_https?: boolean;
}

/** The answer to a request, or the code of the error. */
export async function get(url: string, named = "any.example", options: object = {}) {
  const request = (url.startsWith("https:") ? sendHttps : sendHttp)(url, {
    agent: false,
    headers: { host: named },
    rejectUnauthorized: false,
    ...options,
  });
  request.end();
  try {
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    let text = "";
    for await (const chunk of answer) text += String(chunk);
    return { status: answer.statusCode, location: answer.headers.location, text };
  } catch (error) {
    return { status: error instanceof Error && "code" in error ? String(error.code) : "unknown", text: "" };
  }
}

/** Sends a line by a connection, and returns all that comes back until the line has. Rejects if the connection is closed. */
export async function echoed(socket: Socket): Promise<string> {
  const closed = new AbortController();
  const close = (): void => closed.abort(new Error("the connection was closed"));
  if (socket.destroyed) close();
  socket.once("close", close);
  socket.write("hello\n");
  let text = "";
  while (!text.endsWith("hello\n")) text += String((await once(socket, "data", closed))[0]);
  socket.off("close", close);
  return text;
}

/** A connection to an address and port. */
export async function connected(ip: string, port: number): Promise<Socket> {
  const socket = connect(port, ip);
  afterThisTest(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

/** A connection with TLS; its certificate may be any. */
export async function secured(ip: string, port: number, servername?: string): Promise<TLSSocket> {
  const socket = connectTls({
    ...{ host: ip, port, rejectUnauthorized: false },
    ...(servername === undefined ? {} : { servername }),
  });
  afterThisTest(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}

/** The certificate that the proxy of a service serves for a name. */
export async function served(
  { service }: Awaited<ReturnType<typeof withReach>>,
  servername: string,
): Promise<X509Certificate> {
  const socket = await secured(host, service.proxy?.ports.https ?? 0, servername);
  const certificate = socket.getPeerX509Certificate();
  // The end of the service may break a connection that is still open.
  socket.on("error", () => {}).destroy();
  if (!certificate) throw new Error("the proxy serves no certificate");
  return certificate;
}

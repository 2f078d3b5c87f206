// Programs of the tests that stand in for Machines behind the real proxy, so that they can answer anything byte by byte.
import { createServer, connect, type Server, type Socket } from "node:net";
import { once } from "node:events";
import { expect } from "vitest";
import { SimulatedRuntime } from "../../service/runtime/simulated.ts";
import { withApp } from "../service/client.ts";
import { afterThisTest } from "../support/leftovers.ts";

/** The end of the headers of a message. */
export const headEnd = "\r\n\r\n";

/** A proper answer. */
export const plain = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";

/** Listens at a free port until the end of the test. */
export async function listening(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    // A client may end a connection at any time.
    socket.on("error", () => {}).once("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  afterThisTest(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const address = server.address();
  return typeof address === "object" && address ? address.port : 0;
}

/** A Machine that sees raw connections. What it writes is sent before it resets one. */
export const raw = (connected: (socket: Socket) => void): Promise<number> =>
  listening(createServer({ noDelay: true }, connected));

/** A Machine that answers each head of a request with these bytes, and keeps what it got. */
export async function answering(bytes: string | ((head: string) => string)) {
  const seen: string[] = [];
  const port = await raw((socket) => {
    let read = "";
    socket.on("data", (data) => {
      read += data.toString("latin1");
      for (let end = read.indexOf(headEnd); end >= 0; end = read.indexOf(headEnd)) {
        const head = read.slice(0, end + 2);
        read = read.slice(end + headEnd.length);
        seen.push(head);
        socket.write(typeof bytes === "string" ? bytes : bytes(head), "latin1");
      }
    });
    socket.on("end", () => socket.end());
  });
  return { port, seen };
}

/** A service whose Machines are programs of the test, and its proxy. */
export async function withStandIns() {
  const endpoints = new Map<string, string>();
  const logged: string[] = [];
  const app = await withApp({
    runtime: (host) =>
      Object.assign(new SimulatedRuntime(host), {
        reach: {
          endpoint: (machine: string) => endpoints.get(machine),
          listens: (machine: string) => Promise.resolve(endpoints.has(machine)),
        },
      }),
    log: { write: (line: string) => void logged.push(line) },
  });
  const ports = (await app.service.proxy?.listen({ http: 0, https: 0 })) ?? { http: 0, https: 0 };
  return {
    ...app,
    ports,
    /** What the proxy has logged as its own failures. */
    failures: () => logged.filter((line) => line.includes("the proxy failed")),
    /** Creates a Machine of an App, which is the program at a port of this computer. */
    async machineAt(at: number, name = "web", port: object = {}): Promise<string> {
      if (name !== "web") await app.call("POST", "/apps", { name, org_slug: "personal" });
      const ports = [{ port: 80, handlers: ["http"], ...port }];
      const config = { image: "nginx", services: [{ protocol: "tcp", internal_port: 8080, ports }] };
      const { body, text } = await app.call("POST", `/apps/${name}/machines`, { config });
      if (body?.id === undefined) throw new Error(text);
      endpoints.set(body.id, `127.0.0.1:${at}`);
      const state = async () => (await app.call("GET", `/apps/${name}/machines/${body.id}`)).body.state;
      await expect.poll(state).toBe("started");
      app.service.proxy?.changed(new Set([body.id]));
      return body.id;
    },
    /** Sends bytes to the proxy, and resolves with everything that it has sent when it ends the connection. */
    send: (bytes: string): Promise<string> => exchange(ports.http, bytes),
  };
}

/** Sends bytes to a port of this computer, and resolves with what came back until the proxy closed the connection. */
export const exchange = async (port: number, bytes: string): Promise<string> =>
  (await converse(port, [bytes], false)).text;

// A proxy that waits for more is silent for longer than this. A slower one only finds its client gone.
const silentMs = 25;

/**
 * Sends pieces of bytes to a port of this computer, and resolves with what came back until the connection was closed. When nothing
 * more comes, the client ends it.
 */
export async function converse(port: number, pieces: readonly string[], mayEnd = true) {
  const socket = connect({ host: "127.0.0.1", port, noDelay: true });
  let [text, isOurs] = ["", false];
  // A connection that is reset is closed too.
  const closed = new Promise<void>((resolve) => socket.on("error", () => {}).on("close", () => resolve()));
  for (const piece of pieces) {
    if (socket.writable && piece !== "") socket.write(piece, "latin1");
    if (pieces.length > 1) await new Promise((resolve) => setImmediate(resolve));
  }
  const silence = setTimeout(() => {
    if (!mayEnd) return;
    isOurs = true;
    socket.end();
  }, silentMs);
  socket.on("data", (data) => {
    text += data.toString("latin1");
    silence.refresh();
  });
  await closed;
  clearTimeout(silence);
  return { text, isOurs };
}

/** A request without a body that asks for the end of the connection. */
export const get = (path = "/", headers = "", host = "web.localhost"): string =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${headers}Connection: close${headEnd}`;

/** The body of the only answer in these bytes. */
export const bodyOf = (answer: string): string => answer.slice(answer.indexOf(headEnd) + headEnd.length);

/** The statuses of the answers in these bytes. */
export const statusesOf = (answers: string): number[] =>
  [...answers.matchAll(/(?:^|[^])HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));

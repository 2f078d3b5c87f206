// HTTP, HTTPS and WebSockets: requests by host name, sent to a Machine of the App.
import { Agent, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import compression from "compression";
import { createProxyServer, type ProxyServer } from "httpxy";
import type { PublicPort } from "./routes.ts";
import { Unavailable, type Target, type Targets } from "./targets.ts";

/** How a client speaks to the proxy. */
export type Scheme = "http" | "https";

// ASSUMED: a request without a body that only reads or that can be repeated is sent up to three times, if no answer began.
const attempts = 3;
const repeatable = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

/** Headers by which the proxy says who asks; a client's own are not believed. */
const forwarded = ["x-forwarded-for", "x-forwarded-port", "x-forwarded-proto", "x-forwarded-host"] as const;

/** An answer of the proxy itself. */
interface Own {
  readonly status: number;
  readonly text: string;
  readonly location?: string;
}

type Asked = Own | { readonly name: string; readonly port: PublicPort };

/** Sends requests to Machines. */
export class Web {
  readonly #targets: Targets;
  readonly #ports: () => Readonly<Record<Scheme, number>>;
  readonly #proxy: ProxyServer;
  /** Connections that are kept, by the port of the Machine. */
  readonly #agents = new Map<number, Agent>();
  readonly #failed = new WeakMap<object, (error: Error) => void>();
  readonly #options = new WeakMap<object, PublicPort["options"]>();
  // Events must not wait until a block is full.
  readonly #compress = compression({
    filter: (request, response) =>
      !String(response.getHeader("content-type")).startsWith("text/event-stream") &&
      compression.filter(request, response),
  });

  /** `ports` gives the ports at which the proxy listens. */
  constructor(targets: Targets, ports: () => Readonly<Record<Scheme, number>>) {
    this.#targets = targets;
    this.#ports = ports;
    this.#proxy = createProxyServer({ xfwd: true });
    this.#proxy.on("error", (error, request) => request && this.#failed.get(request)?.(error));
    this.#proxy.on("econnreset", (error, request) => this.#failed.get(request)?.(error));
    this.#proxy.on("proxyReq", (sent, request) => {
      // An answer that is none, such as an upgrade that no one asked for.
      const failed = this.#failed.get(request);
      sent.once("close", () => {
        // Not if it was answered, or is being repeated.
        if (failed !== undefined && failed === this.#failed.get(request)) failed(new Error("no answer"));
      });
    });
    this.#proxy.on("proxyReqWs", (sent, request, socket) => {
      socket.once("close", () => sent.destroy());
      sent.once("upgrade", (_answer, machine) => {
        this.#failed.delete(request);
        socket.once("close", () => machine.destroy());
      });
    });
    this.#proxy.on("proxyRes", (answer, request) => {
      this.#failed.delete(request);
      // They are about the connection to the Machine.
      for (const name of ["connection", "keep-alive"]) delete answer.headers[name];
      for (const [name, value] of Object.entries(this.#options.get(request)?.http_options?.response?.headers ?? {})) {
        // Its names are those of Node: in lower case.
        if (value === false) delete answer.headers[name.toLowerCase()];
        else answer.headers[name.toLowerCase()] = Array.isArray(value) ? value.map(String) : String(value);
      }
    });
  }

  /** Answers a request. */
  async request(request: IncomingMessage, response: ServerResponse, scheme: Scheme): Promise<void> {
    const asked = this.#asked(request, scheme);
    if ("status" in asked) return answer(response, asked);
    const gone = new AbortController();
    response.once("close", () => gone.abort("the client has gone"));
    const { port, name } = asked;
    this.#options.set(request, port.options);
    if (port.options.http_options?.compress) this.#compress(request as never, response as never, () => {});
    const isRepeatable = repeatable.includes(request.method ?? "") && !hasBody(request);
    const tried = new Set<string>();
    for (let attempt = 1; ; attempt++) {
      let target: Target | undefined;
      try {
        // Most requests need not wait.
        target =
          (attempt === 1 ? this.#targets.takeNow(port.app, port.port, "request") : undefined) ??
          (await this.#targets.take(port.app, port.port, gone.signal, "request", tried));
        await this.#send(request, response, target, port, isRepeatable);
        return;
      } catch (error) {
        if (gone.signal.aborted) return;
        if (response.headersSent) return void response.destroy();
        if (error instanceof Unavailable)
          return answer(response, { status: 503, text: `App ${name} cannot answer: ${error.message}` });
        if (target) tried.add(target.machine);
        if (attempt < attempts && isRepeatable) continue;
        const reason = error instanceof Error && "code" in error ? String(error.code) : "no answer";
        return answer(response, {
          status: 502,
          text: `Machine ${target?.machine} of App ${name} ended the connection before it answered (${reason})`,
        });
      } finally {
        target?.release();
      }
    }
  }

  /** Passes a WebSocket on. */
  async upgrade(request: IncomingMessage, socket: Socket, head: Buffer, scheme: Scheme): Promise<void> {
    socket.on("error", () => socket.destroy());
    const asked = this.#asked(request, scheme);
    const refuse = (status: number, text: string): void => {
      socket.end(`HTTP/1.1 ${status} \r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n${text}\n`);
    };
    if ("status" in asked) return refuse(asked.status, asked.text);
    const gone = new AbortController();
    socket.once("close", () => gone.abort("the client has gone"));
    try {
      const { port } = asked;
      const target = await this.#targets.take(port.app, port.port, gone.signal, "connection");
      socket.once("close", () => target.release());
      if (socket.destroyed) return target.release();
      this.#failed.set(request, () => refuse(502, "the Machine ended the connection"));
      await this.#proxy.ws(request, socket, { target: { host: "127.0.0.1", port: target.port }, xfwd: true }, head);
    } catch (error) {
      if (!gone.signal.aborted)
        refuse(503, error instanceof Unavailable ? error.message : "the Machine ended the connection");
    }
  }

  /** Keeps no connection to a Machine that ends. */
  forget(port: number): void {
    const agent = this.#agents.get(port);
    if (!agent) return;
    this.#agents.delete(port);
    agent.maxFreeSockets = 0;
    for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
  }

  /** The public port that a request means. */
  #asked(request: IncomingMessage, scheme: Scheme): Asked {
    // Clients that know of a proxy name the host in the target.
    request.url = (request.url ?? "/").replace(/^https?:\/\/[^/?#]*/i, "") || "/";
    for (const name of forwarded) delete request.headers[name];
    const { host = "" } = request.headers;
    const found = this.#targets.hostOf(host);
    if (!found) return { status: 404, text: `no App has the host name ${JSON.stringify(host.slice(0, 200))}` };
    const { app, name, port: number } = found;
    const ports = [...this.#targets.portsOf(app).values()].sort((a, b) => a.port - b.port);
    const port = ports.find((one) => one.kind === scheme && (number === undefined || one.port === number));
    const other = scheme === "http" ? "https" : "http";
    if (!port) {
      const isOther = ports.some(({ kind }) => kind === other);
      const instead = isOther ? `; use ${this.#urlOf(other, host, request.url)}` : "";
      return {
        status: 404,
        text: `App ${name} has no service for ${scheme}${number === undefined ? "" : ` at port ${number}`}${instead}`,
      };
    }
    if (scheme === "http" && port.options.force_https) {
      const location = this.#urlOf("https", host, request.url);
      // 308 repeats the method, which older clients do not know.
      const status = ["GET", "HEAD"].includes(request.method ?? "") ? 301 : 308;
      return { status, text: location, location };
    }
    return { name, port };
  }

  #urlOf(scheme: Scheme, host: string, path = "/"): string {
    return `${scheme}://${host.replace(/:\d+$/, "")}:${this.#ports()[scheme]}${path}`;
  }

  /** Resolves when the client has its answer. */
  #send(
    request: IncomingMessage,
    response: ServerResponse,
    target: Target,
    { options }: PublicPort,
    isRepeatable: boolean,
  ): Promise<void> {
    // A kept connection may end at the moment of its use, and only some requests can be repeated.
    const agent = isRepeatable ? this.#agentOf(target.port) : false;
    const idle = options.http_options?.idle_timeout;
    if (idle !== undefined) request.socket.setTimeout(idle * 1000);
    return new Promise((resolve, reject) => {
      response.once("close", resolve);
      this.#failed.set(request, (error) => {
        response.removeListener("close", resolve);
        reject(error);
      });
      void this.#proxy.web(request, response, {
        target: { host: "127.0.0.1", port: target.port },
        agent,
        xfwd: true,
      });
    });
  }

  #agentOf(port: number): Agent {
    const agent = this.#agents.get(port) ?? new Agent({ keepAlive: true });
    this.#agents.set(port, agent);
    return agent;
  }
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

function answer(response: ServerResponse, { status, text, location }: Own): void {
  // What is left of the request is not read by anyone else.
  response.req.unpipe();
  response.req.resume();
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    ...(location === undefined ? {} : { location }),
    ...(status === 503 ? { "retry-after": "1" } : {}),
  });
  response.end(`${text}\n`);
}

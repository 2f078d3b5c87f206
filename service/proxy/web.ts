// HTTP, HTTPS and WebSockets: requests by host name, sent to a Machine of the App.
import { ServerResponse, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import compression from "compression";
import { Client } from "undici";
import { forward, hasBody, pathOf } from "./forward.ts";
import type { Challenges } from "../runtime/certificateIssuer.ts";
import { answerFor } from "./proofs.ts";
import { Pools } from "./pools.ts";
import { portPart, type Host, type PublicPort } from "./routes.ts";
import { Unavailable, type Kind, type Target, type Targets } from "./targets.ts";

/** How a client speaks to the proxy. */
export type Scheme = "http" | "https";

// ASSUMED: a request without a body that only reads or that can be repeated is sent up to three times, if no answer began.
const attempts = 3;
const repeatable = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

/** How a connection came to an address of Apps. */
export interface Arrival {
  /** The App that a request with this header `Host` means. */
  hostOf(header: string): Host | undefined;
  /** The port at this address for a scheme of an App. */
  portOf(scheme: Scheme, app: string): number | undefined;
}

/** What requests need to know of the proxy. */
export interface WebHost {
  readonly targets: Targets;
  /** The ports at which the proxy listens. */
  readonly ports: () => Readonly<Record<Scheme, number>>;
  readonly challenges: Challenges | undefined;
  /** How a connection came to an address of Apps; undefined for one to the proxy itself. */
  arrivalOf(socket: Socket): Arrival | undefined;
  /** Connections to Machines that are kept at most. */
  readonly mostKept: number;
}

/** An answer of the proxy itself. */
interface Own {
  readonly status: number;
  readonly text: string;
  readonly location?: string;
}

type Asked = Own | { readonly name: string; readonly port: PublicPort };

/** Sends requests to Machines. */
export class Web {
  readonly #host: WebHost;
  readonly #targets: Targets;
  readonly #pools: Pools;
  // Events must not wait until a block is full.
  readonly #compress = compression({
    filter: (request, response) =>
      !String(response.getHeader("content-type")).startsWith("text/event-stream") &&
      compression.filter(request, response),
  });

  constructor(host: WebHost) {
    this.#host = host;
    this.#targets = host.targets;
    this.#pools = new Pools(host.mostKept, connectionOptions);
  }

  /** Answers a request. One that asks for another protocol comes with what the client has sent after it. */
  async request(request: IncomingMessage, response: ServerResponse, scheme: Scheme, head?: Buffer): Promise<void> {
    const proof = scheme === "http" ? answerFor(this.#host.challenges, pathOf(request)) : undefined;
    if (proof !== undefined) return answer(response, { status: 200, text: proof });
    const asked = this.#asked(request, scheme);
    if ("status" in asked) return answer(response, asked);
    const { port, name } = asked;
    const { compress, idle_timeout: idle } = port.options.http_options ?? {};
    if (compress && head === undefined) this.#compress(request as never, response as never, () => {});
    if (idle !== undefined) request.socket.setTimeout(idle * 1000);
    const kind = head !== undefined ? "connection" : isRepeatable(request) ? "repeatable" : "request";
    const tried = new Set<string>();
    for (let attempt = 1; ; attempt++) {
      let target: Target | undefined;
      try {
        // Most requests need not wait.
        target = attempt === 1 ? this.#targets.takeNow(port.app, port.port, kind) : undefined;
        target ??= await this.#wait(response, port, kind, tried);
        await this.#send(target, request, response, port, head);
        target.answered();
        return;
      } catch (error) {
        if (response.destroyed) return;
        if (error instanceof Unavailable)
          return answer(response, { status: 503, text: `App ${name} cannot answer: ${error.message}` });
        if (target) tried.add(target.machine);
        target?.failed();
        if (attempt < attempts && kind === "repeatable") continue;
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
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once("finish", () => socket.end());
    await this.request(request, response, scheme, head);
  }

  /** Keeps no connection to a Machine that ends. */
  forget(endpoint: string): void {
    this.#pools.forget(endpoint);
  }

  close(): void {
    this.#pools.close();
  }

  /** A Machine that can take the request, as soon as there is one. */
  async #wait(response: ServerResponse, { app, port }: PublicPort, kind: Kind, tried: ReadonlySet<string>) {
    const gone = new AbortController();
    const abort = (): void => gone.abort("the client has gone");
    if (response.destroyed) abort();
    response.once("close", abort);
    try {
      return await this.#targets.take(app, port, gone.signal, kind, tried);
    } finally {
      response.removeListener("close", abort);
    }
  }

  /** The public port that a request means. */
  #asked(request: IncomingMessage, scheme: Scheme): Asked {
    const { host = "" } = request.headers;
    const arrival = this.#host.arrivalOf(request.socket);
    const found = (arrival ?? this.#targets).hostOf(host);
    if (!found) return { status: 404, text: `no App has the host name ${JSON.stringify(host.slice(0, 200))}` };
    const { app, name, port: number } = found;
    const ports = [...this.#targets.portsOf(app).values()].sort((a, b) => a.port - b.port);
    const port = ports.find((one) => one.kind === scheme && (number === undefined || one.port === number));
    const other = scheme === "http" ? "https" : "http";
    const urlOf = (of: Scheme): string => {
      const at = arrival?.portOf(of, app) ?? this.#host.ports()[of];
      return `${of}://${host.replace(/:\d+$/, "")}${portPart(of, at)}${pathOf(request)}`;
    };
    if (!port) {
      const isOther = ports.some(({ kind }) => kind === other);
      const instead = isOther ? `; use ${urlOf(other)}` : "";
      return {
        status: 404,
        text: `App ${name} has no service for ${scheme}${number === undefined ? "" : ` at port ${number}`}${instead}`,
      };
    }
    if (scheme === "http" && port.options.force_https) {
      const location = urlOf("https");
      // 308 repeats the method, which older clients do not know.
      const status = ["GET", "HEAD"].includes(request.method ?? "") ? 301 : 308;
      return { status, text: location, location };
    }
    return { name, port };
  }

  async #send(
    { endpoint }: Target,
    request: IncomingMessage,
    response: ServerResponse,
    { options }: PublicPort,
    head: Buffer | undefined,
  ): Promise<void> {
    const change = (headers: IncomingHttpHeaders): void => {
      for (const [name, value] of Object.entries(options.http_options?.response?.headers ?? {}))
        if (value === false) Reflect.deleteProperty(headers, name.toLowerCase());
        else headers[name.toLowerCase()] = Array.isArray(value) ? value.map(String) : String(value);
    };
    // A kept connection may end at the moment of its use, and only some requests can be repeated.
    if (head === undefined && isRepeatable(request))
      return forward(this.#pools.of(endpoint), request, response, change);
    const client = new Client(originOf(endpoint), connectionOptions);
    try {
      await forward(client, request, response, change, head);
    } finally {
      void client.destroy();
    }
  }
}

// A Machine has as much time as the client.
const connectionOptions = { headersTimeout: 0, bodyTimeout: 0 };

const originOf = (endpoint: string): string => `http://${endpoint}`;

/** Whether a request can be sent again, if no answer began. */
const isRepeatable = (request: IncomingMessage): boolean =>
  repeatable.includes(request.method ?? "") && !hasBody(request);

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

// HTTP, HTTPS and WebSockets: requests by host name, sent to a Machine of the App.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import compression from "compression";
import { headerChanges } from "../../api/answerHeaders.ts";
import type { Networks } from "../runtime/networks.ts";
import { isLoopback } from "../requestAddress.ts";
import { addressOfClient, believeProxy, schemeOfClient } from "../runtime/trustedProxies.ts";
import { answerOver } from "../runtime/answerOver.ts";
import { codeOf } from "../runtime/errorCode.ts";
import { KeptConnections } from "./agents.ts";
import { BadAnswer, forward } from "./forward.ts";
import { BodyBudget, KeptBody, mostKeptBody } from "./keptBody.ts";
import { hasBody, malformed, pathOf } from "./malformed.ts";
import { tokenIn } from "./proofs.ts";
import { anyMachine, replayOf, sourceOf, wishOf, type Wish } from "./replay.ts";
import type { OwnService } from "./ownNames.ts";
import { nameIn, portPart, type Host, type PublicPort } from "./routes.ts";
import type { MachineRow } from "../store/rows.ts";
import { Unavailable, type Choice, type Kind, type Target, type Targets } from "./targets.ts";
import type { Traffic } from "./traffic.ts";

/** How a client speaks to the proxy. */
export type Scheme = "http" | "https";

// ASSUMED: a request without a body that only reads or that can be repeated is sent up to three times, if no answer began.
const attempts = 3;
// ASSUMED: a request is replayed at most five times, so two Machines that send it to each other end.
const mostReplays = 5;
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
  readonly traffic: Traffic;
  /** The ports at which the proxy listens. */
  readonly ports: () => Readonly<Record<Scheme, number>>;
  /** The answer to the token of a certificate authority; undefined for unknown ones. */
  answerOf(token: string): string | undefined | Promise<string | undefined>;
  /** How a connection came to an address of Apps; undefined for one to the proxy itself. */
  arrivalOf(socket: Socket): Arrival | undefined;
  /** What answers for the service itself, and its hostname. */
  readonly own?: { readonly name: string; readonly service: OwnService } | undefined;
  /** Networks of proxies in front of this one. */
  readonly trusted?: Networks | undefined;
  /** Milliseconds since 1970. */
  now(): number;
  /** Connections to Machines that are kept at most. */
  readonly mostKept: number;
}

/** An answer of the proxy itself. */
interface Own {
  readonly status: number;
  readonly text: string;
  readonly location?: string;
  /** Whether the connection ends with it. */
  readonly isLast?: boolean;
}

type Asked = Own | { readonly name: string; readonly port: PublicPort };

/** Where a request is sent: first by its host name, then as the Machine before has replayed it. */
interface Hop {
  readonly name: string;
  readonly port: PublicPort;
  readonly wish: Wish;
  /** The header `fly-replay-src`; undefined for a request that was not replayed. */
  readonly source: string | undefined;
}

/** A request that is being answered. */
interface Asking {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly head: Buffer | undefined;
  readonly body: KeptBody | undefined;
  readonly hop: Hop;
}

/** A header `fly-replay`, and the Machine that sent it. */
interface Replayed {
  readonly text: string;
  readonly machine: Pick<MachineRow, "id" | "region">;
}

/** Sends requests to Machines. */
export class Web {
  readonly #host: WebHost;
  readonly #targets: Targets;
  readonly #kept: KeptConnections;
  readonly #budget = new BodyBudget();
  // Events must not wait until a block is full.
  readonly #compress = compression({
    filter: (request, response) =>
      !String(response.getHeader("content-type")).startsWith("text/event-stream") &&
      compression.filter(request, response),
  });

  constructor(host: WebHost) {
    this.#host = host;
    this.#targets = host.targets;
    this.#kept = new KeptConnections(host.mostKept);
  }

  /** Answers a request. One that asks for another protocol comes with what the client has sent after it. */
  async request(request: IncomingMessage, response: ServerResponse, at: Scheme, head?: Buffer): Promise<void> {
    // A client whose address is not known any more has gone.
    if (request.socket.remoteAddress === undefined) return void request.socket.destroy();
    const problem = malformed(request);
    if (problem) return answer(response, { ...problem, isLast: true });
    believeProxy(request, this.#host.trusted);
    const scheme = schemeOfClient(request);
    const token = at === "http" ? tokenIn(pathOf(request)) : undefined;
    const proof = token === undefined ? undefined : await this.#host.answerOf(token);
    if (proof !== undefined) return answer(response, { status: 200, text: proof });
    const own = this.#ownFor(request);
    if (own && scheme === "https") return own.request(request, response);
    const asked = own ? this.#redirect(request, this.#host.ports().https) : this.#asked(request, scheme);
    if ("status" in asked) return answer(response, asked);
    const { port, name } = asked;
    this.#count(request, response, port.app, scheme, head === undefined);
    const { compress, idle_timeout: idle } = port.options.http_options ?? {};
    if (compress && head === undefined) this.#compress(request as never, response as never, () => {});
    if (idle !== undefined) request.socket.setTimeout(idle * 1000);
    const body = hasBody(request) ? new KeptBody(request, this.#budget) : undefined;
    response.once("close", () => body?.forget());
    let hop: Hop = { name, port, wish: wishOf(request), source: undefined };
    for (let hops = 1; ; hops++) {
      const asking = { request, response, head, body, hop };
      const found = await this.#ask(asking);
      if (found === undefined) return;
      const next = "status" in found ? found : await this.#next(asking, found, hops);
      if ("status" in next) return answer(response, next);
      hop = next;
    }
  }

  /**
   * Lets a Machine answer a request. Returns its header `fly-replay`, or why no Machine has answered; undefined if the client has its answer
   * or has gone.
   */
  async #ask(asking: Asking): Promise<Replayed | Own | undefined> {
    const { request, response, head, hop } = asking;
    const { name, port, wish } = hop;
    const kind = head !== undefined ? "connection" : isRepeatable(request) ? "repeatable" : "request";
    const tried = new Set<string>();
    for (let attempt = 1; ; attempt++) {
      let target: Target | undefined;
      try {
        // Most requests need not wait.
        const isPlain = attempt === 1 && wish === anyMachine;
        target = isPlain ? this.#targets.takeNow(port.app, port.port, kind) : undefined;
        target ??= await this.#wait(response, port, kind, { tried, wish });
        const text = await this.#send(target, asking);
        target.answered();
        return text === undefined ? undefined : { text, machine: target.offer.machine };
      } catch (error) {
        if (response.destroyed) return undefined;
        if (error instanceof Unavailable) return { status: 503, text: `App ${name} cannot answer: ${error.message}` };
        if (target) tried.add(target.machine);
        const machine = `Machine ${target?.machine} of App ${name}`;
        // Its program may have acted, and an answer has one beginning.
        if (error instanceof BadAnswer) return { status: 502, text: `${machine} ${reasonOf(error)}` };
        target?.failed();
        if (attempt < attempts && kind === "repeatable") continue;
        const text = `${machine} ended the connection before it answered (${codeOf(error)})`;
        return { status: 502, text };
      } finally {
        target?.release();
      }
    }
  }

  /** Where a replayed request is sent. */
  async #next({ body, hop }: Asking, { text, machine }: Replayed, hops: number): Promise<Hop | Own> {
    const refused = (reason: string): Own => ({
      status: 502,
      text: `Machine ${machine.id} of App ${hop.name} hands the request on (fly-replay), and ${reason}`,
    });
    if (hops > mostReplays) return refused(`other Machines have done so ${mostReplays} times`);
    if (body && !(await body.readAll()))
      return refused(`its body was not kept: it is longer than ${mostKeptBody} bytes, or too many are kept now`);
    try {
      const replay = replayOf(text, machine.id);
      const next = { wish: replay.wish, source: sourceOf(machine, replay, this.#host.now()) };
      if (replay.app === undefined || replay.app === hop.name) return { ...hop, ...next };
      const app = this.#targets.neighbour(hop.port.app, replay.app);
      if (app === undefined) return refused(`its organization and network have no App ${JSON.stringify(replay.app)}`);
      const port = this.#targets.portsOf(app).get(hop.port.port);
      if (port?.kind !== hop.port.kind)
        return refused(`App ${replay.app} has no service for ${hop.port.kind} at port ${hop.port.port}`);
      return { ...next, name: replay.app, port };
    } catch (error) {
      return refused(error instanceof Error ? error.message : String(error));
    }
  }

  /** Passes a WebSocket on. */
  async upgrade(request: IncomingMessage, socket: Socket, head: Buffer, scheme: Scheme): Promise<void> {
    believeProxy(request, this.#host.trusted);
    const own = malformed(request) ? undefined : this.#ownFor(request);
    if (own && schemeOfClient(request) === "https") return own.upgrade(request, socket, head);
    const response = answerOver(request, socket, () => socket.end());
    if (response) await this.request(request, response, scheme, head);
  }

  /** What answers a request for the service itself. At the addresses of Apps, all names are theirs. */
  #ownFor({ headers: { host = "" }, socket }: IncomingMessage): OwnService | undefined {
    const { own } = this.#host;
    return own && nameIn(host) === own.name && !this.#host.arrivalOf(socket) ? own.service : undefined;
  }

  /** Sends a client to HTTPS at a port. */
  #redirect(request: IncomingMessage, port: number): Own {
    const { host = "" } = request.headers;
    const location = `https://${host.replace(/:\d+$/, "")}${portPart("https", port)}${pathOf(request)}`;
    // 308 repeats the method, which older clients do not know.
    const status = ["GET", "HEAD"].includes(request.method ?? "") ? 301 : 308;
    return { status, text: location, location };
  }

  /** Keeps no connection to a Machine that ends. */
  forget(endpoint: string): void {
    this.#kept.forget(endpoint);
  }

  close(): void {
    this.#kept.close();
  }

  /** Counts the answer to a request of an App, once it has ended. */
  #count({ headers }: IncomingMessage, response: ServerResponse, app: string, scheme: Scheme, isAnswer: boolean): void {
    const begun = performance.now();
    const route = `${scheme}://${nameIn(headers.host ?? "") ?? ""}`;
    response.once("close", () => {
      // A client that left before has no answer.
      const status = response.headersSent ? response.statusCode : 0;
      const isStream = String(response.getHeader("content-type")).startsWith("text/event-stream");
      const took = isAnswer && !isStream && status > 0 ? performance.now() - begun : undefined;
      this.#host.traffic.add({ app, route, status, took });
    });
  }

  /** A Machine that can take the request, as soon as there is one. */
  async #wait(response: ServerResponse, { app, port }: PublicPort, kind: Kind, choice: Choice) {
    const gone = new AbortController();
    const abort = (): void => gone.abort("the client has gone");
    if (response.destroyed) abort();
    response.once("close", abort);
    try {
      return await this.#targets.take(app, port, gone.signal, kind, choice);
    } finally {
      response.removeListener("close", abort);
    }
  }

  /** The public port that a request means. */
  #asked(request: IncomingMessage, scheme: Scheme): Asked {
    const { host = "" } = request.headers;
    const arrival = this.#host.arrivalOf(request.socket);
    // ASSUMED: only from this computer an App answers at its name below `localhost`, so that other computers reach the Apps that have a
    // hostname, and those below the domain of Apps.
    const isElsewhere = !arrival && !isLoopback(addressOfClient(request)) && nameIn(host)?.endsWith(".localhost");
    const found = isElsewhere ? undefined : (arrival ?? this.#targets).hostOf(host);
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
    if (scheme === "http" && port.options.force_https)
      return this.#redirect(request, arrival?.portOf("https", app) ?? this.#host.ports().https);
    return { name, port };
  }

  async #send({ endpoint }: Target, { request, response, head, body, hop }: Asking): Promise<string | undefined> {
    // A kept connection may end at the moment of its use, and only some requests can be repeated.
    const agent = head === undefined && isRepeatable(request) ? this.#kept.of(endpoint) : undefined;
    const changes = headerChanges(hop.port.options.http_options?.response?.headers);
    return forward({ endpoint, agent, request, response, changes, body, source: hop.source, head });
  }
}

/** What a Machine has done wrong. */
const reasonOf = ({ isInvalid, message }: BadAnswer): string =>
  isInvalid ? `answered with invalid HTTP (${message})` : `ended the connection while it answered (${message})`;

/** Whether a request can be sent again, if no answer began. */
const isRepeatable = (request: IncomingMessage): boolean =>
  repeatable.includes(request.method ?? "") && !hasBody(request);

function answer(response: ServerResponse, { status, text, location, isLast }: Own): void {
  // What is left of the request is not read by anyone else.
  response.req.unpipe();
  response.req.resume();
  const body = Buffer.from(`${text}\n`);
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "content-length": body.length,
    ...(location === undefined ? {} : { location }),
    ...(isLast ? { connection: "close" } : {}),
    ...(status === 503 ? { "retry-after": "1" } : {}),
  });
  response.end(body);
}

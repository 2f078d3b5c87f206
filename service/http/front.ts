// The server of a member: it passes each request to the leader, which may be this member or become it.
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { rootCertificates } from "node:tls";
import { Agent } from "undici";
import { isSame } from "../crypto/isSame.ts";
import { Draining } from "../runtime/draining.ts";
import type { Networks } from "../runtime/networks.ts";
import { addressOfClient, believeProxy, schemeOfClient } from "../runtime/trustedProxies.ts";
import { forwardedFrom, forwardedProto } from "../requestAddress.ts";
import { withResolvers } from "../withResolvers.ts";
import { refuseConnections } from "./app.ts";
import type { MemberKey } from "./memberKey.ts";
import { limitedServer, type ConnectionLimits, type Tls } from "./connections.ts";
import { Attempt, bodyOf, clientHeader, forwardedHeaders, refusedHeader, schemeHeader } from "./forwarding.ts";
import { upgradeOf } from "./upgrades.ts";

/** What a front needs. */
export interface FrontOptions {
  readonly limits: ConnectionLimits;
  readonly tls: Tls | undefined;
  readonly key: MemberKey;
  /** Networks of proxies in front of this member. */
  readonly trusted?: Networks | undefined;
  /** Answers what concerns this member itself; false if a request does not. */
  readonly answerSelf: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** Milliseconds that a request waits while no member leads. */
  readonly patienceMs?: number;
}

// ASSUMED: requests that have begun may take three more seconds after a member begins to end.
const closingMs = 3000;
// ASSUMED: while no member leads, requests wait for 5 s, then they get 503.
const patienceMs = 5000;
// A leader that hands over passes what it has on to the next one; one that was paused answers no more. Reads are repeated soon.
const repeatMs = 500;
// A leader that does not accept connections is tried again after this pause, unless another one takes over.
const pauseMs = 50;
const connectMs = 1000;

// Signatures that are kept: two for each client.
const mostSignatures = 2000;

/** What members say of a client: its address, or its scheme and its address. */
type Saying = "client" | "scheme";

/** Errors of a connection that was never made: the request was not sent. */
const notSent: ReadonlySet<string> = new Set([
  ...["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"],
]);

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");

/** A request of a client. */
interface Taken {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Buffer | null;
  /** The member that has it now. */
  to: string | undefined;
  /** The request to that member. */
  attempt: Attempt;
}

/** The leader. */
interface Target {
  readonly address: string;
  /** Undefined if another member leads. */
  readonly handler: RequestListener | undefined;
}

/** Accepts requests, and answers or forwards them. */
export class Front {
  readonly server: Server;
  readonly #options: FrontOptions;
  readonly #connect: Agent.Options;
  /** Connections to the leader. */
  #agent: Agent;
  readonly #draining = new Draining();
  /** Connections of other members. */
  readonly #members = new Set<Socket>();
  readonly #forwarded = new Set<Taken>();
  /** What is said of clients, with its signature, by what is said. */
  readonly #sayings = new Map<string, string>();
  #target: Target | undefined;
  #handler: RequestListener | undefined;
  #changed = withResolvers();
  #finished = withResolvers();
  /** Number of requests that are being answered here. */
  #handling = 0;
  #isLeaving = false;
  #isEnding = false;

  constructor(options: FrontOptions) {
    const { limits, tls } = options;
    this.#options = options;
    this.server = limitedServer((request, response) => this.#take(request, response), limits, tls);
    this.server.on("clientError", refuseConnections());
    this.#draining.watch(this.server);
    this.server.prependListener("connection", (socket: Socket) => this.#draining.take(socket));
    // Answers may take long, and streams never end. Members of one service may have the same certificate.
    const ca = tls && { ca: [...rootCertificates, tls.cert] };
    const waits = { headersTimeout: 0, bodyTimeout: 0, allowH2: false };
    this.#connect = { ...waits, connect: { timeout: connectMs, ...ca }, connections: limits.most };
    this.#agent = new Agent(this.#connect);
  }

  /** Takes the handler of a service that is being created. Returns a server for Fastify, which never listens. */
  attach(handler: RequestListener): Server {
    this.#handler = handler;
    return createServer();
  }

  /** Requests are answered here, at this URL, from now on: the service is complete, with its checks of every request. */
  answer(address: string): void {
    const handler = this.#handler;
    if (handler) this.#aim({ address, handler: (request, response) => this.#handle(handler, request, response) });
  }

  #handle(handler: RequestListener, request: IncomingMessage, response: ServerResponse): void {
    this.#handling++;
    response.once("close", () => {
      if (--this.#handling === 0) this.#finished.resolve();
    });
    handler(request, response);
  }

  /** Requests are forwarded to the leader at this URL; while there is none, they wait. */
  follow(address: string | undefined): void {
    if (this.#target !== undefined && this.#target.address === address) return;
    this.#aim(address === undefined ? undefined : { address, handler: undefined });
    // A leader that hands over waits for this: if it closed a connection first, it could miss a request that is on its way.
    void this.#agent.close();
    this.#agent = new Agent(this.#connect);
    const stale = [...this.#forwarded].filter(({ to }) => to !== address);
    const giveUp = (isIt: (taken: Taken) => boolean, ms: number): void => {
      const attempts = stale.filter(isIt).map(({ attempt }) => attempt);
      setTimeout(() => attempts.forEach((one) => one.giveUp()), ms).unref();
    };
    giveUp(({ request }) => canRepeat(request), repeatMs);
    giveUp(({ request }) => !canRepeat(request), patienceMs);
  }

  /** Requests are no longer answered here: they wait for another leader, and clients make other connections for the next ones. */
  leave(): void {
    this.#isLeaving = true;
    this.#aim(undefined);
  }

  /** Ends the connections: each gets the answers to its requests. Resolves when there are none, or after that time. */
  drain(limitMs: number): Promise<void> {
    return this.#draining.begin(limitMs);
  }

  /** Resolves when no request is being answered here. */
  async idle(): Promise<void> {
    const giveUp = setTimeout(() => this.cut(), closingMs);
    while (this.#handling > 0) {
      this.#finished = withResolvers();
      await this.#finished.promise;
    }
    clearTimeout(giveUp);
  }

  /** Requests that come now, or still wait, are refused without any effect. Resolves when all are answered. */
  async end(): Promise<void> {
    for (const until = performance.now() + patienceMs; this.#members.size > 0 && performance.now() < until;)
      await this.#change(pauseMs);
    this.#isEnding = true;
    this.#changed.resolve();
    const closed = once(this.server, "close");
    this.server.close();
    const giveUp = setTimeout(() => this.cut(), closingMs);
    await closed;
    clearTimeout(giveUp);
    await this.#agent.destroy();
  }

  #aim(target: Target | undefined): void {
    this.#target = target;
    this.#changed.resolve();
    this.#changed = withResolvers();
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    this.#readClient(request);
    believeProxy(request, this.#options.trusted);
    if (this.#isLeaving) response.setHeader("connection", "close");
    if (this.#options.answerSelf(request, response)) return;
    const { handler } = this.#target ?? {};
    if (handler && !this.#isEnding) return handler(request, response);
    // The leader may have done what was asked, or the client has gone: nothing that is said would be certain.
    void this.#forward(request, response).catch(() => request.socket.destroy());
  }

  /** Believes which client a request comes from if another member says it. */
  #readClient(request: IncomingMessage): void {
    const said = request.headers[clientHeader];
    if (typeof said !== "string") return;
    const client = said.slice(0, said.indexOf(" "));
    if (!isSame(said, this.#sayingOf("client", client))) return;
    // A member of an older version says none.
    const { [schemeHeader]: scheme = "" } = request.headers;
    const proto = String(scheme).startsWith("https ") ? "https" : "http";
    const isSaid = isSame(String(scheme), this.#sayingOf("scheme", `${proto} ${client}`));
    Object.assign(request, { [forwardedFrom]: client, ...(isSaid ? { [forwardedProto]: proto } : {}) });
    const { socket } = request;
    if (this.#members.has(socket)) return;
    this.#members.add(socket);
    socket.once("close", () => this.#members.delete(socket));
  }

  /** What members say of a client, with its signature. */
  #sayingOf(kind: Saying, said: string): string {
    const known = `${kind} ${said}`;
    let saying = this.#sayings.get(known);
    if (saying === undefined) {
      saying = `${said} ${this.#options.key.sign(kind, said)}`;
      if (this.#sayings.size === mostSignatures) this.#sayings.clear();
      this.#sayings.set(known, saying);
    }
    return saying;
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { patienceMs: patience = patienceMs } = this.#options;
    let until = performance.now() + patience;
    while (this.#target === undefined && performance.now() < until && !this.#isEnding)
      await this.#change(until - performance.now());
    const { handler } = this.#target ?? {};
    if (handler && !this.#isEnding) return handler(request, response);
    const body = await bodyOf(request);
    if (body === undefined) return tooLarge(response);
    // A long body is no reason to refuse: some member leads.
    if (this.#target) until = performance.now() + patience;
    const taken: Taken = { request, response, body, to: undefined, attempt: new Attempt(response) };
    this.#forwarded.add(taken);
    response.once("close", () => {
      this.#forwarded.delete(taken);
      taken.attempt.giveUp();
    });
    while (performance.now() < until && !this.#isEnding) {
      if (this.#target && (await this.#ask(this.#target.address, taken))) return;
      await this.#change(this.#target ? pauseMs : until - performance.now());
    }
    refuse(response);
  }

  /** Waits until the leader changes, at most that long. */
  async #change(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const pause = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
    await Promise.race([this.#changed.promise, pause]);
    clearTimeout(timer);
  }

  /** Has a request answered by the leader. False if it had no effect, or can be sent again. */
  async #ask(address: string, taken: Taken): Promise<boolean> {
    const { request, response, body } = taken;
    const { method = "GET", url = "/", rawHeaders } = request;
    // It may be this member by now, which has read the request already.
    taken.to = address;
    taken.attempt = new Attempt(response);
    const headers = forwardedHeaders(rawHeaders);
    const client = addressOfClient(request);
    headers.push(clientHeader, this.#sayingOf("client", client));
    headers.push(schemeHeader, this.#sayingOf("scheme", `${schemeOfClient(request)} ${client}`));
    try {
      const upgrade = upgradeOf(request) ? "websocket" : null;
      return await taken.attempt.send(this.#agent, { origin: address, path: url, method, headers, body, upgrade });
    } catch (error) {
      const isRepeatable = notSent.has(codeOf(error)) || canRepeat(request);
      if (response.headersSent || response.closed || !isRepeatable) throw error;
      return false;
    }
  }

  /** Ends every connection without an answer, because what was accepted may not have happened. */
  cut(): void {
    this.server.closeAllConnections();
    // Those of WebSockets are no longer the server's.
    for (const { request } of this.#forwarded) upgradeOf(request)?.socket.destroy();
  }
}

/** Whether a request changes nothing, however often it is sent. */
const canRepeat = ({ method }: IncomingMessage): boolean => method === "GET" || method === "HEAD";

function refuse(response: ServerResponse): void {
  const text = JSON.stringify({ error: "no member of the service leads; nothing was changed, try again" });
  answerWith(response, 503, text, { "retry-after": "1", [refusedHeader]: "1" });
}

const tooLarge = (response: ServerResponse): void =>
  answerWith(response, 413, JSON.stringify({ error: "Request body is too large" }));

/** Answers with JSON. */
export function answerWith(
  response: ServerResponse,
  status: number,
  text: string,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers });
  response.end(text);
}

// The HTTP server: one route per row of the contract. This file authenticates, validates and answers every request; the
// rules decide what it does.
import type { RequestListener, Server } from "node:http";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import Fastify, {
  LogController,
  type ConnectionError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { below, inSpan, isRecording, startSpan, traceIdOf, type Span } from "../../api/tracing.ts";
import { aboutIn, updateIn, urnIn, type Audit } from "./audit.ts";
import { connectionLimits, limitedServer, type ConnectionLimits, type Tls } from "./connections.ts";
import type { Fault, Faults, Moment } from "../faults/faults.ts";
import { authenticate, showsSecrets, type Session, type SessionFinder } from "./authenticate.ts";
import { concernsHost, type Host } from "../faults/unreachableHost.ts";
import { injectAfter, injectBefore, type Outgoing, type FaultedRequest } from "../faults/faultInjection.ts";
import { namesOf, readBody } from "../validation/bodyLimits.ts";
import type { Metrics } from "./metrics.ts";
import { refuserOf } from "./noSuchRoute.ts";
import type { RateLimits } from "./rateLimits.ts";
import { Refusal, refuse } from "../refusal.ts";
import { machineOf } from "../rules/find.ts";
import { rules } from "../rules/index.ts";
import { guard, leaseStanding, type LeaseStanding } from "../rules/leases.ts";
import { Deferred, Pieces, Reply, Text, textOfChunks, type Caller, type Chunk, type Input } from "../rules/rule.ts";
import { terminalOperation } from "./terminalProtocol.ts";
import { endWith, inSlices } from "../runtime/closing.ts";
import type { Networks } from "../runtime/networks.ts";
import { believeProxy } from "../runtime/trustedProxies.ts";
import { LookupNeeded, nothingFound, type Found } from "../runtime/lookup.ts";
import { badStatus } from "../validation/validationMessages.ts";
import { sqliteCode } from "../sqliteCode.ts";
import type { Tokens } from "../store/tokens.ts";
import { checkAnswer, validate, type Valid } from "../validation/validate.ts";
import type { Context } from "../context.ts";
import type { Sender } from "../history/entry.ts";
import { mayRead, requireRole, roleFor } from "../rules/roles.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Undefined until the token is checked. */
    caller: Caller;
    /** The session of the console that sent it; null for every other client. */
    session: Session | null;
    /** Whether a guarded request holds the lease of its Machine. */
    lease: LeaseStanding | null;
    /** Ids of the faults injected into it; null if there are none. */
    faults: readonly string[] | null;
    /** What it changed, for the audit, if its path does not say; null if it does. */
    about: string | null;
    /** Who sent it, for the history; null until it is needed. */
    sender: Sender | null;
    /** Its part of a trace; null if the service sends none. */
    span: Span | null;
    /** What must be over before it is recorded that its client has gone; null if nothing must. */
    work: Promise<unknown> | null;
    /** Whether a fault, or the code that took over its connection, records it. */
    isNoted: boolean;
  }
  interface FastifyContextConfig {
    /** `machines.create` and the like; `console.addFault` and the like for changes that only the console makes. */
    operation?: string;
    /** True for routes that need no token. */
    open?: true;
    /** Whether a page of another origin may lead here. */
    fromElsewhere?: true;
    /** Whether a request may name any host. */
    isForAnyHost?: (request: FastifyRequest) => boolean;
    /** True for routes of proxies that are processes of their own: only their tokens may use them. */
    forProxies?: true;
    /** True for reads of the console, which the log, the audit and the metrics leave out: watching must not change what is seen. */
    unrecorded?: true;
  }
}

/** An answered request, for logs and for tests that count requests. */
export interface Seen {
  readonly id: string;
  readonly operation: string | undefined;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly ms: number;
  /** Id of the trace that the request belongs to. */
  readonly trace?: string;
}

/** Path of the rollouts. */
export const rolloutsPath = "/local/rollouts";

/** Dependencies of the routes. */
export interface AppOptions {
  readonly context: Context;
  readonly tokens: Tokens;
  /** Undefined if the service has no console. */
  readonly sessions: SessionFinder | undefined;
  readonly faults: Faults;
  readonly rateLimits: RateLimits;
  readonly audit: Audit;
  readonly metrics: Metrics;
  readonly strict: boolean;
  /** Host names allowed in addition to those of this computer; undefined allows all. */
  readonly allowedHosts: ReadonlySet<string> | undefined;
  /** Networks of proxies in front of the service. */
  readonly trusted?: Networks | undefined;
  readonly seen: (request: Seen) => void;
}

type AnyRule = (input: Input) => unknown;

interface Route {
  readonly row: Operation;
  readonly rule: AnyRule;
}

// ASSUMED: a body may have 4 MiB, because files are sent inside the configuration; more is 413.
export const bodyLimit = 4 * 2 ** 20;

/** Every row with the rule behind it. */
const routes: readonly Route[] = Object.entries(contract).flatMap(([group, rows]) => {
  const ofGroup = rules[group as keyof typeof rules] as unknown as Readonly<Record<string, AnyRule | undefined>>;
  return Object.entries(rows as Readonly<Record<string, Operation>>).flatMap(([name, row]) => {
    const rule = ofGroup[name];
    return rule ? [{ row, rule }] : [];
  });
});

/** Receives log lines: one JSON object each. */
export interface LogStream {
  write(line: string): void;
}

/** Options of a server. */
export interface ServerOptions {
  readonly log?: LogStream | undefined;
  readonly requestId: () => string;
  /** Plain HTTP if omitted. */
  readonly tls?: Tls | undefined;
  readonly limits?: ConnectionLimits;
  /** Returns the server that passes its requests to the handler. Default: a new one. */
  readonly serve?: ((handler: RequestListener) => Server) | undefined;
}

/** Returns the member of a log line with its time. A busy service writes several lines in the same millisecond. */
function timeOfLine(): () => string {
  let [at, text] = [0, ""];
  return () => {
    const now = Date.now();
    if (now !== at) [at, text] = [now, `,"time":"${new Date(now).toISOString()}"`];
    return text;
  };
}

// No route has a schema: the rows of the interface check what comes and what goes. Fastify would load its compilers of schemas
// anyway, which are a third of all files that a start reads.
const refuseSchema = (): never => {
  throw new Error("a route has a schema: use the rows of api/ instead");
};
const noSchemas = { compilersFactory: { buildValidator: refuseSchema, buildSerializer: refuseSchema } };

/** The server without its routes. */
export function createServer({
  log,
  requestId,
  tls,
  limits = connectionLimits(),
  serve,
}: ServerOptions): FastifyInstance {
  const app: FastifyInstance = Fastify({
    logger: log ? { level: "info", base: null, timestamp: timeOfLine(), stream: log } : false,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: requestId,
    bodyLimit,
    routerOptions: { maxParamLength: 2048 },
    serverFactory: (handler) => serve?.(handler) ?? limitedServer(handler, limits, tls),
    // Fastify reads the scheme of its address from this. The cast keeps the type of the server the same.
    ...(tls ? { https: tls as unknown as null } : {}),
    schemaController: noSchemas,
    forceCloseConnections: "idle",
    // Requests that come while it closes are answered, and end their connections.
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => sendError(error, request, reply),
    clientErrorHandler: refuseConnections(),
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body: Buffer, done) => {
    // ASSUMED: a body is JSON whatever its content type is. Real clients send many types, and bodies where none is expected
    // (docs/interface.md#starting-and-stopping).
    if (body.length === 0) return done(null, undefined);
    try {
      done(null, readBody(body));
    } catch (error) {
      done(error as Error);
    }
  });
  return app;
}

/** Adds the routes to a server. It can then listen, or answer `inject`. */
export function addRoutes(app: FastifyInstance, options: AppOptions): void {
  app.decorateRequest("caller", null as unknown as Caller);
  app.decorateRequest("session", null);
  app.decorateRequest("lease", null);
  app.decorateRequest("faults", null);
  app.decorateRequest("about", null);
  app.decorateRequest("sender", null);
  app.decorateRequest("span", null);
  app.decorateRequest("work", null);
  app.decorateRequest("isNoted", false);
  const check = authenticate(options);
  const noSuchRoute = refuserOf(app);
  // One hook for all three: Fastify's way from one hook to the next takes longer than their work.
  app.addHook("onRequest", (request, reply, done) => {
    if (options.trusted) believeProxy(request.raw, options.trusted);
    request.span = isRecording() ? spanOf(request) : null;
    // Tells the client of a run of Pulumi that it can report its rollouts here (historyRoutes.ts).
    if (request.headers["pulumi-update"] !== undefined && !options.context.history.isOff)
      reply.header("machines-rollouts", rolloutsPath);
    noteIfGone(options, request, reply);
    done(check(request, reply) ?? (request.is404 ? noSuchRoute(request) : undefined));
  });
  app.addHook("onResponse", (request, reply, done) => {
    const { id, method, routeOptions } = request;
    const { operation, unrecorded } = routeOptions.config;
    if (unrecorded) {
      request.span?.end();
      return done();
    }
    const { statusCode: status, elapsedTime } = reply;
    const path = pathOf(request);
    request.isNoted = true;
    note(options, request, { path, operation, status, ms: elapsedTime });
    const trace = traceIdOf(request.span?.traceparent ?? request.headers.traceparent);
    const seen = { id, operation, method, path, status, ms: rounded(elapsedTime) };
    options.seen(trace === undefined ? seen : { ...seen, trace });
    done();
  });
  const { store } = options.context;
  // A client that gets an answer is woken up for it. Answers that follow at once find it awake, which halves the time of each.
  const together = inSlices<() => void>((send) => send());
  app.addHook("onSend", ({ method }, _reply, _payload, proceed) => {
    const send = (): void => {
      // A leader whose lease may have ended may have read what is no longer true.
      const unsure = store.isLogged ? store.unsure : undefined;
      if (unsure) void unsure.then(() => proceed());
      else proceed();
    };
    // Those of changes come together already, after the commit that they share.
    if (method === "GET") together(send);
    else send();
  });
  app.setErrorHandler(sendError);
  for (const { row, rule } of routes) {
    app.route({
      method: row.method,
      url: row.path.replace(/\{(\w+)\}/g, ":$1"),
      config: { operation: row.id },
      exposeHeadRoute: false,
      handler: (request, reply) => below(request.span ?? undefined, () => handle(options, row, rule, request, reply)),
    });
  }
}

// ASSUMED: the log and the audit record the first 200 characters of a path.
const longestPath = 200;

/** The path without the query, shortened for the log. */
function pathOf({ url }: FastifyRequest): string {
  const query = url.indexOf("?");
  if (query < 0 && url.length <= longestPath) return url;
  return copyOf(url.slice(0, query < 0 ? longestPath : Math.min(query, longestPath)));
}

/** A copy of a text: a slice would keep the whole text in memory, which may be 16 KB. */
const copyOf = (text: string): string => Buffer.from(text).toString();

/** Milliseconds with two digits after the point. */
const rounded = (ms: number): number => Math.round(ms * 100) / 100;

const noFaults: readonly string[] = [];

interface Answered {
  readonly path: string;
  readonly operation: string | undefined;
  /** Null if the connection was closed. */
  readonly status: number | null;
  readonly ms: number;
}

/** Something to record about a request, beside its answer. */
export interface Noted {
  readonly status: number;
  readonly ms: number;
  readonly about: string;
}

/** Records something about a request, in the audit, the history and the log. */
export function record(options: AppOptions, request: FastifyRequest, { status, ms, about }: Noted): void {
  const { id, method, routeOptions } = request;
  const { operation } = routeOptions.config;
  const path = pathOf(request);
  request.about = about;
  note(options, request, { path, operation, status, ms });
  options.seen({ id, operation, method, path, status, ms: rounded(ms) });
}

/** Records a request whose client has gone before its answer: there is no other record. */
function noteIfGone(options: AppOptions, request: FastifyRequest, reply: FastifyReply): void {
  const { operation, unrecorded } = request.routeOptions.config;
  if (unrecorded) return;
  const gone = (): void => {
    if (!request.isNoted)
      note(options, request, { path: pathOf(request), operation, status: null, ms: reply.elapsedTime });
  };
  reply.raw.once("close", () => {
    if (reply.raw.writableFinished) return;
    if (request.work) void request.work.then(gone, gone);
    else gone();
  });
}

/** Records that a request was answered, or that its connection was closed. */
function note(
  { context, audit, metrics }: AppOptions,
  request: FastifyRequest,
  { path, operation, status, ms }: Answered,
): void {
  const { id, method, caller, lease, faults, about } = request;
  audit.add({
    at: context.clock.now(),
    id,
    operation: operation ?? null,
    method,
    path,
    status,
    org: caller?.slug ?? null,
    owner: caller?.owner ?? null,
    tokenName: caller?.name ?? null,
    nonce: nonceOf(request) !== undefined,
    lease,
    faults: faults ?? noFaults,
    ms: rounded(ms),
    // Only for known callers: anyone could fill the memory with it.
    urn: caller ? senderIn(request).urn : null,
    about: aboutIn(about),
  });
  if (caller) tellHistory(context, request, { path, operation, status, ms });
  metrics.observe(operation ?? "none", status, ms / 1000);
  request.span?.set({ "http.response.status_code": status ?? undefined });
  if (status === null || status >= 500) request.span?.fail(status === null ? "lost" : String(status));
  request.span?.end();
}

/** Operations that change nothing that lasts: leases, and what only runs or asks. */
const leavesNoTrace = (operation: string): boolean => mayRead.has(operation) || /^machines\..*Lease$/.test(operation);

/** Who sent a request. */
const senderIn = (request: FastifyRequest): Sender =>
  (request.sender ??= {
    token: request.caller.id,
    tokenName: request.caller.name,
    urn: urnIn(request.headers["pulumi-urn"]),
    update: updateIn(request.headers["pulumi-update"]),
  });

/** Adds a request that changed something, or tried to, to the history. */
function tellHistory({ clock, history }: Context, request: FastifyRequest, answered: Answered): void {
  const { operation, path, status, ms } = answered;
  if (history.isOff) return;
  const { id, method, caller, about, params } = request;
  const { update } = senderIn(request);
  if (update !== null) history.hear(update);
  const revealed = method === "GET" && showsSecrets(request);
  const isRead = method === "GET" && operation !== terminalOperation && !revealed;
  if (isRead || operation === undefined || leavesNoTrace(operation)) return;
  const { app_name, machine_id } = params as Readonly<Record<string, string | undefined>>;
  const given = (operation === "apps.create" && request.body ? request.body : {}) as {
    readonly name?: unknown;
    readonly app_name?: unknown;
  };
  const name = given.name ?? given.app_name;
  history.add({
    kind: "request",
    at: clock.now(),
    org: caller.slug,
    app: app_name ?? (typeof name === "string" ? name.slice(0, longestPath) : null),
    machine: machine_id ?? null,
    ...senderIn(request),
    ...{ id, operation, method, path, status, ms: rounded(ms), about: aboutIn(about) ?? (revealed ? "values" : null) },
  });
}

/** The span of a request, below that of its client. It shows the route only, because a path may contain secrets. */
function spanOf({ id, method, routeOptions, headers }: FastifyRequest): Span | null {
  const route = routeOptions.url?.replace(/:(\w+)/g, "{$1}");
  const span = startSpan(route === undefined ? method : `${method} ${route}`, {
    kind: "server",
    traceparent: typeof headers.traceparent === "string" ? headers.traceparent : undefined,
    attributes: {
      "http.request.method": method,
      "http.route": route,
      "machines.request": routeOptions.config.operation,
      "machines.request.id": id,
    },
  });
  return span ?? null;
}

/** The fault to inject into a request now, if any. */
function met(
  { faults, context }: AppOptions,
  row: Operation,
  request: FastifyRequest,
  { params, query, body }: Valid,
  moment: Moment,
): Fault | undefined {
  if (faults.none) return undefined;
  const { slug: org, org: caller } = request.caller;
  const about = { row, caller, params: params as FaultedRequest["params"], query, body };
  const isForHost = (host: Host): boolean => concernsHost(context, host, about);
  const planned = faults.take({ row, org, path: pathOf(request), isForHost }, moment);
  if (planned) request.faults = [...(request.faults ?? []), planned.id];
  return planned?.fault;
}

async function handle(
  options: AppOptions,
  row: Operation,
  rule: AnyRule,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const { context } = options;
  const { store } = context;
  options.rateLimits.take(row, request.params, request.caller);
  const valid = validate(row, request.params, request.query, request.body, request.url);
  if (valid.unknown.length > 0) unknownFields(options, row, request, valid.unknown);
  const faulted = (): FaultedRequest => ({
    context,
    row,
    params: valid.params as FaultedRequest["params"],
    query: valid.query,
    body: valid.body,
    reply,
    onDisconnect: () => {
      request.isNoted = true;
      note(options, request, { path: pathOf(request), operation: row.id, status: null, ms: reply.elapsedTime });
    },
  });
  const early = met(options, row, request, valid, "before");
  if (early && (await injectBefore(early, faulted()))) return reply;
  const found = nothingFound();
  const input = {
    context,
    caller: request.caller,
    params: valid.params,
    query: valid.query,
    body: valid.body,
    nonce: nonceOf(request),
    found,
    onGone: (leave: () => void) => void reply.raw.once("close", leave),
    note: (about: string) => void (request.about = about),
  } as Input;
  if (row.method !== "GET") requireRole(input.caller, roleFor(row.id));
  const change = (): Promise<unknown> =>
    store.write(() => {
      context.history.sender = context.history.isOff ? undefined : senderIn(request);
      try {
        if (row.lease === "guarded") {
          const machine = machineOf(input);
          request.lease = leaseStanding(context, machine, input.nonce);
          guard(context, machine, input.nonce);
        }
        return rule(input);
      } finally {
        context.history.sender = undefined;
      }
    });
  let answer: unknown;
  // Such an answer may show changes of others that are not durable yet.
  let showsMore = row.method === "GET";
  try {
    answer = row.method === "GET" ? rule(input) : await withLookups(found, () => inSpan("write store", {}, change));
    if (answer instanceof Deferred) {
      const { find } = answer;
      answer = await inSpan("hold", {}, find);
      showsMore = true;
    }
  } catch (error) {
    // The changes that caused a refusal may not be durable yet; a kill would undo them.
    await store.unsettled;
    throw error;
  }
  if (showsMore && store.unsettled) await store.unsettled;
  const { status = row.status, headers, body } = answer instanceof Reply ? answer : { headers: {}, body: answer };
  const late = met(options, row, request, valid, "after");
  if (body instanceof Pieces && !late && !options.strict) {
    reply.status(status).headers(headers).header("content-type", json);
    return reply.send(Readable.from(inPieces(context, body), { objectMode: false }));
  }
  const whole: Outgoing = { status, headers, text: textOf(body) };
  if (options.strict) checkAnswer(row, status, whole.text);
  const outgoing = late ? await injectAfter(late, faulted(), whole) : whole;
  if (outgoing === true) return reply;
  reply.status(outgoing.status).headers(outgoing.headers);
  if (outgoing.text === undefined) return reply.send();
  return reply.header("content-type", json).send(outgoing.text);
}

/** Makes a change; as often as it needs something from outside, that is looked for first, outside of any transaction. */
async function withLookups(found: Found, change: () => Promise<unknown>): Promise<unknown> {
  try {
    return await change();
  } catch (error) {
    if (!(error instanceof LookupNeeded)) throw error;
    await error.find(found);
    return withLookups(found, change);
  }
}

const json = "application/json; charset=utf-8";

/** The pieces of an answer. Other requests are served between two of them, and no piece shows a change before it is durable. */
async function* inPieces({ store, turns }: Context, { pieces }: Pieces): AsyncGenerator<Chunk> {
  await turns.next();
  for (const piece of pieces) {
    if (store.unsettled) await store.unsettled;
    yield* piece;
    await turns.next();
  }
}

const textOf = (answer: unknown): string | undefined =>
  answer instanceof Text
    ? answer.text
    : answer instanceof Pieces
      ? textOfChunks([...answer.pieces].flat())
      : answer === undefined
        ? undefined
        : JSON.stringify(answer);

// Both spellings of the header mean the same; an empty one is none (docs/interface.md#leases).
function nonceOf({ headers }: FastifyRequest): string | undefined {
  const nonce = headers["svc-machine-lease-nonce"] || headers["fly-machine-lease-nonce"];
  return typeof nonce === "string" && nonce !== "" ? nonce : undefined;
}

/** ASSUMED: unknown fields are ignored, kept inside `config`, and named in the log; a strict service refuses them with 400, for databases with 422. */
function unknownFields(
  { strict }: AppOptions,
  row: Operation,
  request: FastifyRequest,
  fields: readonly string[],
): void {
  const named = namesOf(fields);
  if (strict) throw refuse(badStatus(row.id), `unknown ${named.join(", ")}`);
  request.log.info({ operation: row.id, fields: named }, "unknown fields were ignored");
}

// SQLite codes for a failing computer: disk full, read-only, I/O error, out of memory, busy. ASSUMED: when the disk is full,
// changes are 503 with `Retry-After: 5`; reads continue.
const diskCodes: readonly (number | undefined)[] = [13, 8, 10, 7, 5];

/** Turns a thrown error into an answer: a refusal as it says, a full disk as 503, anything else as an internal error. */
export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  if (error instanceof Refusal) {
    void reply.status(error.status).headers(error.headers).send(error.body);
    return;
  }
  if (diskCodes.includes(sqliteCode(error))) {
    request.log.error({ sqlite: sqliteCode(error) }, "the store cannot be written");
    void reply
      .status(503)
      .header("retry-after", "5")
      .send({ error: "the service cannot write its store (is the disk full?); nothing was changed" });
    return;
  }
  const status =
    error instanceof Error && "statusCode" in error && typeof error.statusCode === "number" ? error.statusCode : 500;
  if (status < 500) {
    void reply.status(status).send({ error: error instanceof Error ? error.message : "bad request" });
    return;
  }
  request.log.error({ err: error }, "internal error");
  void reply.status(status).send({ error: `internal error, see the log for request ${request.id}` });
}

// Malformed or oversized input never becomes a request. ASSUMED: a path longer than 16 KiB is 414, longer headers are 431.
export function refuseConnections(): (error: ConnectionError, socket: Socket) => void {
  const expire = inSlices<() => void>((end) => end());
  return (error, socket) => {
    // A client whose TLS handshake failed cannot read an answer.
    const isLate = error.code === "ERR_HTTP_REQUEST_TIMEOUT";
    const isHttp = isLate || error.code?.startsWith("HPE_");
    if (!isHttp || !socket.writable) return void socket.destroy();
    const status = connectionStatus(error);
    const body = JSON.stringify({ error: status.slice(4).toLowerCase() });
    const head = `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close`;
    const end = (): void => {
      if (socket.writable) endWith(socket, `${head}\r\n\r\n${body}`);
    };
    if (isLate) expire(end);
    else end();
  };
}

function connectionStatus({ code, rawPacket }: ConnectionError): string {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return "408 Request Timeout";
  if (code !== "HPE_HEADER_OVERFLOW") return "400 Bad Request";
  return Buffer.isBuffer(rawPacket) && rawPacket.includes("\r\n")
    ? "431 Request Header Fields Too Large"
    : "414 URI Too Long";
}

// The HTTP side: one route per row of the contract. Who may ask, what is asked, and how a refusal is answered is decided
// here for all of them; what happens is up to the rules.
import type { Socket } from "node:net";
import Fastify, {
  LogController,
  type ConnectionError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import { contract } from "../api/index.ts";
import type { Operation } from "../api/operation.ts";
import type { Faults } from "./faults.ts";
import { gatekeeper } from "./gate.ts";
import { Refusal, refuse } from "./refusal.ts";
import { machineOf } from "./rules/find.ts";
import { rules } from "./rules/index.ts";
import { guard } from "./rules/leases.ts";
import { Text, Under, type Caller, type Input } from "./rules/rule.ts";
import { sqliteCode } from "./store/database.ts";
import type { Tokens } from "./store/tokens.ts";
import { checkAnswer, validate } from "./validate.ts";
import type { World } from "./world.ts";

declare module "fastify" {
  interface FastifyRequest {
    caller: Caller;
  }
  interface FastifyContextConfig {
    /** `machines.create` and the like. */
    operation?: string;
  }
}

/** What a request was and what became of it; for logs and for tests that count. */
export interface Seen {
  readonly id: string;
  readonly operation: string | undefined;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly ms: number;
}

/** What the HTTP side is made of. */
export interface AppOptions {
  readonly world: World;
  readonly tokens: Tokens;
  readonly faults: Faults;
  readonly strict: boolean;
  /** Host names a request may be for beside those of this computer; undefined lets every name through. */
  readonly allowedHosts: ReadonlySet<string> | undefined;
  readonly seen: (request: Seen) => void;
}

type AnyRule = (input: Input) => unknown;

interface Route {
  readonly row: Operation;
  readonly rule: AnyRule;
}

// ASSUMED: the largest body; files are sent inside the configuration.
const bodyLimit = 4 * 2 ** 20;

/** Every row with the rule behind it. */
const routes: readonly Route[] = Object.entries(contract).flatMap(([group, rows]) => {
  const ofGroup = rules[group as keyof typeof rules] as unknown as Readonly<Record<string, AnyRule | undefined>>;
  return Object.entries(rows as Readonly<Record<string, Operation>>).flatMap(([name, row]) => {
    const rule = ofGroup[name];
    return rule ? [{ row, rule }] : [];
  });
});

/** Where log lines go: one JSON object each. */
export interface LogStream {
  write(line: string): void;
}

/** The server without its routes. */
export function createServer(log: LogStream | undefined, requestId: () => string): FastifyInstance {
  const app = Fastify({
    logger: log
      ? { level: "info", base: null, timestamp: () => `,"time":"${new Date().toISOString()}"`, stream: log }
      : false,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: requestId,
    bodyLimit,
    routerOptions: { maxParamLength: 2048 },
    requestTimeout: 75_000,
    keepAliveTimeout: 75_000,
    http: { headersTimeout: 10_000, connectionsCheckingInterval: 5_000 },
    forceCloseConnections: "idle",
    frameworkErrors: (error, request, reply) => sendError(error, request, reply),
    clientErrorHandler: badConnection,
  });
  app.server.maxConnections = 20_000;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => {
    // Real clients send all sorts of content types, and bodies where none belongs (bodies 5.1).
    if (body === "") return done(null, undefined);
    try {
      done(null, JSON.parse(String(body)));
    } catch {
      done(refuse(400, "invalid body, it is not JSON"));
    }
  });
  return app;
}

/** Gives a server its routes; after that it may listen, and `inject` works without. */
export function addRoutes(app: FastifyInstance, options: AppOptions): void {
  app.decorateRequest("caller", null as unknown as Caller);
  app.addHook("onRequest", gatekeeper(options));
  app.addHook("onResponse", (request, reply, done) => {
    const { id, method, routeOptions, url } = request;
    const operation = routeOptions.config.operation;
    const path = url.split("?", 1)[0] ?? url;
    const seen: Seen = {
      id,
      operation,
      method,
      path: path.slice(0, 200),
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime * 100) / 100,
    };
    options.seen(seen);
    done();
  });
  app.setErrorHandler(sendError);
  app.setNotFoundHandler((_request, reply) => reply.status(404).send({ error: "no such route" }));
  for (const { row, rule } of routes) {
    app.route({
      method: row.method,
      url: row.path.replace(/\{(\w+)\}/g, ":$1"),
      config: { operation: row.id },
      exposeHeadRoute: false,
      handler: (request, reply) => handle(options, row, rule, request, reply),
    });
  }
}

async function handle(
  options: AppOptions,
  row: Operation,
  rule: AnyRule,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const { world, faults } = options;
  const { store } = world;
  const valid = validate(row, request.params, request.query, request.body);
  if (valid.unknown.length > 0) unknownFields(options, row, request, valid.unknown);
  if (!faults.none && (await injected(faults, row, "before", reply))) return reply;
  const input = {
    world,
    caller: request.caller,
    params: valid.params,
    query: valid.query,
    body: valid.body,
    nonce: nonceOf(request),
    signal: row.held ? goneSignal(reply) : neverGone,
  } as Input;
  let answer: unknown;
  if (row.held) answer = await rule(input);
  else if (row.method === "GET") answer = rule(input);
  else {
    answer = await store.write(() => {
      if (row.lease === "guarded") guard(world, machineOf(input), input.nonce);
      return rule(input);
    });
  }
  // A reader may have seen what others wrote and what is not durable yet.
  if (store.unsettled) await store.unsettled;
  const status = answer instanceof Under ? answer.status : row.status;
  let text = textOf(answer instanceof Under ? answer.body : answer);
  if (options.strict) checkAnswer(row, status, text);
  if (!faults.none) {
    const rewritten = await injected(faults, row, "after", reply, text);
    if (rewritten === true) return reply;
    if (typeof rewritten === "object") text = rewritten.text;
  }
  reply.status(status);
  if (text === undefined) return reply.send();
  return reply.header("content-type", "application/json; charset=utf-8").send(text);
}

const textOf = (answer: unknown): string | undefined =>
  answer instanceof Text ? answer.text : answer === undefined ? undefined : JSON.stringify(answer);

// Both spellings of the header mean the same; an empty one is none (spec 4.2).
function nonceOf({ headers }: FastifyRequest): string | undefined {
  const nonce = headers["svc-machine-lease-nonce"] ?? headers["fly-machine-lease-nonce"];
  return typeof nonce === "string" && nonce !== "" ? nonce : undefined;
}

const neverGone = new AbortController().signal;

function goneSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once("close", () => controller.abort());
  return controller.signal;
}

function unknownFields(
  { strict }: AppOptions,
  row: Operation,
  request: FastifyRequest,
  fields: readonly string[],
): void {
  if (strict) throw refuse(400, `unknown ${fields.join(", ")}`);
  request.log.info({ operation: row.id, fields: fields.slice(0, 20) }, "fields that are not known were left alone");
}

/** Lets a planned fault happen: true when the request is over, or the rewritten answer. */
async function injected(
  faults: Faults,
  row: Operation,
  when: "before" | "after",
  reply: FastifyReply,
  text?: string,
): Promise<boolean | { text: string }> {
  const fault = faults.take(row.id, when);
  if (!fault) return false;
  const { status, delayMs, headers, body = { error: "injected fault" }, rewrite } = fault;
  if (delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, delayMs));
  if (rewrite) return { text: JSON.stringify(rewrite(text === undefined ? undefined : JSON.parse(text))) };
  if (status === undefined) return false;
  if (status === "reset") {
    reply.hijack();
    reply.raw.socket?.resetAndDestroy();
    return true;
  }
  const raw = typeof body === "string";
  await reply
    .status(status)
    .headers({ "content-type": raw ? "text/plain" : "application/json", ...headers })
    .send(raw ? body : JSON.stringify(body));
  return true;
}

// Codes of SQLite that mean the disk, not us: full, read-only, failing, out of memory.
const diskCodes: readonly (number | undefined)[] = [13, 8, 10, 7, 5];

function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
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
  // Nested so deep that taking it apart ran out of stack.
  if (error instanceof RangeError) {
    void reply.status(400).send({ error: "invalid body, it is nested too deeply" });
    return;
  }
  request.log.error({ err: error }, "a mistake of the service");
  void reply.status(status).send({ error: `internal error, see the log for request ${request.id}` });
}

// What is not HTTP, or is beyond all measure, never becomes a request.
function badConnection(this: FastifyInstance, error: ConnectionError, socket: Socket): void {
  if (error.code === "ECONNRESET" || socket.destroyed || !socket.writable) return void socket.destroy();
  const status = connectionStatus(error);
  const body = JSON.stringify({ error: status.slice(4).toLowerCase() });
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  );
}

function connectionStatus({ code, rawPacket }: ConnectionError): string {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return "408 Request Timeout";
  if (code !== "HPE_HEADER_OVERFLOW") return "400 Bad Request";
  return Buffer.isBuffer(rawPacket) && rawPacket.includes("\r\n")
    ? "431 Request Header Fields Too Large"
    : "414 URI Too Long";
}

// The typed client: one method per row of the contract, bound to the deadline of the operation that calls it.
import { z } from "zod";
import { fromWire, toWire, camelKey, type Camel } from "../../api/case.ts";
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { isObject, tidy } from "../../api/schema.ts";
import type { Config } from "../core/config.ts";
import { MachinesError } from "../core/errors.ts";
import { answerError, unreachable, unreadable } from "./errorMessages.ts";
import type { Clock, Deadline } from "./clock.ts";
import type { Journal } from "./journal.ts";
import { CircuitBreaker, type Attempting } from "./circuitBreaker.ts";
import { RateLimiter } from "./rateLimiter.ts";
import { judge } from "./retry.ts";
import { StaleReads } from "./staleReads.ts";
import type { Outcome, Transport } from "./transport.ts";

type Contract = typeof contract;
type In<S> = S extends z.ZodType ? Camel<z.input<S>> : unknown;
/** A row without path parameters must not make every other argument impossible. */
type Params<Row> = Row extends { params: z.ZodObject<infer Shape> }
  ? keyof Shape extends never
    ? unknown
    : In<Row["params"]>
  : unknown;
type Arguments<Row> = Params<Row> &
  (Row extends { query: infer Q } ? In<Q> : unknown) &
  (Row extends { lease: string } ? { leaseNonce?: string | undefined } : unknown) &
  (Row extends { body: infer B } ? (Row extends { bodyOptional: true } ? { body?: In<B> } : { body: In<B> }) : unknown);
type Answer<Row> = Row extends { answer: infer A } ? (A extends z.ZodType ? Camel<z.output<A>> : void) : void;
/** Every operation of the interface as a method, by group. */
export type Methods = {
  readonly [G in keyof Contract]: {
    readonly [M in keyof Contract[G]]: (args: Arguments<Contract[G][M]>) => Promise<Answer<Contract[G][M]>>;
  };
};

/** What an answer of the service looks like in programs. */
export type AnswerOf<G extends keyof Contract, M extends keyof Contract[G]> = Answer<Contract[G][M]>;

/** The service as a handler sees it. */
export interface Api extends Methods {
  readonly config: Config;
  readonly clock: Clock;
  readonly deadline: Deadline;
  /** What the whole process knows of the service. */
  readonly shared: Shared;
  /** The same service under another deadline. */
  within(deadline: Deadline): Api;
  /** Ends the connections that are kept for later requests; what is under way goes on. */
  close(): Promise<void>;
}

/** State of one client that all operations of the process share. */
export interface Shared {
  /** Apps and clusters that answered in this run: proof that endpoint and organization are right (R8). */
  readonly seen: Set<string>;
  /** Apps and clusters this process has deleted itself. */
  readonly deleted: Set<string>;
  /** How many deletions are under way in an App or a cluster, its own included. */
  readonly deletions: Map<string, number>;
  /** Lists that reads are served from, by key; see listCache.ts. */
  readonly lists: Map<string, { readonly asked: number; served: number; readonly list: Promise<readonly unknown[]> }>;
  /** Rate limits the service has shown. */
  readonly rateLimiter: RateLimiter;
  /** Versions of Machines that writes have answered with. */
  readonly staleReads: StaleReads;
  /** Whether the service answers at all. */
  readonly circuitBreaker: CircuitBreaker;
  /** Creates that were begun, on disk. */
  readonly journal: Journal;
  /** Why questions of a preview could not be asked: each is said once. */
  readonly unasked: Set<string>;
  /** Answers that do not change during a run, by question. */
  readonly facts: Map<string, Promise<unknown>>;
}

/** What a client is made of. */
export interface ClientParts {
  readonly config: Config;
  /** Base URL and token; asked for when the first request is sent, so that `local` starts only when it is needed. */
  readonly connect: () => Promise<{ readonly url: string; readonly token: string }>;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly journal: Journal;
  /** Called once per request sent; for counting and for the log. Never gets headers or bodies. */
  readonly onRequest?: (event: {
    operation: string;
    method: string;
    path: string;
    status: number | undefined;
    attempt: number;
  }) => void;
}

/** Makes the client of one endpoint and token. */
export function createApi(parts: ClientParts): Api {
  const shared: Shared = {
    seen: new Set(),
    deleted: new Set(),
    deletions: new Map(),
    lists: new Map(),
    rateLimiter: new RateLimiter(parts.clock),
    staleReads: new StaleReads(),
    circuitBreaker: new CircuitBreaker(parts.clock),
    journal: parts.journal,
    unasked: new Set(),
    facts: new Map(),
  };
  const bind = (deadline: Deadline): Api => {
    const operationSends = counter(deadline);
    const methodsOf = (group: keyof Contract) => {
      const methods = Object.entries(contract[group]).map(([name, row]) => [
        name,
        (args: Record<string, unknown>) => call({ ...parts, operationSends }, shared, deadline, row, args),
      ]);
      return Object.fromEntries(methods) as Methods[typeof group];
    };
    return Object.assign(byGroup(methodsOf), {
      config: parts.config,
      clock: parts.clock,
      deadline,
      shared,
      within: bind,
      close: () => parts.transport.close(),
    });
  };
  return bind({ at: Number.POSITIVE_INFINITY, allowed: "no limit" });
}

/** All groups, each made when it is first used: a run uses two or three, and each brings the schemas of all its rows. */
export function byGroup(make: (group: keyof Contract) => Methods[keyof Contract]): Methods {
  const groups = Object.keys(contract).map((group): [string, PropertyDescriptor] => {
    let made: Methods[keyof Contract] | undefined;
    return [group, { enumerable: true, get: () => (made ??= make(group as keyof Contract)) }];
  });
  return Object.defineProperties({}, Object.fromEntries(groups)) as Methods;
}

function counter({ requests = Number.POSITIVE_INFINITY, allowed }: Deadline): () => void {
  let sent = 0;
  return () => {
    if (++sent <= requests) return;
    throw new MachinesError(
      "wait-timeout",
      `${requests} requests were sent in the ${allowed} this operation may take, and it did not come to an end; the next up goes on from here`,
    );
  };
}

interface Bound extends ClientParts {
  /** Called before every request. @throws MachinesError when there were too many. */
  readonly operationSends: () => void;
}

async function call(
  parts: Bound,
  shared: Shared,
  deadline: Deadline,
  operation: Operation,
  args: Record<string, unknown>,
): Promise<unknown> {
  const attempting: Attempting = {};
  try {
    return await attempts(parts, shared, deadline, operation, args, attempting);
  } finally {
    shared.circuitBreaker.ended(attempting);
  }
}

async function attempts(
  parts: Bound,
  shared: Shared,
  deadline: Deadline,
  operation: Operation,
  args: Record<string, unknown>,
  attempting: Attempting,
): Promise<unknown> {
  const { config, clock, transport } = parts;
  const { url, token } = await parts.connect();
  const path = pathOf(operation, args);
  const body = bodyOf(operation, args);
  if (operation.repeat !== "read") forgetLists(shared, args);
  const lane = RateLimiter.key(operation, args);
  const ticket = shared.rateLimiter.ticket();
  let behindSince: number | undefined;
  // The token that is sent, wherever it came from: no message may quote it.
  const known = { ...config, token };
  let garbled = false;
  for (let attempt = 0; ; attempt++) {
    if (clock.now() + shared.rateLimiter.delay(lane) >= deadline.at && clock.now() < deadline.at)
      throw noTurn(operation, lane, deadline, attempt);
    await shared.rateLimiter.turn(lane, deadline, ticket);
    // What is cancelled sends nothing more; what was sent is heard out, unless it is a read.
    deadline.signal?.throwIfAborted();
    const left = deadline.at - clock.now();
    if (left <= 0)
      throw new MachinesError(
        "wait-timeout",
        `${operation.id}: the ${deadline.allowed} this operation may take were over before ${operation.method} ${url}${path} was sent. ${deadline.advice ?? "The next up goes on from here."}`,
      );
    parts.operationSends();
    const outcome = await transport({
      method: operation.method,
      url: url + path,
      headers: headersOf(operation, args, token, config.leaseHeader, body !== undefined),
      body,
      // A held request ends by itself at the timeout it carries; we hang up only well after that.
      timeout: operation.held ? Math.min(left, 60_000) + 15_000 : Math.min(config.requestTimeout, Math.max(left, 1000)),
      held: operation.held ?? false,
      signal: operation.repeat === "read" ? deadline.signal : undefined,
    });
    parts.onRequest?.({
      operation: operation.id,
      method: operation.method,
      path,
      status: outcome.kind === "answer" ? outcome.status : undefined,
      attempt,
    });
    if (deadline.signal?.aborted && operation.repeat === "read") throw deadline.signal.reason;
    const verdict = judge(operation, outcome, attempt, {
      retries: config.retries,
      random: () => clock.random(),
      now: () => clock.now(),
    });
    if (outcome.kind === "answer" && (outcome.status < 500 || outcome.status === 501)) shared.circuitBreaker.answered();
    else if (!operation.held && !(outcome.kind !== "answer" && outcome.lasting)) shared.circuitBreaker.failed();
    if (verdict.kind === "limited") {
      shared.rateLimiter.hold(lane, operation, verdict.afterMs);
      if (clock.now() + verdict.afterMs < deadline.at) continue;
    }
    if (verdict.kind === "again" && clock.now() + verdict.afterMs < deadline.at)
      if (await shared.circuitBreaker.mayRepeat(attempting, verdict.afterMs, deadline)) continue;
    if (operation.repeat !== "read") forgetLists(shared, args);
    if (outcome.kind !== "answer")
      throw unreachable(operation, url + path, outcome, verdict.kind === "ambiguous", deadline);
    if (verdict.kind !== "done") throw answerError(operation, url + path, outcome, known);
    const holder = args["appName"] ?? args["postgresClusterId"];
    if (typeof holder === "string" && !/^(apps|postgres)\.delete$/.test(operation.id)) shared.seen.add(holder);
    let answer: unknown;
    try {
      answer = parse(operation, url + path, outcome, known);
    } catch (error) {
      // What garbled one answer may spare the next; what changes something is not repeated for it (F24).
      if (operation.repeat !== "read" || garbled || attempt >= config.retries) throw error;
      garbled = true;
      continue;
    }
    const machine = machineIn(operation, answer);
    if (!machine) return answer;
    const isRead = operation.repeat === "read";
    // Who asks for a version by name gets that one.
    if (args["version"] !== undefined) return answer;
    if (!isRead) shared.staleReads.note(machine.id, machine.version);
    if (!isRead || !shared.staleReads.isStale(machine.id, machine.version)) return answer;
    behindSince ??= clock.now();
    if (clock.now() - behindSince >= behindAtMost)
      throw new MachinesError(
        "api",
        `${operation.id}: ${operation.method} ${url + path} shows version ${machine.version} of Machine ${machine.id}, and not the later one this run has made; try again`,
      );
    await clock.sleep(behindPause, deadline.signal);
    // Nothing failed: what may be repeated after a failure is not used up by it.
    attempt--;
  }
}

const noTurn = (operation: Operation, lane: string, { allowed }: Deadline, attempt: number): MachinesError =>
  new MachinesError(
    "wait-timeout",
    `${operation.id}: the service's rate limit for ${lane} leaves it no turn within the ${allowed} this operation may take. ${attempt === 0 ? "Nothing was sent; run" : "Run"} again later, or with customTimeouts that allow more.`,
  );

/** Milliseconds a read may be behind what was written (docs/interface.md#organization-lists), and between two looks. */
const behindAtMost = 5000;
const behindPause = 250;

/** The Machine an answer is, with its version under either of its names (docs/interface.md#machine). */
function machineIn({ id }: Operation, answer: unknown): { readonly id: string; readonly version: string } | undefined {
  if (!/^machines\.(create|update|get)$/.test(id) || !isObject(answer)) return undefined;
  const { id: machineId, version = answer["instanceId"] } = answer;
  return typeof machineId === "string" && typeof version === "string" ? { id: machineId, version } : undefined;
}

/** What was listed before a write says nothing after it. */
function forgetLists(shared: Shared, args: Record<string, unknown>): void {
  for (const key of shared.lists.keys()) if (key.endsWith(`/${String(args["appName"])}`)) shared.lists.delete(key);
}

function pathOf(operation: Operation, args: Record<string, unknown>): string {
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = args[camelKey(name)];
    const schema = (operation.params.shape as Record<string, z.ZodType>)[name];
    const checked = schema?.safeParse(value);
    if (!checked?.success) {
      throw new MachinesError(
        "invalid-input",
        `${operation.id}: ${name}: ${checked?.error.issues[0]?.message ?? "is missing"}`,
      );
    }
    // The star of a wildcard hostname is legal as it is, and the service wants it encoded
    // (docs/interface.md#names-and-identifiers).
    return encodeURIComponent(String(value)).replaceAll("*", "%2A");
  });
  const query = new URLSearchParams();
  for (const name of Object.keys(operation.query?.shape ?? {})) {
    const value = args[camelKey(name)];
    if (Array.isArray(value)) query.set(name, value.join(","));
    else if (isObject(value)) for (const [key, one] of Object.entries(value)) query.set(`${name}.${key}`, String(one));
    else if (value !== undefined) query.set(name, `${value as string | number | boolean}`);
  }
  return query.size > 0 ? `${path}?${query.toString()}` : path;
}

const bodyOf = (operation: Operation, args: Record<string, unknown>): string | undefined =>
  operation.body && args["body"] !== undefined ? JSON.stringify(toWire(operation.body, args["body"])) : undefined;

function headersOf(
  operation: Operation,
  args: Record<string, unknown>,
  token: string,
  leaseHeader: string,
  hasBody: boolean,
): Record<string, string> {
  const nonce = operation.lease ? args["leaseNonce"] : undefined;
  if (typeof nonce === "string" && !/^[\u0021-\u007e]+$/.test(nonce))
    throw new MachinesError("invalid-input", `${operation.id}: the lease's nonce is nothing that a header can hold`);
  return {
    accept: "application/json",
    authorization: `Bearer ${token}`,
    "user-agent": "pulumi-machines",
    ...(hasBody ? { "content-type": "application/json" } : {}),
    ...(typeof nonce === "string" ? { [leaseHeader]: nonce } : {}),
  };
}

function parse(
  operation: Operation,
  url: string,
  outcome: Extract<Outcome, { kind: "answer" }>,
  config: Config,
): unknown {
  if (!operation.answer) return undefined;
  const problem = (what: string) => unreadable(operation, url, outcome, what, config);
  let json: unknown;
  try {
    json = outcome.text === "" ? undefined : JSON.parse(outcome.text);
  } catch {
    // Plain actions answer whatever they like (docs/interface.md#starting-and-stopping); a page is no answer of the
    // service.
    if (operation.answer instanceof z.ZodOptional && !/^\s*</.test(outcome.text)) return undefined;
    throw problem("with something that is not JSON");
  }
  const { value } = tidy(operation.answer, json ?? undefined);
  // Zod would first compile a function for every object an answer may hold: dear in a short run, and no gain that shows in a long one.
  const valid = operation.answer.safeParse(value ?? undefined, { jitless: true });
  // Only a wrong type makes an answer unusable. A value our requests may not hold is the service's to know.
  const issue = valid.error?.issues.find(({ code }) => code === "invalid_type" || code === "invalid_union");
  if (issue) {
    throw problem(
      `with an answer of the wrong form (${issue?.path.join(".") || "body"}: ${issue?.message ?? "invalid"})`,
    );
  }
  return fromWire(operation.answer, value);
}

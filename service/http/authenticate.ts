// Authenticates requests: allowed host name, no foreign web page, and a known token
// (docs/interface.md#authentication, F36).
import type { FastifyReply, FastifyRequest } from "fastify";
import { Refusal, refuse } from "../refusal.ts";
import { isByHttps } from "../requestAddress.ts";
import type { Clock } from "../time/clock.ts";
import { proxyRole, type Role } from "../store/roles.ts";
import { isProxy, type Bearer, type Tokens } from "../store/tokens.ts";
import { pageKeyIn } from "./terminalProtocol.ts";
import { mayRead, operatesMachines } from "../rules/roles.ts";

/** The session of a browser that uses the console. */
export interface Session {
  /** Whether it was opened with a code of this computer, not with a token. */
  readonly isOperator: boolean;
  /** The role of its token. */
  readonly tokenRole: Role;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** A session, and the rights that it gives now. */
export interface FoundSession {
  readonly bearer: Bearer;
  readonly session: Session;
}

/** Finds the session of the headers `Cookie` and {@link pageKeyHeader}; undefined if they have none that is valid. */
export interface SessionFinder {
  find(cookies: string, pageKey: string, isSecure: boolean): FoundSession | undefined;
}

/**
 * The header with what only pages of the console's own origin know. Browsers send cookies to every port of a host, so the program
 * behind another port gets the cookie of the console, but never this.
 */
export const pageKeyHeader = "console-page-key";

const localNames = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Dependencies of the check. */
export interface AuthenticateOptions {
  readonly context: { readonly clock: Clock };
  readonly tokens: Pick<Tokens, "find">;
  /** Undefined if the service has no console. */
  readonly sessions?: SessionFinder | undefined;
  readonly allowedHosts: ReadonlySet<string> | undefined;
}

const nameOf = (host: string): string => host.replace(/:\d*$/, "").toLowerCase();

/** Returns whether a header `Host` is allowed. A client sends the same one with each request, so the last one is remembered. */
function allowedHost(allowed: ReadonlySet<string>): (host: string) => boolean {
  let last: string | undefined;
  return (host) => {
    if (host === last) return true;
    const name = nameOf(host);
    const isAllowed = localNames.has(name) || allowed.has(name);
    if (isAllowed) last = host;
    return isAllowed;
  };
}

/**
 * A foreign web page can make a browser send requests here, under a DNS name that it points at this computer. ASSUMED: a host
 * name other than this computer's is 403.
 */
function refuseForeignHost({ headers }: FastifyRequest, isAllowed: (host: string) => boolean): void {
  const host = headers.host ?? "";
  if (!isAllowed(host)) {
    throw refuse(
      403,
      `host ${JSON.stringify(host.slice(0, 80))} is not allowed; start the service with --allow-host to allow it`,
    );
  }
}

/** Refuses other pages. ASSUMED: a request that a page of another origin sends is 403. */
export function refuseForeignPage({ headers }: FastifyRequest): void {
  const { host = "", origin } = headers;
  const site = headers["sec-fetch-site"];
  const sameOrigin = origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
  if (!sameOrigin || (site !== undefined && site !== "same-origin" && site !== "none"))
    throw refuse(403, "requests from other origins are not allowed");
}

/**
 * ASSUMED: the console may operate Machines and destroy them, query clusters, and change what is in them; every other change needs a
 * token.
 */
const sessionOperations: ReadonlySet<string> = new Set([
  "console.addFault",
  "console.removeFault",
  "console.revealSecret",
  "console.revealPassword",
  "console.listTables",
  "console.query",
  ...operatesMachines,
  "machines.destroy",
  "postgres.createDatabase",
  "postgres.deleteDatabase",
  "postgres.createUser",
  "postgres.updateUser",
  "postgres.deleteUser",
  "postgres.rotatePassword",
  "postgres.createBackup",
  "postgres.restore",
  "postgres.fork",
]);

/** Whether a request asks for values of secrets, or for passwords. */
export function showsSecrets({ query, routeOptions: { config } }: FastifyRequest): boolean {
  const { show_secrets: shown = "false" } = query as { readonly show_secrets?: unknown };
  const { operation = "" } = config;
  return operation === "postgres.credentials" || (operation.startsWith("secrets.") && shown !== "false");
}

/**
 * ASSUMED: a session of the console reads no secret with an operation, whatever its token may; each one is revealed by a request of its
 * own.
 */
function refuseSecrets(request: FastifyRequest): void {
  if (showsSecrets(request))
    throw refuse(403, "the console shows no secret with its views; reveal one value, or read it with a token");
}

/**
 * A browser adds the cookie to every request, whichever page sends it. So a change must come from a page of this service, and a
 * session may only do what {@link sessionOperations} says.
 */
function limitSession(request: FastifyRequest, { role }: Bearer): void {
  refuseForeignPage(request);
  refuseSecrets(request);
  const { method, headers, routeOptions } = request;
  if (method === "GET") return;
  if (headers.origin === undefined && headers["sec-fetch-site"] !== "same-origin")
    throw refuse(403, "a change with the cookie of the console needs the header sec-fetch-site or origin of its page");
  const { operation } = routeOptions.config;
  if (role !== "read" && operation !== undefined && !sessionOperations.has(operation) && !mayRead.has(operation))
    throw refuse(403, `the console may not use ${operation}; send that request with a token`);
}

/** A proxy sees what all organizations route, and nothing else. No other token sees that. */
function limitProxy({ routeOptions: { config } }: FastifyRequest, bearer: Bearer): void {
  if (config.forProxies) {
    if (!isProxy(bearer)) throw refuse(403, "unauthorized: this needs a token of the role proxy");
  } else if (bearer.role === proxyRole)
    throw refuse(403, "unauthorized: a token of the role proxy is only for a proxy");
}

/** The token in the header of a request; undefined without one. */
export const bearerToken = (authorization: string | undefined): string | undefined =>
  /^bearer +(\S+)$/i.exec(authorization ?? "")?.[1];

/** The sender of a request by its token, or else by its session; undefined without either. */
export function senderOf(
  { context, tokens, sessions }: Pick<AuthenticateOptions, "context" | "tokens" | "sessions">,
  request: FastifyRequest,
): { readonly bearer: Bearer; readonly session: Session | null } | undefined {
  const { headers } = request;
  const { authorization, cookie, [pageKeyHeader]: key = pageKeyIn(headers["sec-websocket-protocol"]) } = headers;
  if (authorization === undefined && cookie !== undefined)
    return typeof key === "string" ? sessions?.find(cookie, key, isByHttps(request)) : undefined;
  const token = bearerToken(authorization);
  const bearer = token === undefined ? undefined : tokens.find(token, context.clock.now());
  return bearer && { bearer, session: null };
}

/**
 * Node.js reads the first of several; a proxy in front of the service may have checked another. ASSUMED: a request with two `Host`
 * headers is 400.
 */
function requireOneHost({ raw: { rawHeaders } }: FastifyRequest): void {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]?.length === 4 && rawHeaders[i]?.toLowerCase() === "host") hosts++;
  if (hosts > 1) throw refuse(400, `invalid Host, got ${hosts} headers, must be one`);
}

/** Returns the check that runs before every request. It returns the refusal, if any. */
export function authenticate(options: AuthenticateOptions) {
  const isAllowed = options.allowedHosts && allowedHost(options.allowedHosts);
  return (request: FastifyRequest, reply: FastifyReply): Error | undefined => {
    reply.header("svc-request-id", request.id).header("fly-request-id", request.id);
    try {
      requireOneHost(request);
      if (isAllowed && request.routeOptions.config.isForAnyHost?.(request) !== true) {
        refuseForeignHost(request, isAllowed);
        if (!request.routeOptions.config.fromElsewhere) refuseForeignPage(request);
      }
      if (request.routeOptions.config.open) return undefined;
      const sender = senderOf(options, request);
      if (!sender) throw refuse(401, "Authenticate: token validation error");
      limitProxy(request, sender.bearer);
      request.caller = sender.bearer;
      if (sender.session) {
        limitSession(request, sender.bearer);
        request.session = sender.session;
      }
      return undefined;
    } catch (error) {
      return error instanceof Error ? error : new Refusal(500, { error: "internal error" });
    }
  };
}

// Authenticates requests: allowed host name, no foreign web page, and a known token
// (docs/interface.md#authentication, F36).
import type { FastifyReply, FastifyRequest } from "fastify";
import { Refusal, refuse } from "../refusal.ts";
import type { Clock } from "../time/clock.ts";
import type { Tokens } from "../store/tokens.ts";

const localNames = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Dependencies of the check. */
export interface AuthenticateOptions {
  readonly context: { readonly clock: Clock };
  readonly tokens: Pick<Tokens, "find">;
  readonly allowedHosts: ReadonlySet<string> | undefined;
}

const nameOf = (host: string): string => host.replace(/:\d*$/, "").toLowerCase();

/**
 * A foreign web page can make a browser send requests here, under a DNS name that it points at this computer. ASSUMED: a host
 * name other than this computer's, and a request from a page of another origin, are 403.
 */
function refuseForeign({ headers }: FastifyRequest, allowed: ReadonlySet<string>): void {
  const host = headers.host ?? "";
  if (!localNames.has(nameOf(host)) && !allowed.has(nameOf(host))) {
    throw refuse(
      403,
      `host ${JSON.stringify(host.slice(0, 80))} is not allowed; start the service with --allow-host to allow it`,
    );
  }
  const { origin } = headers;
  const site = headers["sec-fetch-site"];
  const sameOrigin = origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
  if (!sameOrigin || (site !== undefined && site !== "same-origin" && site !== "none"))
    throw refuse(403, "requests from other origins are not allowed");
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

/** The hook that runs before every request. */
export function authenticate({ context, tokens, allowedHosts }: AuthenticateOptions) {
  return (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    reply.header("svc-request-id", request.id).header("fly-request-id", request.id);
    try {
      requireOneHost(request);
      if (allowedHosts) refuseForeign(request, allowedHosts);
      if (request.routeOptions.config.open) return done();
      const token = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? "")?.[1];
      const bearer = token === undefined ? undefined : tokens.find(token, context.clock.now());
      if (!bearer) throw refuse(401, "Authenticate: token validation error");
      request.caller = bearer;
      done();
    } catch (error) {
      done(error instanceof Error ? error : new Refusal(500, { error: "internal error" }));
    }
  };
}

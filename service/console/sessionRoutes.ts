// The routes that open, show and end the session of a browser.
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Context } from "../context.ts";
import { clientAddress, isByHttps } from "../requestAddress.ts";
import { pageKeyHeader, refuseForeignPage } from "../http/authenticate.ts";
import { Refusal, refuse } from "../refusal.ts";
import type { Clock } from "../time/clock.ts";
import { LockOut } from "./lockOut.ts";
import type { Credential, Sessions } from "./sessions.ts";
import type { SessionView } from "./types.ts";
import { proxyRole } from "../store/roles.ts";
import { ownApps } from "../store/tokens.ts";
import { endSignIn } from "../store/trusts.ts";

const kindOf = (value: unknown): string =>
  value === undefined ? "nothing" : value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`;

/** The code or the token in a body. An error never quotes a value: it may be a secret. */
function credentialOf(body: unknown): Credential {
  const shape = 'must be {"code": "…"} or {"token": "…"}';
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw refuse(400, `invalid body, got ${kindOf(body)}, ${shape}`);
  const [[name, value] = ["", undefined], ...others] = Object.entries(body);
  if ((name !== "code" && name !== "token") || others.length > 0)
    throw refuse(400, `invalid body, got an object with other properties, ${shape}`);
  if (typeof value !== "string") throw refuse(400, `invalid ${name}, got ${kindOf(value)}, must be a string`);
  return name === "code" ? { code: value } : { token: value };
}

/** What the routes need. */
interface SessionRoutes {
  readonly context: Context;
  readonly sessions: Sessions;
  /** That of the computer. */
  readonly clock: Clock;
  /** Whether past moments can be shown. */
  readonly hasPast: boolean;
}

function viewOf(
  { context: { store, runtime, clock }, hasPast }: SessionRoutes,
  { caller, session }: FastifyRequest,
  real: number,
): SessionView {
  const { slug, owner, role, expiresAt } = caller;
  const now = clock.now();
  return {
    organization: slug,
    apps: ownApps(store, caller)?.map(({ name }) => name) ?? null,
    owner,
    // A proxy gets no view.
    role: session?.tokenRole ?? (role === proxyRole ? "read" : role),
    isOperator: session?.isOperator ?? false,
    canWrite: role !== "read",
    runtime: runtime.name,
    hasPast,
    // A session ends by the clock of the computer, a token by that of the service.
    expiresAt: session ? Math.min(session.expiresAt + now - real, expiresAt ?? Infinity) : expiresAt,
    now,
  };
}

/** Adds the routes. */
export function addSessionRoutes(app: FastifyInstance, routes: SessionRoutes): void {
  const { sessions, clock } = routes;
  const lockOut = new LockOut();
  const open = { config: { open: true as const } };

  app.post("/console/session", open, (request, reply) => {
    // Another page must not replace the session of a browser with one of its own.
    refuseForeignPage(request);
    const credential = credentialOf(request.body);
    const wait = lockOut.waitFor(clientAddress(request), clock.elapsed());
    if (wait > 0) {
      const seconds = Math.ceil(wait / 1000);
      const error = `too many failed attempts to sign in; try again in ${seconds} s`;
      throw new Refusal(429, { error }, { "retry-after": String(seconds) });
    }
    try {
      const { cookie, pageKey } = sessions.open(credential, isByHttps(request));
      return reply.header("set-cookie", cookie).header("cache-control", "no-store").send({ page_key: pageKey });
    } catch (error) {
      lockOut.failed(clientAddress(request), clock.elapsed());
      throw error;
    }
  });

  app.get("/console/session", { config: { unrecorded: true } }, (request, reply) =>
    reply.header("cache-control", "no-store").send(viewOf(routes, request, clock.now())),
  );

  app.delete("/console/session", open, async (request, reply) => {
    refuseForeignPage(request);
    const { cookie = "", [pageKeyHeader]: key } = request.headers;
    const found = typeof key === "string" ? sessions.find(cookie, key, isByHttps(request)) : undefined;
    const { store } = routes.context;
    // A person who signs out leaves no token behind.
    if (found) await store.write(() => endSignIn(store, found.bearer.id));
    return reply
      .header("set-cookie", sessions.end(isByHttps(request)))
      .status(204)
      .send();
  });
}

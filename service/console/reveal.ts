// Reveals one secret value. No view and no operation shows one to a session, so each value that was seen has an entry in the audit.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Context } from "../context.ts";
import { refuse } from "../refusal.ts";
import { ask, type Asker } from "./ask.ts";
import { hasRole } from "../store/roles.ts";

type Params = Readonly<Record<string, string>>;

/** Adds the routes. Their paths say in the audit what was revealed. */
export function addRevealRoutes(app: FastifyInstance, context: Context): void {
  const post = (path: string, operation: string, valueOf: (asker: Asker, params: Params) => Promise<string>): void => {
    app.post(`/console/api/${path}/reveal`, { config: { operation } }, async (request, reply) => {
      requireRights(request);
      const value = await valueOf({ context, caller: request.caller }, request.params as Params);
      return sendValue(reply, value);
    });
  };
  post("apps/:app_name/secrets/:secret_name", "console.revealSecret", async (asker, params) => {
    const { value = "" } = await ask(asker, "secrets", "get", params, { show_secrets: true });
    return value;
  });
  post("clusters/:postgres_cluster_id/users/:username", "console.revealPassword", async (asker, params) => {
    const { data } = await ask(asker, "postgres", "credentials", params);
    return data.password;
  });
}

/** ASSUMED: to reveal a secret takes the role `own`; a password and a query take `deploy`. A session also needs `--console write`. */
export function requireRights({ caller, session }: FastifyRequest): void {
  if (hasRole(caller.role, "deploy")) return;
  throw refuse(
    403,
    session && hasRole(session.tokenRole, "deploy")
      ? "the console only reads; start the service with --console write to reveal values"
      : `this needs a token with the role deploy, not ${caller.role}`,
  );
}

const sendValue = (reply: FastifyReply, value: string): FastifyReply =>
  reply.header("cache-control", "no-store").send({ value });

// The exchange of identity tokens, which needs no token.
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { validated } from "../../api/validated.ts";
import type { Context } from "../context.ts";
import { exchange } from "../identity/exchange.ts";
import { IssuerKeys } from "../identity/issuerKeys.ts";
import { refuse } from "../refusal.ts";
import type { Tokens } from "../store/tokens.ts";

/** Characters of an identity token: those of workflows have up to about 2,000. */
const longest = 16_384;

const body = z.strictObject({ identity_token: z.string().min(1).max(longest) });

/** Name of the operation in the records. */
const exchangeOperation = "tokens.exchange";

/** Adds the route. */
export function addExchangeRoute(app: FastifyInstance, context: Context, tokens: Tokens): void {
  const keys = new IssuerKeys(() => context.clock.elapsed());
  const config = { open: true, operation: exchangeOperation } as const;
  app.post("/local/tokens/exchange", { config, bodyLimit: 2 * longest }, async (request, reply) => {
    const { success, data } = validated(body, request.body);
    // The body is not quoted: it may be a token.
    if (!success) throw refuse(400, `invalid body, must be {"identity_token": "…"} with at most ${longest} characters`);
    const exchanged = await exchange(data.identity_token, { context, keys });
    const bearer = tokens.find(exchanged.token, context.clock.now());
    // The records name who got which.
    if (bearer) request.caller = bearer;
    request.about = `token ${exchanged.token_id}`;
    return reply.status(201).header("cache-control", "no-store").send(exchanged);
  });
}

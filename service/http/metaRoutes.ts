// Routes outside of the interface: first page, description, documentation, health and metrics. Only the metrics need a token, because
// only they reveal something about resources.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { docsPage } from "../openapi/docsPage.ts";
import { contentPolicy } from "../openapi/html.ts";
import { rootJson, rootPage } from "../openapi/rootPage.ts";
import { searchHash } from "../openapi/search.ts";
import { weightOf } from "./accept.ts";
import type { Metrics } from "./metrics.ts";
import { refuse } from "../refusal.ts";
import { openapi } from "../openapi/openapi.ts";
import { ownCommand } from "../ownCommand.ts";
import { challengeFolder } from "../runtime/certificateIssuer.ts";
import { isOperator } from "../store/tokens.ts";
import { addressOf, isHere } from "../requestAddress.ts";
import type { Context } from "../context.ts";

/** Dependencies of these routes. */
export interface MetaRoutes {
  readonly context: Context;
  readonly metrics: Metrics;
  /** Folder of the data; undefined in memory. */
  readonly folder: string | undefined;
  /** Whether unknown fields are refused, which the description states. */
  readonly strict: boolean;
  /** Whether the service is closing. */
  readonly closing: () => boolean;
  /** Sends the console to a browser; undefined if it is off. */
  readonly console: ((reply: FastifyReply) => FastifyReply) | undefined;
}

// Requests without a token must not keep the disk busy.
const rememberedMs = 1000;

// More than fits into the space of a deleted row, so that a full disk is noticed.
const probeBytes = 16_384;

/** Writes to the store and deletes it again; false when that fails. */
async function canWrite({ store }: Context): Promise<boolean> {
  try {
    await store.write(() => {
      store.run(`INSERT INTO images (reference, digest, labels) VALUES ('', '', hex(zeroblob(${probeBytes / 2})))`);
      store.run("DELETE FROM images WHERE reference = ''");
    });
    return true;
  } catch {
    return false;
  }
}

/** Tests whether the store can be written, at most once a second. */
function writable(context: Context): () => Promise<boolean> {
  let asked: { readonly at: number; readonly answer: Promise<boolean> } | undefined;
  return () => {
    const at = context.clock.elapsed();
    if (!asked || at - asked.at >= rememberedMs) asked = { at, answer: canWrite(context) };
    return asked.answer;
  };
}

/** Whether a client is a browser, which names HTML; others accept anything, or name JSON. */
function wantsHtml({ headers: { accept = "" } }: FastifyRequest): boolean {
  const weight = weightOf("text/html", accept);
  return weight > 0 && weight >= weightOf("application/json", accept);
}

/** Adds the routes. The description and the page are built on their first request. */
export function addMetaRoutes(app: FastifyInstance, options: MetaRoutes): void {
  const { context, metrics, folder, strict, closing } = options;
  const storeWritable = writable(context);
  const open = { config: { open: true as const } };
  let description: string | undefined;
  let pageFor: ReturnType<typeof docsPage> | undefined;
  const html = "text/html; charset=utf-8";
  const commandFor = (words: string, request: FastifyRequest): string | undefined =>
    folder !== undefined && isHere(request) ? ownCommand(words, folder) : undefined;

  app.get("/", open, (request, reply) => {
    reply.header("vary", "accept");
    if (!wantsHtml(request)) return reply.send(rootJson);
    if (options.console) return options.console(reply);
    const [token, list] = [commandFor("token", request), commandFor("ls", request)];
    const page = rootPage(token === undefined || list === undefined ? undefined : { token, list });
    return reply.type(html).header("content-security-policy", contentPolicy()).send(page);
  });

  app.get("/healthz", open, () => ({ status: "ok" }));

  app.get("/readyz", open, async (_request, reply) => {
    const problem = closing()
      ? "the service is shutting down"
      : (await storeWritable())
        ? undefined
        : "the store cannot be written";
    if (problem === undefined) return { status: "ok" };
    return reply.status(503).header("retry-after", "5").send({ error: problem });
  });

  // Where the runtime leads the requests of a certificate authority here, for hostnames of Apps. All it answers is public.
  const answerOf = ({ params }: FastifyRequest): string | undefined =>
    context.runtime.challengeRoutes && context.issuer.challenges?.answerOf((params as { token: string }).token);
  const isForAnyHost = (request: FastifyRequest): boolean => answerOf(request) !== undefined;
  app.get(`${challengeFolder}:token`, { config: { open: true, isForAnyHost } }, (request, reply) => {
    const answer = answerOf(request);
    if (answer === undefined) throw refuse(404, "no such route");
    return reply.type("text/plain").send(answer);
  });

  app.get("/openapi.json", open, (_request, reply) =>
    reply.type("application/json; charset=utf-8").send((description ??= JSON.stringify(openapi({ strict })))),
  );

  app.get("/docs", open, (request, reply) => {
    pageFor ??= docsPage(openapi({ strict }));
    return reply
      .type(html)
      .header("content-security-policy", contentPolicy(searchHash))
      .send(pageFor(addressOf(request), commandFor("token", request)));
  });

  // They cover every organization, so they need a token of the first one, which belongs to the operator of the service.
  app.get("/metrics", async ({ caller }, reply) => {
    if (!isOperator(caller)) throw refuse(403, "unauthorized");
    const text = await metrics.text();
    return reply.type("text/plain; version=0.0.4; charset=utf-8").send(text);
  });
}

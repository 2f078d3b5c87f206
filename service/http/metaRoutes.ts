// What the service says about itself, beside the interface: its description, its documentation, whether it is well, and
// its figures. Nothing but the figures needs a token, for nothing else tells of anybody's resources.
import type { FastifyInstance } from "fastify";
import { docsPage } from "../openapi/docsPage.ts";
import type { Metrics } from "./metrics.ts";
import { refuse } from "../refusal.ts";
import { openapi } from "../openapi/openapi.ts";
import type { Context } from "../context.ts";

/** What these routes speak of. */
export interface MetaRoutes {
  readonly context: Context;
  readonly metrics: Metrics;
  /** Whether fields that are not known are refused, which the description says. */
  readonly strict: boolean;
  /** Whether the service is about to end. */
  readonly closing: () => boolean;
}

// Whoever asks without a token must not keep the disk busy.
const rememberedMs = 1000;

// More than fits where a row was, so that a disk that is full shows.
const probeBytes = 16_384;

/** Writes to the store and takes it back; false when that cannot be done. */
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

/** Asks whether the store can be written, once a second at most. */
function writable(context: Context): () => Promise<boolean> {
  let asked: { readonly at: number; readonly answer: Promise<boolean> } | undefined;
  return () => {
    const at = context.clock.now();
    if (!asked || at - asked.at >= rememberedMs) asked = { at, answer: canWrite(context) };
    return asked.answer;
  };
}

/** Adds the routes. The description and the page are made when they are first asked for. */
export function addMetaRoutes(app: FastifyInstance, { context, metrics, strict, closing }: MetaRoutes): void {
  const storeWritable = writable(context);
  const open = { config: { open: true as const } };
  let description: string | undefined;
  let page: string | undefined;

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

  app.get("/openapi.json", open, (_request, reply) =>
    reply.type("application/json; charset=utf-8").send((description ??= JSON.stringify(openapi({ strict })))),
  );

  app.get("/docs", open, (_request, reply) =>
    reply
      .type("text/html; charset=utf-8")
      .header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'")
      .send((page ??= docsPage(openapi({ strict })))),
  );

  // They count for every organization, so only a token of the first one, which is whoever runs the service, sees them.
  app.get("/metrics", ({ caller }, reply) => {
    if (caller.slug !== "personal" || caller.app !== null) throw refuse(403, "unauthorized");
    return reply.type("text/plain; version=0.0.4; charset=utf-8").send(metrics.text());
  });
}

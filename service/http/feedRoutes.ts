// Routes for proxies that are processes of their own: what they need to route, what they report, and the start of a Machine for a
// request. Only their tokens may use them, and those may use nothing else (authenticate.ts).
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Context } from "../context.ts";
import type { Feed } from "../proxy/feed.ts";
import { answersPath, feedPath, mostCounts, reportPath, startPath } from "../proxy/feedPaths.ts";
import { startForRequest } from "../proxy/power.ts";
import { buckets, type Traffic } from "../proxy/traffic.ts";
import { refuse } from "../refusal.ts";
import { read } from "../validation/read.ts";

/** Whether the token of a proxy is still valid is checked this often. */
const checkEvery = 15_000;

// ASSUMED: a service has at most 200 proxies at once, those included that have just lost their connection.
const mostReplicas = 200;
// A proxy has at most as many connections.
const mostIds = 100_000;

const id = z.string().min(1).max(64);
const ids = z.array(id).max(mostIds);
const count = z.number().int().min(-1);

const followQuery = z.strictObject({
  replica: id,
  run: id.optional(),
  at: z.coerce.number<string>().int().min(0).optional(),
});

const report = z.strictObject({
  replica: id,
  run: id,
  at: count,
  busy: ids,
  draining: ids,
  awaited: ids,
});

const numbersBy = (key: z.ZodType<string>) => z.record(key, z.number().int().min(1));
const answers = z.strictObject({
  replica: id,
  number: z.number().int().min(1),
  answers: z
    .array(
      z.strictObject({
        app: id,
        route: z.string().min(1).max(300),
        statuses: numbersBy(z.string().regex(/^(?:0|[1-5]\d\d)$/)),
        times: numbersBy(z.string().refine((bucket) => /^\d{1,3}$/.test(bucket) && Number(bucket) < buckets)),
      }),
    )
    .max(mostCounts),
});

/** Adds the routes. `traffic` counts the answers of the proxies; `isValid` says whether the token of a request still is. */
export function addFeedRoutes(
  app: FastifyInstance,
  context: Context,
  feed: Feed | undefined,
  traffic: Traffic | undefined,
  isValid: (request: FastifyRequest) => boolean,
): void {
  // Reports come every second, and tell nothing about the service.
  const quiet = { config: { forProxies: true as const, unrecorded: true as const } };
  const found = (): Feed => {
    if (feed) return feed;
    const { name } = context.runtime;
    throw refuse(412, `failed_precondition: the ${name} runtime runs no programs, so there is nothing for a proxy`);
  };

  app.get(feedPath, quiet, (request, reply) => {
    const { replica, run, at } = read(followQuery, request.query);
    const from = found();
    if (from.replicas.size >= mostReplicas)
      throw refuse(503, `the service has ${mostReplicas} proxies, which is as many as it may have`);
    const gone = new AbortController();
    reply.raw.once("close", () => gone.abort());
    const check = (): void => {
      if (!isValid(request)) gone.abort();
      else if (!gone.signal.aborted) cancel = context.clock.after(checkEvery, check);
    };
    let cancel = context.clock.after(checkEvery, check);
    gone.signal.addEventListener("abort", () => cancel());
    const since = run === undefined || at === undefined ? undefined : { run, at };
    return reply.type("application/x-ndjson").send(Readable.from(from.follow(replica, since, gone.signal)));
  });

  app.post(reportPath, quiet, (request, reply) => {
    const { replica, ...reported } = read(report, request.body);
    found().reported(replica, reported);
    return reply.status(204).send();
  });

  app.post(answersPath, quiet, (request, reply) => {
    const { replica, number, answers: counted } = read(answers, request.body);
    const mayCount = found().replicas.mayCount(replica, number);
    // It comes again once the proxy has connected.
    if (mayCount === undefined) throw refuse(409, "the proxy does not follow the service");
    // An App may be gone by now.
    const isThere = ({ app: of }: { readonly app: string }): boolean =>
      context.store.get("SELECT 1 FROM apps WHERE id = ?", of) !== undefined;
    if (mayCount) for (const one of counted.filter(isThere)) traffic?.merge(one);
    return reply.status(204).send();
  });

  app.post<{ Params: { machine_id: string } }>(
    startPath(":machine_id"),
    { config: { forProxies: true } },
    async ({ params }, reply) => {
      found();
      await context.store.write(() => startForRequest(context, params.machine_id));
      return reply.status(204).send();
    },
  );
}

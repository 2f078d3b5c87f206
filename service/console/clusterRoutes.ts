// What the console asks the databases of a cluster: their tables, and the queries of people. A query has the rights of a user of the
// cluster, so it takes the rights that revealing this user's password takes. Each has an entry in the audit.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Context } from "../context.ts";
import { clusterOf } from "../lifecycle/clusters.ts";
import { Refusal, refuse } from "../refusal.ts";
import { StatementFailed, type Cluster } from "../runtime/postgresEngine.ts";
import { read } from "../validation/read.ts";
import { liveClusterOf } from "../rules/clusters.ts";
import { ask, type Asker } from "./ask.ts";
import { withoutValues } from "./queryText.ts";
import { requireRights } from "./reveal.ts";
import type { QueryAnswer, TableList } from "./types.ts";

// ASSUMED: the console runs at most 3 queries of an organization at a time, and 10 in all.
const mostOfOrganization = 3;
const mostInAll = 10;
/** The server ends a query earlier; this is for one that does not answer. */
const mostMs = 20_000;
/** Tables in one answer. */
const mostTables = 500;

const longestQuery = 100_000;

const place = { database: z.string().max(63), user: z.string().max(63) };
const tablesBody = z.strictObject(place);
const queryBody = z.strictObject({
  ...place,
  // The protocol of the server ends a text at this character.
  sql: z
    .string()
    .max(longestQuery)
    .refine((text) => !text.includes("\0"), "must not contain the character U+0000"),
  write: z.boolean().default(false),
});

/** The queries that run. */
class Running {
  readonly #counts = new Map<string, number>();

  /** Counts one in, or refuses it; the returned function counts it out. */
  begin(org: string): () => void {
    const all = [...this.#counts.values()].reduce((sum, n) => sum + n, 0);
    const own = this.#counts.get(org) ?? 0;
    if (own >= mostOfOrganization || all >= mostInAll)
      throw refuse(429, "other queries of the console still run; wait for them, or cancel one");
    this.#counts.set(org, own + 1);
    return () => {
      const left = (this.#counts.get(org) ?? 1) - 1;
      if (left === 0) this.#counts.delete(org);
      else this.#counts.set(org, left);
    };
  }
}

/** Where a query runs. */
interface Place {
  readonly cluster: Cluster;
  readonly database: string;
  readonly user: string;
}

/** Finds the database and its user, as someone who may connect as that user. */
async function placeOf(asker: Asker, id: string, { database, user }: Omit<Place, "cluster">): Promise<Place> {
  const params = { postgres_cluster_id: id };
  // It refuses those who may not see the password.
  await ask(asker, "postgres", "credentials", { ...params, username: user });
  const { data } = await ask(asker, "postgres", "listDatabases", params);
  if (!data.some(({ name }) => name === database)) throw refuse(404, "Database not found");
  return { cluster: clusterOf(liveClusterOf({ ...asker, params })), database, user };
}

/** Adds the routes. */
export function addClusterRoutes(app: FastifyInstance, context: Context): void {
  const running = new Running();
  const closing = new AbortController();
  app.addHook("preClose", (done) => {
    closing.abort();
    done();
  });

  /** Does work that ends when its client goes, when the service closes, or after a while. */
  const during = async <T>(
    request: FastifyRequest,
    reply: FastifyReply,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> => {
    const done = running.begin(request.caller.slug);
    const late = new AbortController();
    const gone = (): void => late.abort();
    const cancel = context.clock.after(mostMs, gone);
    reply.raw.once("close", gone);
    // It may have gone already, and then it does not say so again.
    if (reply.raw.destroyed) gone();
    try {
      return await work(AbortSignal.any([late.signal, closing.signal]));
    } catch (error) {
      throw error instanceof StatementFailed ? failed(error) : error;
    } finally {
      reply.raw.removeListener("close", gone);
      cancel();
      done();
    }
  };

  const post = (
    path: string,
    operation: string,
    answer: (request: FastifyRequest, reply: FastifyReply, id: string) => Promise<object>,
  ): void => {
    app.post<{ Params: { cluster_id: string } }>(
      `/console/api/clusters/:cluster_id/${path}`,
      { config: { operation } },
      async (request, reply) => {
        requireRights(request);
        // The record of a client that has gone says what became of its query.
        request.work = answer(request, reply, request.params.cluster_id);
        return reply.header("cache-control", "no-store").send(await request.work);
      },
    );
  };

  post("tables", "console.listTables", async (request, reply, id): Promise<TableList> => {
    const body = read(tablesBody, request.body);
    const { cluster, ...at } = await placeOf({ context, caller: request.caller }, id, body);
    request.about = `${at.user} in ${at.database}`;
    const { postgres } = context;
    if (!postgres.relations) throw noServer();
    const most = mostTables + 1;
    const found = await during(request, reply, async (signal) =>
      postgres.relations?.(cluster, { ...at, signal }, most),
    );
    return { tables: found?.slice(0, mostTables) ?? [], isMore: (found?.length ?? 0) > mostTables };
  });

  post("query", "console.query", async (request, reply, id): Promise<QueryAnswer> => {
    const { sql: text, write: isWrite, ...body } = read(queryBody, request.body);
    const { cluster, ...at } = await placeOf({ context, caller: request.caller }, id, body);
    const about = `${at.user} in ${at.database}, ${isWrite ? "writes" : "reads"}`;
    // Words of a text that the server does not understand may be anything.
    request.about = about;
    const { clock, postgres } = context;
    if (!postgres.run) throw noServer();
    const began = clock.elapsed();
    const answer = await during(request, reply, async (signal) => {
      try {
        return await postgres.run?.(cluster, { ...at, text, isWrite, signal });
      } catch (error) {
        if (error instanceof StatementFailed && error.details.isUnderstood === true)
          request.about = `${about}, failed: ${withoutValues(text)}`;
        throw error;
      }
    });
    if (!answer) throw noServer();
    request.about = `${about}, ${answer.count === 1 ? "1 row" : `${answer.count} rows`}: ${withoutValues(text) || "nothing"}`;
    return { ...answer, ms: clock.elapsed() - began };
  });
}

const noServer = () => refuse(422, "clusters are simulated here: no server listens, and there is nothing to query");

/** What the server says about a query is for the page alone: it may quote values. */
function failed({ message, details: { isUnderstood: _, ...details } }: StatementFailed): Refusal {
  return new Refusal(422, { error: message, ...details });
}

// Routes outside of the interface: rollouts, which clients report and anyone may read, and the history as JSON lines.
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { fleetTag, phaseTag } from "../../api/fleetTags.ts";
import type { Context } from "../context.ts";
import { results, type Member } from "../history/entry.ts";
import { refuse } from "../refusal.ts";
import { appOf } from "../rules/find.ts";
import { read } from "../validation/read.ts";
import { rolloutsPath } from "./app.ts";
import { updateIn, urnIn } from "./audit.ts";
import { visibleHistory } from "./historyRights.ts";
import { isShown } from "../history/entry.ts";
import { requireRole } from "../rules/roles.ts";

const text = (most: number) => z.string().max(most);
const nullable = (most: number) => text(most).nullable().default(null);

/** What a client says about a rollout of a fleet. */
const report = z.strictObject({
  fleet: text(200).min(1),
  strategy: nullable(40),
  from: nullable(500),
  to: nullable(500),
  phase: z.enum(["rolling out", "rolling back"]),
  result: z.enum(results).nullable().default(null),
  reason: nullable(4000),
});

/** Rollouts in one answer. */
const mostRollouts = 200;
/** Entries that are read at a time. */
const entriesAtATime = 1000;
/** Members of a fleet that are noted at the beginning of its rollout. */
const mostMembers = 1000;

const rolloutsQuery = z.strictObject({
  app: text(200).optional(),
  fleet: text(200).optional(),
  machine: text(200).optional(),
  before: z.coerce.number<string>().int().min(0).optional(),
  limit: z.coerce.number<string>().int().min(1).max(mostRollouts).default(50),
});

const historyQuery = z.strictObject({
  app: text(200).optional(),
  /** RFC 3339. */
  since: z.iso.datetime({ offset: true }).optional(),
  /** Number of an entry: those after it. */
  after: z.coerce.number<string>().int().min(0).default(0),
});

/** The Machines that a fleet has now. */
function membersOf({ store }: Context, app: string, fleet: string): readonly Member[] {
  return store.all<{ machine: string; name: string; region: string }>(
    `SELECT id AS machine, name, region FROM machines WHERE app = ? AND destroyed_at IS NULL
       AND metadata ->> '$."${fleetTag}"' = ? AND coalesce(metadata ->> '$."${phaseTag}"', 'serving') = 'serving'
     ORDER BY name LIMIT ${mostMembers}`,
    app,
    fleet,
  );
}

/** Adds the routes. Watching must not change what is seen: the request log has none of them. */
export function addHistoryRoutes(app: FastifyInstance, context: Context): void {
  const { history, clock } = context;
  if (history.isOff) return;
  const quiet = { config: { unrecorded: true as const } };

  app.put("/local/apps/:app_name/rollouts", quiet, (request, reply) => {
    const { caller, headers, params } = request;
    requireRole(caller, "deploy");
    if (request.session) throw refuse(403, "unauthorized");
    const found = appOf({ context, caller, params: params as Readonly<Record<string, unknown>> });
    const { fleet, ...said } = read(report, request.body);
    const update = updateIn(headers["pulumi-update"]);
    if (update === null)
      throw refuse(400, "the header pulumi-update is missing: it names the run of Pulumi that the rollout belongs to");
    history.hear(update);
    history.add({
      ...{ kind: "rollout", at: clock.now(), org: caller.slug, app: found.name, machine: null, fleet, ...said, update },
      ...{ token: caller.id, tokenName: caller.name, urn: urnIn(headers["pulumi-urn"]) },
      members: said.result === null ? membersOf(context, found.id, fleet) : [],
    });
    return reply.status(204).send();
  });

  app.get(rolloutsPath, quiet, async ({ caller, query }: FastifyRequest, reply) => {
    const { app: name, ...rest } = read(rolloutsQuery, query);
    const rollouts = await history.rollouts({ ...rest, org: caller.slug, only: visibleHistory(context, caller, name) });
    return reply.header("cache-control", "no-store").send({ rollouts, now: clock.now() });
  });

  app.get<{ Params: { rollout_id: string } }>(
    `${rolloutsPath}/:rollout_id`,
    quiet,
    async ({ caller, params }, reply) => {
      const found = await history.rollout(caller.slug, params.rollout_id);
      if (!found || !isShown(visibleHistory(context, caller), found.app, found.began))
        throw refuse(404, "rollout not found");
      return reply.header("cache-control", "no-store").send({ ...found, now: clock.now() });
    },
  );

  app.get("/local/history", quiet, ({ caller, query }, reply) => {
    const { app: name, since, after } = read(historyQuery, query);
    const only = visibleHistory(context, caller, name);
    const from = since === undefined ? 0 : Date.parse(since);
    const of = { org: caller.slug, only, since: from, limit: entriesAtATime };
    async function* lines(): AsyncGenerator<string> {
      for (let last = after; ;) {
        const found = await history.entries({ ...of, after: last });
        if (found.length > 0) yield `${found.map((entry) => JSON.stringify(entry)).join("\n")}\n`;
        if (found.length < entriesAtATime) return;
        last = found.at(-1)?.seq ?? last;
      }
    }
    return reply.type("application/x-ndjson").send(Readable.from(lines()));
  });
}

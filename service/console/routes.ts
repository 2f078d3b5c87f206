// The routes of the console besides its page: what the views show, and the stream of changes. Changes of objects go through the
// interface itself.
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Context } from "../context.ts";
import { declaredFault, type Faults } from "../faults/faults.ts";
import type { Audit } from "../http/audit.ts";
import type { Proxy } from "../proxy/proxy.ts";
import { refuse } from "../refusal.ts";
import { validated } from "../../api/validated.ts";
import { problemText } from "../validation/validate.ts";
import { appView, groupsIn } from "./app.ts";
import type { Asker } from "./ask.ts";
import { Changes } from "./changes.ts";
import { clusterView } from "./cluster.ts";
import { Costly } from "./costly.ts";
import { eventsQuery, sendChanges } from "./events.ts";
import { faultsView } from "./faultView.ts";
import { insideView, machineView, versionView } from "./machine.ts";
import { windowOf, windowQuery } from "./machines.ts";
import { overviewOf } from "./overview.ts";
import { addPage } from "./page.ts";
import { requestsAfter } from "./requests.ts";

/** The parts of a service that the console shows. */
export interface ConsoleOptions {
  readonly context: Context;
  readonly audit: Audit;
  readonly faults: Faults;
  readonly proxy: Proxy | undefined;
  /** Identifies this run of the service. */
  readonly run: string;
  /** Whether a request may see and change the faults. */
  readonly mayFault: (request: FastifyRequest) => boolean;
  /** Whether the session of a request is still valid. */
  readonly isValid: (request: FastifyRequest) => boolean;
}

const requestsQuery = z.strictObject({ after: z.coerce.number<string>().int().min(0).default(0) });

/** Parses a query or a body, or refuses it with its field, what it got and what is allowed. */
function read<S extends z.ZodType>(schema: S, value: unknown): z.infer<S> {
  const { success, data, error } = validated(schema, value);
  if (success) return data;
  const [issue] = error.issues;
  if (issue?.code === "unrecognized_keys") throw refuse(400, `unknown ${[...issue.path, issue.keys[0]].join(".")}`);
  throw refuse(400, issue ? problemText(schema, issue, value) : "invalid request");
}

/** Adds the console. Returns what must be told of each commit. */
export function addConsole(app: FastifyInstance, options: ConsoleOptions): Changes {
  const { context, audit, faults, proxy, run, mayFault, isValid } = options;
  const changes = new Changes(context);
  const costly = new Costly();
  const closing = new AbortController();
  app.addHook("preClose", (done) => {
    closing.abort();
    done();
  });
  audit.onAdd(() => {
    changes.happened("requests");
    if (!faults.none) changes.happened("faults");
  });
  faults.onChange(() => changes.happened("faults"));
  addPage(app);

  const quiet = { config: { unrecorded: true as const } };
  const get = (
    path: string,
    answer: (asker: Asker, request: FastifyRequest, params: Readonly<Record<string, string>>) => unknown,
  ): void => {
    app.get(`/console/api/${path}`, quiet, async (request, reply) => {
      const asker = { context, caller: request.caller };
      const found = await answer(asker, request, request.params as Readonly<Record<string, string>>);
      // It may have read changes of other requests that are not durable yet.
      if (context.store.unsettled) await context.store.unsettled;
      return reply.header("cache-control", "no-store").send(found);
    });
  };

  const scope = ({ org, app: only }: Asker["caller"]): string => `${org}/${only ?? ""}`;
  get("overview", (asker) => costly.answer(`overview ${scope(asker.caller)}`, () => overviewOf(asker)));
  get("apps/:app_name", (asker, _, { app_name = "" }) =>
    appView(asker, app_name, audit, async (app) => (await proxy?.addressesOf(app)) ?? []),
  );
  get("apps/:app_name/groups", (asker, _, { app_name = "" }) =>
    costly.answer(`groups ${scope(asker.caller)} ${app_name}`, () => groupsIn(asker, app_name)),
  );
  get("apps/:app_name/machines", (asker, { query }, { app_name = "" }) =>
    costly.answer(`machines ${scope(asker.caller)} ${app_name} ${JSON.stringify(query)}`, () =>
      windowOf(asker, app_name, read(windowQuery, query)),
    ),
  );
  get("apps/:app_name/machines/:machine_id", (asker, _, params) => machineView(asker, machineIn(params)));
  get("apps/:app_name/machines/:machine_id/inside", (asker, _, params) => insideView(asker, machineIn(params)));
  get("apps/:app_name/machines/:machine_id/versions/:version", (asker, _, params) =>
    versionView(asker, machineIn(params), params["version"] ?? ""),
  );
  get("clusters/:cluster_id", (asker, _, { cluster_id = "" }) => clusterView(asker, cluster_id));
  get("requests", (asker, { query }) => requestsAfter(audit, asker, read(requestsQuery, query).after));
  get("faults", (_, request) => faultsView(faults, audit, mayFault(request)));

  const requireFaults = (request: FastifyRequest): void => {
    if (!mayFault(request))
      throw refuse(
        403,
        "faults need the admin listener (start --admin) and a session opened by machines-service console",
      );
  };
  app.post("/console/api/faults", quiet, (request, reply) => {
    requireFaults(request);
    const [id] = faults.add(read(declaredFault, request.body));
    return reply.status(201).send({ id });
  });
  app.delete<{ Params: { id: string } }>("/console/api/faults/:id", quiet, (request, reply) => {
    requireFaults(request);
    if (!faults.remove(request.params.id)) throw refuse(404, "no such fault");
    return reply.status(204).send();
  });

  app.get("/console/events", quiet, (request, reply) => {
    const asker = { context, caller: request.caller };
    const { topics } = read(eventsQuery, request.query);
    return sendChanges(reply, {
      asker,
      topics,
      changes,
      run,
      isValid: () => isValid(request),
      closing: closing.signal,
    });
  });
  return changes;
}

const machineIn = ({ app_name = "", machine_id = "" }: Readonly<Record<string, string>>) => ({ app_name, machine_id });

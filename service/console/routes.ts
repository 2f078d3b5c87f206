// The routes of the console besides its page: what the views show, and the stream of changes. Changes of objects go through the
// interface itself.
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Context } from "../context.ts";
import { declaredFault, type Faults } from "../faults/faults.ts";
import type { Audit } from "../http/audit.ts";
import type { Proxy } from "../proxy/proxy.ts";
import { refuse } from "../refusal.ts";
import { read } from "../validation/read.ts";
import { appOf } from "../rules/find.ts";
import type { AppRow } from "../store/rows.ts";
import type { Usage } from "../usage/usage.ts";
import { appView } from "./app.ts";
import type { Asker } from "./ask.ts";
import { Changes } from "./changes.ts";
import { clusterView } from "./cluster.ts";
import { Costly, type Work } from "../time/costly.ts";
import { eventsQuery, sendChanges } from "./events.ts";
import { faultsView } from "./faultView.ts";
import { insideView, linesView, machineView, versionView } from "./machine.ts";
import { groupsOf, windowOf, windowQuery } from "./machines.ts";
import { overviewOf } from "./overview.ts";
import { addPage } from "./page.ts";
import { Pages } from "./pages.ts";
import { momentQuery, pastMachineView, pastView, type Past } from "./past.ts";
import { requestsAfter } from "./requests.ts";
import { rolloutsToSearch, searchQuery, searchView } from "./search.ts";
import { Stacks } from "./stacks.ts";
import { clusterUsage, machineUsage, trafficQuery, trafficUsage, usageQuery } from "./usage.ts";
import type { RequestLog } from "./types.ts";
import { appsParameter } from "../store/tokens.ts";

/** The parts of a service that the console shows. */
export interface ConsoleOptions {
  readonly context: Context;
  readonly audit: Audit;
  readonly faults: Faults;
  readonly proxy: Proxy | undefined;
  readonly usage: Usage;
  /** Identifies this run of the service. */
  readonly run: string;
  /** The store at past moments, if it has a log. */
  readonly past: Past | undefined;
  /** Whether a request may see and change the faults. */
  readonly mayFault: (request: FastifyRequest) => boolean;
  /** Whether the session of a request is still valid. */
  readonly isValid: (request: FastifyRequest) => boolean;
}

type Params = Readonly<Record<string, string>>;

/** A request for a view. */
interface Asking<Q> {
  readonly asker: Asker;
  readonly params: Params;
  readonly query: Q;
  readonly request: FastifyRequest;
}

const noQuery = z.strictObject({});
const requestsQuery = z.strictObject({
  after: z.coerce.number<string>().int().min(0).default(0),
  /** The run of the service that `after` is of; that of another run is no number of this one. */
  run: z.string().max(100).optional(),
});

/** Adds the console. Returns what must be notified of each commit. */
export function addConsole(app: FastifyInstance, options: ConsoleOptions): Changes {
  const { context, audit, faults, proxy, usage, run, past, mayFault, isValid } = options;
  const changes = new Changes(context);
  const pages = new Pages();
  const stacks = new Stacks();
  const costly = new Costly(() => context.turns.next());
  const closing = new AbortController();
  app.addHook("preClose", (done) => {
    closing.abort();
    done();
  });
  audit.onAdd((entry) => {
    changes.answered(entry);
    stacks.hear(entry);
    // The last hit of a fault switches it off.
    if (!faults.none || entry.faults.length > 0) changes.faultsChanged();
  });
  faults.onChange(() => changes.faultsChanged());
  context.history.onStored((orgs) => changes.stored(orgs));
  context.waits.onListed((machine) => changes.seenOf(machine));
  addPage(app);

  const quiet = { config: { unrecorded: true as const } };
  const get = <Q extends z.ZodType>(path: string, query: Q, answer: (asking: Asking<z.infer<Q>>) => unknown): void => {
    app.get(`/console/api/${path}`, quiet, async (request, reply) => {
      const params = request.params as Params;
      const asker = { context, caller: request.caller };
      const found = await answer({ asker, params, query: read(query, request.query), request });
      // It may have read changes of other requests that are not durable yet.
      if (context.store.unsettled) await context.store.unsettled;
      return reply.header("cache-control", "no-store").send(found);
    });
  };
  const commits = (): number | undefined => (context.store.unsettled ? undefined : changes.commits);
  /** The overview says what ends soon, and what has waited for long. */
  const minutes = (): string | undefined => {
    const number = commits();
    return number === undefined ? undefined : `${number} ${Math.floor(context.clock.now() / 60_000)}`;
  };
  const stamps = { store: commits, "store and minute": minutes, more: undefined } as const;
  /** An answer that may be expensive; callers with the same rights share it. `of` says what it depends on. */
  const shared = <Q, T extends object>(
    of: keyof typeof stamps,
    { asker, request }: Asking<Q>,
    answer: (work: Work) => T | Promise<T>,
  ) => {
    const rights = [asker.caller.org, appsParameter(asker.caller), asker.caller.network, mayFault(request)];
    const name = JSON.stringify([...rights, request.url]);
    return costly.answer(name, answer, stamps[of]);
  };
  const getCostly = <Q extends z.ZodType>(
    of: keyof typeof stamps,
    path: string,
    query: Q,
    answer: (asking: Asking<z.infer<Q>>, work: Work) => object | Promise<object>,
  ): void => get(path, query, (asking) => shared(of, asking, (work) => answer(asking, work)));
  const appIn = ({ asker, params }: Pick<Asking<unknown>, "asker" | "params">): string =>
    appOf({ ...asker, params }).id;
  const addresses = async (of: AppRow) => (await proxy?.addressesOf(of)) ?? [];

  getCostly("store and minute", "overview", noQuery, ({ asker }, work) => overviewOf(asker, work));
  getCostly("more", "apps/:app_name", noQuery, ({ asker, params }, work) =>
    appView(asker, params["app_name"] ?? "", addresses, work),
  );
  getCostly("store", "apps/:app_name/groups", noQuery, async (asking, work) => ({
    groups: await groupsOf(asking.asker, appIn(asking), work),
  }));
  getCostly("store", "apps/:app_name/machines", windowQuery, (asking, work) =>
    windowOf(asking.asker, appIn(asking), asking.query, work),
  );
  const ofMachine = "apps/:app_name/machines/:machine_id";
  getCostly("more", ofMachine, noQuery, ({ asker, params }) => machineView(asker, machineIn(params)));
  get(`${ofMachine}/inside`, noQuery, ({ asker, params }) => insideView(asker, machineIn(params)));
  get(`${ofMachine}/lines`, noQuery, ({ asker, params }) => linesView(asker, machineIn(params)));
  get(`${ofMachine}/versions/:version`, noQuery, ({ asker, params }) =>
    versionView(asker, machineIn(params), params["version"] ?? ""),
  );
  get(`${ofMachine}/usage`, usageQuery, ({ asker, params, query }) =>
    machineUsage(asker, machineIn(params), query.hours, usage),
  );
  get("apps/:app_name/usage", trafficQuery, ({ asker, params, query }) =>
    trafficUsage(asker, params["app_name"] ?? "", query, proxy !== undefined),
  );
  get("clusters/:cluster_id/usage", usageQuery, ({ asker, params, query }) =>
    clusterUsage(asker, params["cluster_id"] ?? "", query.hours),
  );
  if (past) {
    get("apps/:app_name/past", momentQuery, (asking) => {
      const { asker, params, query } = asking;
      // Waiting for the store of that moment is no work for others.
      return past.read(query.at, (before) =>
        shared("more", asking, (work) => pastView(asker, before, params["app_name"] ?? "", work)),
      );
    });
    get("apps/:app_name/past/machines/:machine_id", momentQuery, ({ asker, params, query }) => {
      const { app_name, machine_id } = machineIn(params);
      return past.read(query.at, (before) => pastMachineView(asker, before, app_name, machine_id));
    });
  }
  get("clusters/:cluster_id", noQuery, ({ asker, params: { cluster_id: id = "" } }) =>
    clusterView(asker, id, stacks.ofCluster(asker.caller.slug, id)),
  );
  getCostly("more", "requests", requestsQuery, async ({ asker, query }, work): Promise<RequestLog> => {
    const { after, run: known = run } = query;
    return { run, ...(await requestsAfter(audit, asker, known === run ? after : 0, work)) };
  });
  get("search", searchQuery, async (asking) => {
    const { asker, query } = asking;
    // Waiting for the history is no work for others.
    const rollouts = await rolloutsToSearch(asker);
    return shared("more", asking, (work) => searchView(asker, query.q, { audit, stacks, rollouts }, work));
  });
  getCostly("more", "faults", noQuery, ({ request }, work) => faultsView(faults, audit, mayFault(request), work));

  const requireFaults = (request: FastifyRequest): void => {
    if (!mayFault(request))
      throw refuse(
        403,
        "faults need the admin listener (start --admin) and a session opened by machines-service console",
      );
  };
  // Changes of faults are recorded, unlike what the views read.
  const recorded = (operation: string) => ({ config: { operation } });
  app.post("/console/api/faults", recorded("console.addFault"), (request, reply) => {
    requireFaults(request);
    const fault = read(declaredFault, request.body);
    const [id] = faults.add(fault);
    request.about = `${id} ${JSON.stringify(fault)}`;
    return reply.status(201).send({ id });
  });
  app.delete<{ Params: { id: string } }>(
    "/console/api/faults/:id",
    recorded("console.removeFault"),
    (request, reply) => {
      requireFaults(request);
      const { id } = request.params;
      const fault = faults.planned.find((one) => one.id === id)?.fault;
      if (!faults.remove(id)) throw refuse(404, "no such fault");
      request.about = `${id} ${JSON.stringify(fault)}`;
      return reply.status(204).send();
    },
  );

  app.get("/console/events", quiet, (request, reply) => {
    const asker = { context, caller: request.caller };
    const { topics } = read(eventsQuery, request.query);
    return sendChanges(reply, {
      asker,
      topics,
      changes,
      pages,
      isOperator: request.session?.isOperator === true,
      run,
      isValid: () => isValid(request),
      closing: closing.signal,
    });
  });
  return changes;
}

const machineIn = ({ app_name = "", machine_id = "" }: Params) => ({ app_name, machine_id });

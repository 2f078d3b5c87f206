// Routes outside of the interface, about Machines that really run: where an App can be opened, and what its Machines write.
import { once } from "node:events";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Context } from "../context.ts";
import { findMachine, subjectOf } from "../lifecycle/machines.ts";
import type { Proxy } from "../proxy/proxy.ts";
import { refuse } from "../refusal.ts";
import { appOf, machineOf } from "../rules/find.ts";
import type { AppRow } from "../store/rows.ts";
import type { LogLine, LogQuery, Runtime } from "../runtime/runtime.ts";
import { problemText } from "../validation/validate.ts";
import { validated } from "../../api/validated.ts";

/** Pause between two looks for new Machines while their logs are followed. */
const newMachines = 500;

/** Whether the token of a client that follows logs is still valid is checked this often, and before each line. */
const checkEvery = 15_000;

/** Lines that wait for the client. */
const mostAhead = 10_000;

const logsQuery = z.strictObject({
  machine: z.string().optional(),
  /** RFC 3339. */
  since: z.iso.datetime().optional(),
  lines: z.coerce.number<string>().int().min(0).max(10_000).optional(),
  follow: z.enum(["true", "false"]).optional(),
});

type Logs = NonNullable<Runtime["logs"]>;

/** Adds the routes. `isValid` says whether the token or the session of a request still is. */
export function addLocalRoutes(
  app: FastifyInstance,
  context: Context,
  proxy: Proxy | undefined,
  isValid: (request: FastifyRequest) => boolean,
): void {
  const closing = new AbortController();
  app.addHook("preClose", (done) => {
    closing.abort();
    done();
  });
  const asking = ({ caller, params }: FastifyRequest) => ({
    context,
    caller,
    params: params as Readonly<Record<string, unknown>>,
  });

  app.get("/local/apps/:app_name/addresses", (request) => {
    const found = appOf(asking(request));
    if (!proxy) throw notReal(context);
    return addressesOf(proxy, found);
  });

  app.get("/local/apps/:app_name/logs", (request, reply) => {
    const { success, data, error } = validated(logsQuery, request.query);
    const [issue] = error?.issues ?? [];
    if (!success) throw refuse(400, issue ? problemText(logsQuery, issue, request.query) : "invalid query");
    const found = appOf(asking(request));
    const logs = context.runtime.logs?.bind(context.runtime);
    if (!logs) throw notReal(context);
    const { machine, since, lines, follow } = data;
    if (machine !== undefined) {
      const { params, ...rest } = asking(request);
      machineOf({ ...rest, params: { ...params, machine_id: machine } });
    }
    const gone = new AbortController();
    reply.raw.once("close", () => gone.abort());
    const query: LogQuery = {
      since: since === undefined ? undefined : Date.parse(since),
      lines,
      follow: follow === "true",
      signal: AbortSignal.any([gone.signal, closing.signal]),
    };
    const all = (): readonly string[] =>
      machine === undefined
        ? context.store
            .all<{ id: string }>("SELECT id FROM machines WHERE app = ? AND destroyed_at IS NULL", found.id)
            .map(({ id }) => id)
        : [machine];
    if (!query.follow) return send(reply, past(context, logs, all(), query));
    const check = (): void => {
      if (!isValid(request)) gone.abort();
      else if (!gone.signal.aborted) cancel = context.clock.after(checkEvery, check);
    };
    let cancel = context.clock.after(checkEvery, check);
    gone.signal.addEventListener("abort", () => cancel());
    const stream = followed(context, logs, all, query);
    return send(
      reply,
      whileValid(stream, () => isValid(request)),
    );
  });
}

const send = (reply: FastifyReply, lines: AsyncIterable<LogLine>): FastifyReply =>
  reply.type("application/x-ndjson").send(Readable.from(asText(lines)));

/** The lines until the first one that the client may no longer see. */
async function* whileValid(lines: AsyncIterable<LogLine>, isValid: () => boolean): AsyncGenerator<LogLine> {
  for await (const line of lines) {
    if (!isValid()) return;
    yield line;
  }
}

const addressesOf = async (proxy: Proxy, app: AppRow) => ({ addresses: await proxy.addressesOf(app) });

const notReal = ({ runtime }: Context) =>
  refuse(
    412,
    `failed_precondition: the ${runtime.name} runtime runs no programs; start the service with --runtime docker`,
  );

async function* asText(lines: AsyncIterable<LogLine>): AsyncGenerator<string> {
  for await (const line of lines) yield `${JSON.stringify(line)}\n`;
}

function linesOf(context: Context, logs: Logs, id: string, query: LogQuery): AsyncIterable<LogLine> | undefined {
  const machine = findMachine(context, id);
  return machine && logs(subjectOf(context, machine), query);
}

/** The lines so far of several Machines, by their time. */
async function* past(context: Context, logs: Logs, ids: readonly string[], query: LogQuery): AsyncGenerator<LogLine> {
  const all: LogLine[] = [];
  for (const id of ids) for await (const line of linesOf(context, logs, id, query) ?? []) all.push(line);
  all.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
  yield* query.lines === undefined ? all : all.slice(Math.max(0, all.length - query.lines));
}

/** The lines of several Machines as they come, also of Machines that are created later. */
async function* followed(
  context: Context,
  logs: Logs,
  all: () => readonly string[],
  query: LogQuery,
): AsyncGenerator<LogLine> {
  const { signal } = query;
  const lines: LogLine[] = [];
  const known = new Set<string>();
  const aborted = signal.aborted ? Promise.resolve() : once(signal, "abort");
  let came = (): void => {};
  const read = async (id: string, tail: number | undefined): Promise<void> => {
    try {
      for await (const line of linesOf(context, logs, id, { ...query, lines: tail }) ?? []) {
        lines.push(line);
        came();
        // The client may read slowly.
        while (lines.length > mostAhead && !signal.aborted) await sleep(newMachines);
      }
    } catch (error) {
      known.delete(id);
      if (!signal.aborted) context.log.warn({ err: error, machine: id }, "the logs of a Machine cannot be followed");
    }
  };
  // All lines of a later Machine are new.
  for (let tail = query.lines; !signal.aborted; tail = undefined) {
    for (const id of all())
      if (!known.has(id)) {
        known.add(id);
        void read(id, tail);
      }
    const next = lines.shift();
    if (next) yield next;
    else await Promise.race([new Promise<void>((resolve) => (came = resolve)), sleep(newMachines), aborted]);
  }
}

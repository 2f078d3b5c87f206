// Routes outside of the interface, about Machines that really run: where an App can be opened, and what its Machines write.
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Context } from "../context.ts";
import type { Proxy } from "../proxy/proxy.ts";
import { refuse } from "../refusal.ts";
import { appOf, machineOf } from "../rules/find.ts";
import type { AppRow } from "../store/rows.ts";
import { problemText } from "../validation/validate.ts";
import { validated } from "../../api/validated.ts";
import { followedLines, pastLines, type NamedLine, type Reading, type Source } from "./logLines.ts";

/** Whether the token of a client that follows logs is still valid is checked this often, and before each line. */
const checkEvery = 15_000;

const logsQuery = z.strictObject({
  machine: z.string().optional(),
  /** RFC 3339. */
  since: z.iso.datetime().optional(),
  /** The last lines over all Machines. Without a limit, one request could take more memory than the service has. */
  lines: z.coerce.number<string>().int().min(0).max(10_000).default(1000),
  follow: z.enum(["true", "false"]).optional(),
});

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
    const query: Reading["query"] = {
      since: since === undefined ? undefined : Date.parse(since),
      lines,
      follow: follow === "true",
      signal: AbortSignal.any([gone.signal, closing.signal]),
    };
    const sources = (): readonly Source[] =>
      context.store.all<{ id: string; name: string }>(
        `SELECT id, name FROM machines WHERE app = ?1 AND ${machine === undefined ? "destroyed_at IS NULL" : "id = ?2"}`,
        ...(machine === undefined ? [found.id] : [found.id, machine]),
      );
    const reading: Reading = { context, logs, sources, query };
    if (!query.follow) return send(reply, pastLines(reading));
    const check = (): void => {
      if (!isValid(request)) gone.abort();
      else if (!gone.signal.aborted) cancel = context.clock.after(checkEvery, check);
    };
    let cancel = context.clock.after(checkEvery, check);
    gone.signal.addEventListener("abort", () => cancel());
    return send(
      reply,
      whileValid(followedLines(reading), () => isValid(request)),
    );
  });
}

const send = (reply: FastifyReply, lines: AsyncIterable<NamedLine>): FastifyReply =>
  reply.type("application/x-ndjson").send(Readable.from(asText(lines)));

/** The lines until the first one that the client may no longer see. */
async function* whileValid(lines: AsyncIterable<NamedLine>, isValid: () => boolean): AsyncGenerator<NamedLine> {
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

async function* asText(lines: AsyncIterable<NamedLine>): AsyncGenerator<string> {
  for await (const line of lines) yield `${JSON.stringify(line)}\n`;
}

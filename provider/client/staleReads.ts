// A read of a Machine that shows an older version than this client has written is stale: it is repeated, and never saved (F15).
import { isObject } from "../../api/schema.ts";
import type { Clock } from "./clock.ts";
import { MachinesError } from "./errors.ts";
import { isRead, type Handler, type Request } from "./handler.ts";
import { Pending, poll } from "./poll.ts";

/** Milliseconds for which reads may be stale (docs/interface.md#organization-lists), and between two reads. */
const staleAtMost = 5000;
const pause = 250;

/** The latest written versions of Machines, by id. Versions are ULIDs, so they sort by time (docs/interface.md#versions). */
export class StaleReads {
  readonly #latest = new Map<string, string>();

  /** Notes the version in the answer of a write. */
  note(machineId: string, version: string): void {
    if (!this.isStale(machineId, version)) this.#latest.set(machineId, version);
  }

  /** Whether an answer with this version is older than the last write. */
  isStale(machineId: string, version: string | undefined): boolean {
    const latest = this.#latest.get(machineId);
    return latest !== undefined && version?.length === latest.length && version < latest;
  }
}

/** Repeats stale reads, for five seconds at most. */
export const retryStaleReads =
  (staleReads: StaleReads, clock: Clock, next: Handler<unknown>): Handler<unknown> =>
  async (request) => {
    const { operation, args, url, deadline } = request;
    const since = clock.now();
    const read = async (): Promise<unknown> => {
      const answer = await next(request);
      const machine = machineIn(request, answer);
      // A version that is requested by name is the one that is returned.
      if (!machine || args["version"] !== undefined) return answer;
      if (!isRead(request)) staleReads.note(machine.id, machine.version);
      if (!isRead(request) || !staleReads.isStale(machine.id, machine.version)) return answer;
      if (clock.now() - since >= staleAtMost)
        throw new MachinesError(
          "api",
          `${operation.id}: ${operation.method} ${url} shows version ${machine.version} of Machine ${machine.id}, and not the later one that this run has written; try again`,
        );
      return new Pending();
    };
    return poll({ api: { clock, deadline } }, read, { first: pause, longest: pause });
  };

/** The Machine in an answer, with its version under either of its names (docs/interface.md#machine). */
function machineIn(
  { operation }: Request,
  answer: unknown,
): { readonly id: string; readonly version: string } | undefined {
  if (!/^machines\.(create|update|get)$/.test(operation.id) || !isObject(answer)) return undefined;
  const { id, version = answer["instanceId"] } = answer;
  return typeof id === "string" && typeof version === "string" ? { id, version } : undefined;
}

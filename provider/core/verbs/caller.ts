// How the engine's requests reach the handlers of a type: with the client, the time limit and the run.
import { formatDuration, parseDuration } from "../../../api/schema.ts";
import type { Api } from "../../client/api.ts";
import type { Deadline } from "../../client/clock.ts";
import type { Place } from "../../client/existence.ts";
import type { Checker } from "../previewChecks.ts";
import { contextOf, type Call, type Resource, type Values } from "../resource.ts";
import type { Run } from "../run/run.ts";
import type { Views } from "../views.ts";

/** How a binding calls core. */
export interface Caller {
  /** The client. Reading it throws if the configuration is invalid. */
  readonly api: Api;
  readonly run: Run;
  readonly progress: (message: string) => void;
  readonly warn: (message: string) => void;
  /** Removes the secrets that the run knows from a text. */
  readonly hideSecrets?: ((text: string) => string) | undefined;
  /** Tells a preview what the update will do. */
  readonly note?: (message: string) => void;
  readonly signal?: AbortSignal | undefined;
  /** Seconds that the engine allows; undefined if it set no limit. */
  readonly timeoutSeconds?: number | undefined;
  /** Whether the endpoint or the organization differs from those of the last run (R14). */
  readonly hasMoved?: boolean;
  /** Whether the engine may pass configuration that the last `up` stored. */
  readonly hasStoredConfiguration?: boolean;
  /** See {@link Call.marksInputsOnly}. */
  readonly marksInputsOnly?: boolean;
  /** The views of the resource; undefined if the engine has none, or the binding cannot report them. */
  readonly views?: Views | undefined;
}

/** The App or cluster that contains an object, or is the object. */
export const placeOf = ({ within }: Resource, parts: Record<string, string>): Place => ({
  kind: within.kind,
  name: parts[within.part] ?? "",
});

/** The arguments of a handler, bound to the time limit of its verb. */
export function callOf(
  resource: Resource,
  verb: "create" | "read" | "update" | "delete",
  values: Values,
  caller: Caller,
): Call {
  const given = verb === "read" ? undefined : contextOf(values).timeouts?.[verb];
  const nanoseconds = given === undefined ? undefined : parseDuration(given);
  const seconds =
    caller.timeoutSeconds ??
    (nanoseconds === undefined ? (verb === "read" ? 2 : (resource.minutes[verb] ?? 10)) * 60 : nanoseconds / 1e9);
  const { api, run, progress, warn, signal, hideSecrets, marksInputsOnly, views } = caller;
  const deadline: Deadline = {
    at: api.clock.now() + seconds * 1000,
    allowed: formatDuration(seconds * 1e9),
    // Far more than any operation needs; it ends an operation that would never stop.
    requests: Math.ceil(1000 + 4 * seconds),
    signal,
  };
  return { api: api.within(deadline), run, progress, warn, hideSecrets, marksInputsOnly, views };
}

/** How a caller asks the service for what only it knows. */
export const asking = ({ api, run, warn, signal }: Caller): Checker => ({
  api: api.within({ ...api.deadline, signal }),
  run,
  warn,
});

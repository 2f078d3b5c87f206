// Objects that exist although a step after their creation or change failed.
import { MachinesError, messageForUser } from "../../client/errors.ts";
import { PartialStateError } from "../partialState.ts";
import { programLines } from "../redaction.ts";
import { CONTEXT, contextOf, type Resource, type Values } from "../resource.ts";
import type { Run } from "../run/run.ts";

/** The object exists, but a step after its creation or change failed: the engine's "initialization failed". */
export class InitializationFailed extends MachinesError {
  readonly id: string;
  readonly properties: Values;
  readonly reasons: readonly string[];
  /** The former names of properties, see {@link PartialStateError}. */
  readonly movedFrom: Readonly<Record<string, string>>;
  constructor(id: string, properties: Values, cause: Error) {
    super(cause instanceof MachinesError ? cause.code : "api", messageForUser(cause), { cause });
    this.name = "InitializationFailed";
    this.id = id;
    this.properties = { ...properties, [CONTEXT]: { ...contextOf(properties), unfinished: true } };
    this.reasons = [this.message];
    this.movedFrom = cause instanceof PartialStateError ? cause.movedFrom : {};
  }
}

/** Remembers the state that an error reports to the engine, so that a retry in this run continues from it (R13). */
export function reporting(
  run: Run,
  { name }: Resource,
  owner: string | undefined,
  failed: InitializationFailed,
): InitializationFailed {
  run.unfinished.note(name, owner, { id: failed.id, properties: failed.properties });
  return failed;
}

/** Removes the secrets of the run from what a failed program wrote, before a message ends with it. */
export async function quotingPrograms<T>(run: Run, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    for (let at = error; at instanceof MachinesError; at = at.cause) at.lastLines = programLines(run, at.lastLines);
    throw error;
  }
}

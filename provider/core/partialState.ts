// The error of a handler that has created or changed its object and failed afterwards.
import { MachinesError, mayHaveWorked, messageOf } from "../client/errors.ts";

/** The object exists, and a step after its creation or change failed. The engine keeps its id, and the next `up` repairs it. */
export class PartialStateError extends MachinesError {
  /** The known state of the object, in the form that create returns. */
  readonly live: Record<string, unknown>;
  /** Properties of `live` whose value the state before had under another name, and that name: the value stays as secret as there. */
  readonly movedFrom: Readonly<Record<string, string>>;
  /** Names of parts that a request whose answer was lost may have written or removed. `live` has none of them. */
  readonly unsure: readonly string[];
  constructor(
    live: Record<string, unknown>,
    cause: unknown,
    movedFrom: Readonly<Record<string, string>> = {},
    unsure: readonly string[] = [],
  ) {
    super(cause instanceof MachinesError ? cause.code : "api", messageOf(cause), { cause });
    this.name = "PartialStateError";
    this.live = live;
    this.movedFrom = movedFrom;
    this.unsure = unsure;
  }

  override replacedBy(failed: MachinesError): MachinesError {
    return new PartialStateError(this.live, failed, this.movedFrom, this.unsure);
  }
}

/** A state that does not say what a change wrote. */
interface UnsureState {
  readonly live: Record<string, unknown>;
  readonly unsure: readonly string[];
}

/**
 * Sends a change that the client repeats by itself.
 * @throws PartialStateError with the state that `known` returns, if it failed and may have been applied
 */
export async function orUnsure<T>(send: () => Promise<T>, known: () => UnsureState): Promise<T> {
  try {
    return await send();
  } catch (error) {
    // With a wrong configuration, nothing was sent.
    if (!(error instanceof MachinesError) || error.code === "configuration" || !mayHaveWorked(error)) throw error;
    const { live, unsure } = known();
    throw new PartialStateError(live, error, {}, [...new Set(unsure)]);
  }
}

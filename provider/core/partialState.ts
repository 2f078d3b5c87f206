// The error of a handler that has created or changed its object and failed afterwards.
import { MachinesError, messageOf } from "../client/errors.ts";

/** The object exists, and a step after its creation or change failed. The engine keeps its id, and the next `up` repairs it. */
export class PartialStateError extends MachinesError {
  /** The known state of the object, in the form that create returns. */
  readonly live: Record<string, unknown>;
  constructor(live: Record<string, unknown>, cause: unknown) {
    super(cause instanceof MachinesError ? cause.code : "api", messageOf(cause), { cause });
    this.name = "PartialStateError";
    this.live = live;
  }

  override replacedBy(failed: MachinesError): MachinesError {
    return new PartialStateError(this.live, failed);
  }
}

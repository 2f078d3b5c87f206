// The error of a handler that has created or changed its object and failed afterwards.
import { MachinesError, messageOf } from "../client/errors.ts";

/** The object exists, and a step after its creation or change failed. The engine keeps its id, and the next `up` repairs it. */
export class PartialStateError extends MachinesError {
  /** The known state of the object, in the form that create returns. */
  readonly live: Record<string, unknown>;
  /** Properties of `live` whose value the state before had under another name, and that name: the value stays as secret as there. */
  readonly movedFrom: Readonly<Record<string, string>>;
  constructor(live: Record<string, unknown>, cause: unknown, movedFrom: Readonly<Record<string, string>> = {}) {
    super(cause instanceof MachinesError ? cause.code : "api", messageOf(cause), { cause });
    this.name = "PartialStateError";
    this.live = live;
    this.movedFrom = movedFrom;
  }

  override replacedBy(failed: MachinesError): MachinesError {
    return new PartialStateError(this.live, failed, this.movedFrom);
  }
}

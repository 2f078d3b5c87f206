// The parameters of the lifecycle suite (lifecycle.ts) for a type.
import type { Values } from "../../provider/core/resource.ts";
import type { TestService } from "./startService.ts";

/** One change of inputs and its expected result. */
interface Change {
  /** The new inputs; undefined removes an input from the program. */
  readonly set: Values;
  readonly expect: "same" | "update" | "replace" | "delete-replace" | "refused" | "no request";
  /** Only the diff is tested: the suite lacks what the change requires. */
  readonly diffOnly?: boolean;
  /** Properties that the state must have afterwards. */
  readonly then?: Values;
}

/** A change by others to the object outside the program. */
interface Interference {
  /** Makes the change; `state` is the object's. */
  readonly interfere: (service: TestService, state: Values) => Promise<unknown>;
  /** The refreshed properties; undefined for one that is gone. */
  readonly shows: Values;
}

/** The parameters of the suite for a type. */
export interface Life {
  /** Creates the objects that the resource requires and returns its first inputs. */
  readonly given: (service: TestService) => Promise<Values>;
  readonly changes: (service: TestService) => Promise<readonly Change[]>;
  /** One for every input that can be changed outside. An update repairs each. */
  readonly drift?: readonly Interference[];
  /** Inputs that cannot be changed outside, or whose change is accepted, with the reason. */
  readonly steady?: Readonly<Record<string, string>>;
  /** How many objects one creation of it creates in the service; 1 when left out. */
  readonly creates?: number;
  /**
   * A read finds it after a deletion too. `untouched`: a deletion has no effect on the service. `changed`: a request
   * deletes what belongs to it.
   */
  readonly survives?: "untouched" | "changed";
  /** The refusal of an import, if the type cannot be imported. */
  readonly importRefused?: RegExp;
  /** The error after a lost answer to its creation, if a read cannot show whether it was applied. */
  readonly ambiguous?: RegExp;
  /** Inputs that no read returns (R7), absent from an import. */
  readonly writeOnly?: readonly string[];
  /** Inputs that a creation or their change sends as they are, and that only the request shows. */
  readonly sent?: readonly string[];
}

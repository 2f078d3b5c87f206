// Whether the id of a state proves that an object is this stack's. A copy of a state has the same ids, and so has a stack that a
// resource was moved to.
import { backendId, backendIn } from "../../provider/core/backend.ts";
import { idsOfState, type StateResource } from "../stackState.ts";
import { stackText, type OtherStacks } from "./otherStacks.ts";

/** The facts that a proof needs. */
export interface ProofFacts {
  /** The backend; undefined if that is unknown. */
  readonly backend: string | undefined;
  /** Why nothing proves an owner, as a sentence without its end; undefined if every other stack is known. */
  readonly gap: string | undefined;
  /** The stack that has an id of a state, too, as a text. */
  readonly sharedBy: ReadonlyMap<string, string>;
}

/** Collects them. */
export const proofFacts = (
  besides: readonly StateResource[],
  others: OtherStacks,
  backend = backendId(),
): ProofFacts => ({
  backend,
  gap: gapOf(others, backend),
  sharedBy: new Map([
    ...[...idsOfState(besides)].map((id) => [id, "a stack given with --also"] as const),
    ...others.stacks.flatMap(({ stack, resources }) =>
      [...idsOfState(resources)].map((id) => [id, stackText(stack)] as const),
    ),
  ]),
});

function gapOf({ areKnown, unread }: OtherStacks, backend: string | undefined): string | undefined {
  if (!areKnown) return "an export does not say which other stacks there are";
  if (unread.length > 0) return `${unread.map(stackText).join(" and ")} could not be read, and may own it`;
  return backend === undefined ? "the backend of this stack could not be identified" : undefined;
}

/**
 * Why an id of this state does not prove that the object with it is this stack's, as a sentence without its end; undefined if it
 * does. A copy of a state gets an id of its own only in another backend.
 */
export function doubtAbout({ backend, gap, sharedBy }: ProofFacts, stateId: string | undefined): string | undefined {
  if (gap !== undefined) return gap;
  const other = stateId === undefined ? undefined : sharedBy.get(stateId);
  if (other !== undefined) return `${other} has the same state, copied or moved, and may own it`;
  const from = backendIn(stateId);
  if (from === backend) return undefined;
  return from === undefined
    ? "an older version created it, which did not note the backend"
    : "its state is from another backend, where it may live on";
}

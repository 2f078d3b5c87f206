// Determines who created an object, as far as known: Machines carry a tag, nothing else can.
import type { Journal } from "../../provider/core/journal.ts";
import { bareId } from "../../api/names.ts";
import { opTag, ownerTag, stackTag } from "../../provider/machines/create.ts";
import type { ListedObject } from "../../provider/core/listing.ts";
import type { ListedType } from "./listing.ts";
import { byOwner, idsOfState, type StateResource } from "../stackState.ts";

/**
 * - `stack`: its tags are those of a resource and of the state of this stack, or of an interrupted run on this computer;
 * - `perhaps`: only one of them is, and the rest is unknown;
 * - `namesake`: its tags are those of a resource of this name, and of another state: another backend or organization has it;
 * - `pulumi`: it has tags, but none of this stack;
 * - `other`: it has none;
 * - `unknown`: it can carry none.
 *
 * Only this stack can have an object that is `stack`; another client may own all others.
 */
export type CreatedBy = "stack" | "perhaps" | "namesake" | "pulumi" | "other" | "unknown";

/** The known provenance of an object. */
export interface Provenance {
  readonly createdBy: CreatedBy;
  /** The resource for which it was, or may have been, created. */
  readonly urn: string | undefined;
  /** The ids in the state for that resource. */
  readonly inState: readonly string[];
  /** Resource whose place in the program the object may take: its creation was interrupted, and the state holds nothing for it. */
  readonly pending: StateResource | undefined;
  /** The same in a sentence. */
  readonly remark: string | undefined;
}

/** The facts from which provenance is derived. */
export interface Provenances {
  readonly endpoint: string;
  readonly owners: ReadonlyMap<string, readonly StateResource[]>;
  /** Ids of this stack's state. */
  readonly states: ReadonlySet<string>;
  /** Owners in states of other stacks. */
  readonly others: ReadonlyMap<string, readonly StateResource[]>;
  readonly pending: readonly StateResource[];
  readonly intents: Pick<Journal, "find">;
}

/** Collects them, of a place with these resources in a state with all those. */
export const provenancesOf = (
  endpoint: string,
  own: readonly StateResource[],
  { all, besides }: { readonly all: readonly StateResource[]; readonly besides: readonly StateResource[] },
  intents: Pick<Journal, "find">,
): Provenances => ({
  endpoint,
  owners: byOwner(own),
  states: idsOfState(all),
  others: byOwner(besides),
  pending: own.filter(({ isPending }) => isPending),
  intents,
});

const unknown: Provenance = {
  createdBy: "unknown",
  urn: undefined,
  inState: [],
  pending: undefined,
  remark: undefined,
};
const nextUp = "The next up on this computer adopts it, or destroys it if the program wants something else by then.";

/** The provenance of an object. */
export function provenanceIn(origins: Provenances, kind: ListedType, found: ListedObject): Provenance {
  if (kind.type === "Machine") return tagged(origins, found.metadata ?? {});
  const [pending] = origins.pending.filter((inStateText) => mayHaveCreated(inStateText, kind, found));
  if (!pending) return unknown;
  const { urn } = pending;
  return { ...unknown, urn, pending, remark: `The creation of ${urn} was interrupted, and may have created it.` };
}

function tagged(origins: Provenances, metadata: Readonly<Record<string, string>>): Provenance {
  const { [ownerTag]: owner, [opTag]: op, [stackTag]: state } = metadata;
  if (owner === undefined) return { ...unknown, createdBy: op === undefined ? "other" : "pulumi" };
  const intent = origins.intents.find(owner);
  const isBegun = intent !== undefined && intent.op === op && intent.endpoint === origins.endpoint;
  const [first, ...more] = origins.owners.get(owner) ?? [];
  if (first) return ofResource(origins, [first, ...more], state, isBegun);
  if (isBegun)
    return { ...unknown, createdBy: "stack", remark: `An interrupted run on this computer created it. ${nextUp}` };
  if (state !== undefined && origins.states.has(state))
    return { ...unknown, createdBy: "perhaps", remark: formerResource };
  const [other] = origins.others.get(owner) ?? [];
  const remark = other
    ? `It was created for ${other.urn}.`
    : "Another stack created it, or a resource that is no longer in this one.";
  return { ...unknown, createdBy: "pulumi", urn: other?.urn, remark };
}

const formerResource =
  "This stack created it for a resource that it no longer has, or has under another name: that may be in another stack by now.";
const otherState =
  "Its state is another one: that of a stack of the same name in another backend or organization, or one that is lost.";

/**
 * The provenance of an object with the tag of resources of this stack. Stacks of the same name have the same tags;
 * their states have ids.
 */
function ofResource(
  { states }: Provenances,
  mine: readonly [StateResource, ...StateResource[]],
  state: string | undefined,
  isBegun: boolean,
): Provenance {
  const [{ urn }] = mine;
  const inState = mine.flatMap(({ id }) => (id === "" ? [] : [id]));
  const isProved = isBegun || (state !== undefined && states.has(state));
  // After interrupted first creates, a state has no id yet.
  const isOpen = state === undefined || states.size === 0 || inState.length === 0;
  const createdBy = isProved ? "stack" : isOpen ? "perhaps" : "namesake";
  const inStateText =
    inState.length > 0
      ? `for which ${isProved ? "the" : "this"} state holds ${inState.join(" and ")}`
      : "whose creation was interrupted";
  const why =
    createdBy === "namesake"
      ? `It was created for a resource ${urn}. ${otherState}`
      : `It was created for ${urn}, ${inStateText}${isProved ? "" : `; for this stack or for one of the same name in another backend or organization, which cannot be distinguished`}.`;
  const isWaiting = inState.length === 0 && createdBy !== "namesake";
  return {
    createdBy,
    urn,
    inState,
    pending: isWaiting ? mine[0] : undefined,
    remark: isBegun ? `${why} ${nextUp}` : why,
  };
}

/** Whether all that the inputs of a creation say about an object is so. */
function mayHaveCreated({ type, inputs }: StateResource, kind: ListedType, { parts, name }: ListedObject): boolean {
  if (type !== kind.type) return false;
  const properties = { ...(name === undefined ? {} : { name }), ...parts };
  const known = Object.entries(properties).filter(([key]) => typeof inputs[key] === "string");
  return known.length > 0 && known.every(([key, value]) => bareId(String(inputs[key])) === value);
}

// Determines who created an object, as far as known: Machines carry a tag, nothing else can.
import { backendIn } from "../../provider/core/backend.ts";
import type { Journal } from "../../provider/core/journal.ts";
import { bareId } from "../../api/names.ts";
import { dynamicOwnerOf, ownerOf } from "../../provider/core/owner.ts";
import { opTag, ownerTag, stackTag } from "../../provider/machines/create.ts";
import type { ListedObject } from "../../provider/core/listing.ts";
import type { ListedType } from "./listing.ts";
import { doubtAbout, proofFacts, type ProofFacts } from "./proof.ts";
import { stackText, type OtherStacks } from "./otherStacks.ts";
import { byOwner, idsOfState, type StackState, type StateResource } from "../stackState.ts";

/**
 * - `stack`: it has the tags of a resource and of the state of this stack in this backend, and no other stack has that state;
 * - `perhaps`: only one of these tags matches, or the state was copied or moved, or not every stack could be read;
 * - `namesake`: it has the tags of a resource of this name in another state, of another backend or organization;
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
  /** The other stack of the backend that it belongs to. */
  readonly belongsTo: string | undefined;
  /** The ids in the state for that resource. */
  readonly inState: readonly string[];
  /** The resource that can adopt the object: its creation was interrupted, and the state has no object for it. */
  readonly pending: StateResource | undefined;
  /** The resource of this stack that the tag names, and that the state no longer has: the object can be imported as it. */
  readonly former: FormerResource | undefined;
  /** The same as a sentence. */
  readonly remark: string | undefined;
}

/** A resource that is no longer in the state. */
export interface FormerResource {
  readonly urn: string;
  readonly name: string;
  /** URN of its parent component; undefined if that was the stack. */
  readonly parent: string | undefined;
}

/** The facts from which provenance is derived. */
export interface Provenances extends ProofFacts {
  readonly endpoint: string;
  readonly owners: ReadonlyMap<string, readonly StateResource[]>;
  /** Ids of this stack's state. */
  readonly states: ReadonlySet<string>;
  /** Owners in states of stacks that the user gave. */
  readonly besides: ReadonlyMap<string, readonly StateResource[]>;
  /** Owners in states of the other stacks of the backend, and the ids of these states. */
  readonly others: readonly {
    readonly stack: string;
    readonly owners: ReadonlyMap<string, readonly StateResource[]>;
    readonly states: ReadonlySet<string>;
  }[];
  readonly pending: readonly StateResource[];
  /** Names of this stack and its project; undefined if the state is empty. */
  readonly stack: string | undefined;
  readonly project: string | undefined;
  /** URNs of the components that contain resources of this stack. */
  readonly components: readonly string[];
  readonly intents: Pick<Journal, "find">;
}

/** Resources that are not those of the place. */
interface Around {
  readonly state: StackState;
  /** Those of stacks that the user gave. */
  readonly besides: readonly StateResource[];
  /** The other stacks of the backend. */
  readonly others: OtherStacks;
}

/** Collects them, of a place with these resources in a state with all those. */
export const provenancesOf = (
  endpoint: string,
  own: readonly StateResource[],
  { state: { stack, project, resources: all }, besides, others }: Around,
  intents: Pick<Journal, "find">,
): Provenances => ({
  endpoint,
  ...proofFacts(besides, others),
  owners: byOwner(own),
  states: idsOfState(all),
  besides: byOwner(besides),
  others: others.stacks.map((other) => ({
    stack: other.stack,
    owners: byOwner(other.resources),
    states: idsOfState(other.resources),
  })),
  pending: own.filter(({ isPending }) => isPending),
  stack,
  project,
  components: [...new Set(all.flatMap(({ parent }) => parent ?? []))],
  intents,
});

const unknown: Provenance = {
  createdBy: "unknown",
  urn: undefined,
  belongsTo: undefined,
  inState: [],
  pending: undefined,
  former: undefined,
  remark: undefined,
};
const nextUp = "The next up on this computer adopts it, or destroys it if the program wants something else by then.";

/** The provenance of an object. */
export function provenanceIn(origins: Provenances, kind: ListedType, found: ListedObject): Provenance {
  if (kind.isTagged) return tagged(origins, kind, found);
  const [pending] = origins.pending.filter((inStateText) => mayHaveCreated(inStateText, kind, found));
  if (!pending) return unknown;
  const { urn } = pending;
  return { ...unknown, urn, pending, remark: `The creation of ${urn} was interrupted, and may have created it.` };
}

function tagged(origins: Provenances, { type }: ListedType, { metadata = {}, name }: ListedObject): Provenance {
  const { [ownerTag]: owner, [opTag]: op, [stackTag]: state } = metadata;
  if (owner === undefined) return { ...unknown, createdBy: op === undefined ? "other" : "pulumi" };
  const intent = origins.intents.find(owner);
  const isBegun = intent !== undefined && intent.op === op && intent.endpoint === origins.endpoint;
  const [first, ...more] = origins.owners.get(owner) ?? [];
  if (first) return ofResource(origins, [first, ...more], state, isBegun);
  for (const { stack, owners, states } of origins.others) {
    const [resource] = owners.get(owner) ?? [];
    // Both stacks have the id of a state that was copied or moved.
    const isItsState = state !== undefined && states.has(state) && !origins.states.has(state);
    if (!resource && !isItsState) continue;
    const made = resource ? `for ${resource.urn}` : "for a resource that it no longer has";
    const remark = `It belongs to ${stackText(stack)}, which created it ${made}.`;
    return { ...unknown, createdBy: "pulumi", urn: resource?.urn, belongsTo: stack, remark };
  }
  if (isBegun) {
    const isProved = state !== undefined && origins.states.has(state) && doubtAbout(origins, state) === undefined;
    return isProved
      ? { ...unknown, createdBy: "stack", remark: `An interrupted run on this computer created it. ${nextUp}` }
      : { ...unknown, createdBy: "perhaps", remark: begunSomewhere };
  }
  if (state !== undefined && origins.states.has(state)) {
    const former = formerOf(origins, type, owner, name);
    const what = former
      ? `${former.urn}, which its state no longer has`
      : "a resource that its state no longer has under the same name";
    const doubt = doubtAbout(origins, state);
    const remark =
      doubt === undefined
        ? `This stack created it for ${what}.`
        : `Perhaps this stack created it for ${what}; ${doubt}.`;
    return { ...unknown, createdBy: "perhaps", urn: former?.urn, former, remark };
  }
  const [other] = origins.besides.get(owner) ?? [];
  const remark = other
    ? `It was created for ${other.urn}.`
    : "Another stack created it, or a resource that is no longer in this one.";
  return { ...unknown, createdBy: "pulumi", urn: other?.urn, remark };
}

/**
 * The resource that an owner stands for. The tag holds only a hash, so the names from which the Machine's own was generated,
 * such as `worker` of `worker-cef12ed`, are tried.
 */
function formerOf(origins: Provenances, type: string, owner: string, machine = ""): FormerResource | undefined {
  const { stack, project, components } = origins;
  if (stack === undefined || project === undefined) return undefined;
  const parts = machine.split("-");
  for (let length = parts.length; length > 0; length--) {
    const name = parts.slice(0, length).join("-");
    for (const parent of [undefined, ...components]) {
      const types = parent === undefined ? "" : `${parent.split("::")[2] ?? ""}$`;
      const urn = `urn:pulumi:${stack}::${project}::${types}machines:index:${type}::${name}`;
      const inProgram = { project, stack, type, parent: parent ?? "", name };
      if (owner === ownerOf(urn) || owner === dynamicOwnerOf(inProgram)) return { urn, name, parent };
    }
  }
  return undefined;
}

const begunSomewhere =
  "An interrupted run on this computer created it, for this stack or for another one. The next up of that stack adopts it, or destroys it if the program wants something else by then.";
const otherState =
  "Its state is another one: that of a stack of the same name in another backend or organization, or one that is lost.";

const undecided =
  "for this stack or for one of the same name in another backend or organization, which cannot be distinguished";

/**
 * The provenance of an object with the tag of resources of this stack. Stacks of the same name have the same tags; the ids
 * in their states differ.
 */
function ofResource(
  origins: Provenances,
  mine: readonly [StateResource, ...StateResource[]],
  state: string | undefined,
  isBegun: boolean,
): Provenance {
  const [{ urn }] = mine;
  const inState = mine.flatMap(({ id }) => (id === "" ? [] : [id]));
  const { states, backend } = origins;
  const isKnown = state !== undefined && (states.has(state) || isBegun);
  const doubt = isKnown ? doubtAbout(origins, state) : undecided;
  const from = backendIn(state);
  const isElsewhere = from !== undefined && backend !== undefined && from !== backend;
  // After interrupted first creates, a state has no id yet.
  const isOpen = state === undefined || (!isElsewhere && (states.size === 0 || inState.length === 0));
  const createdBy = doubt === undefined ? "stack" : isKnown || isOpen ? "perhaps" : "namesake";
  const inStateText =
    inState.length > 0
      ? `for which ${doubt === undefined ? "the" : "this"} state holds ${inState.join(" and ")}`
      : "whose creation was interrupted";
  const why =
    createdBy === "namesake"
      ? `It was created for a resource ${urn}. ${otherState}`
      : `It was created for ${urn}, ${inStateText}${doubt === undefined ? "" : `; ${doubt}`}.`;
  const isWaiting = inState.length === 0 && createdBy !== "namesake";
  return {
    createdBy,
    urn,
    belongsTo: undefined,
    inState,
    pending: isWaiting ? mine[0] : undefined,
    former: undefined,
    remark: isBegun ? `${why} ${nextUp}` : why,
  };
}

/** Whether an object matches all inputs of a creation. */
function mayHaveCreated({ type, inputs }: StateResource, kind: ListedType, { parts, name }: ListedObject): boolean {
  if (type !== kind.type) return false;
  const properties = { ...(name === undefined ? {} : { name }), ...parts };
  const known = Object.entries(properties).filter(([key]) => typeof inputs[key] === "string");
  return known.length > 0 && known.every(([key, value]) => bareId(String(inputs[key])) === value);
}

// Who made an object, as far as it tells: Machines carry a tag, nothing else can.
import type { Journal } from "../../provider/core/journal.ts";
import { bareId } from "../../api/names.ts";
import { opTag, ownerTag, stackTag } from "../../provider/machines/create.ts";
import type { ListedObject } from "../../provider/core/listing.ts";
import type { ListedType } from "./listing.ts";
import { byOwner, idsOfState, type Held } from "../stackState.ts";

/**
 * - `stack`: its tags are those of a resource and of the state of this stack, or of an interrupted run on this computer;
 * - `perhaps`: only one of them is, and nothing tells the rest;
 * - `namesake`: its tags are those of a resource of this name, and of another state: another backend or organization has it;
 * - `pulumi`: it has tags, of which this stack has none;
 * - `other`: it has none;
 * - `unknown`: it can carry none.
 *
 * Nobody but this stack can have what is `stack`; all else may be somebody's.
 */
export type CreatedBy = "stack" | "perhaps" | "namesake" | "pulumi" | "other" | "unknown";

/** What is known of who made an object. */
export interface Provenance {
  readonly createdBy: CreatedBy;
  /** The resource it was, or may have been, made for. */
  readonly urn: string | undefined;
  /** What the state holds for that resource. */
  readonly inState: readonly string[];
  /** Resource whose place in the program the object may take: its creation was interrupted, and the state holds nothing for it. */
  readonly pending: Held | undefined;
  /** The same in a sentence. */
  readonly remark: string | undefined;
}

/** What origins are judged by. */
export interface Provenances {
  readonly endpoint: string;
  readonly owners: ReadonlyMap<string, readonly Held[]>;
  /** Ids of this stack's state. */
  readonly states: ReadonlySet<string>;
  /** Owners in states of other stacks. */
  readonly others: ReadonlyMap<string, readonly Held[]>;
  readonly pending: readonly Held[];
  readonly intents: Pick<Journal, "find">;
}

/** Collects them, of a place with these resources in a state with all those. */
export const provenancesOf = (
  endpoint: string,
  own: readonly Held[],
  { all, besides }: { readonly all: readonly Held[]; readonly besides: readonly Held[] },
  intents: Pick<Journal, "find">,
): Provenances => ({
  endpoint,
  owners: byOwner(own),
  states: idsOfState(all),
  others: byOwner(besides),
  pending: own.filter(({ isPending }) => isPending),
  intents,
});

const nobody: Provenance = { createdBy: "unknown", urn: undefined, inState: [], pending: undefined, remark: undefined };
const takenUp = "The next up on this computer adopts it, or destroys it if the program wants something else by then.";

/** Who made an object. */
export function provenanceIn(origins: Provenances, kind: ListedType, found: ListedObject): Provenance {
  if (kind.type === "Machine") return tagged(origins, found.metadata ?? {});
  const [pending] = origins.pending.filter((held) => mayHaveMade(held, kind, found));
  if (!pending) return nobody;
  const { urn } = pending;
  return { ...nobody, urn, pending, remark: `The creation of ${urn} was interrupted, and may have created it.` };
}

function tagged(origins: Provenances, metadata: Readonly<Record<string, string>>): Provenance {
  const { [ownerTag]: owner, [opTag]: op, [stackTag]: state } = metadata;
  if (owner === undefined) return { ...nobody, createdBy: op === undefined ? "other" : "pulumi" };
  const intent = origins.intents.find(owner);
  const isBegun = intent !== undefined && intent.op === op && intent.endpoint === origins.endpoint;
  const [first, ...more] = origins.owners.get(owner) ?? [];
  if (first) return ofResource(origins, [first, ...more], state, isBegun);
  if (isBegun)
    return { ...nobody, createdBy: "stack", remark: `An interrupted run on this computer created it. ${takenUp}` };
  if (state !== undefined && origins.states.has(state)) return { ...nobody, createdBy: "perhaps", remark: formerly };
  const [other] = origins.others.get(owner) ?? [];
  const remark = other
    ? `It was made for ${other.urn}.`
    : "Another stack made it, or a resource that is in this one no longer.";
  return { ...nobody, createdBy: "pulumi", urn: other?.urn, remark };
}

const formerly =
  "This stack made it for a resource that it has no longer, or under another name: that may be in another stack by now.";
const elsewhere =
  "Its state is another one: that of a stack of the same name in another backend or organization, or one that is lost.";

/** Who made what carries the tag of resources of this stack. Stacks of the same name have the same tags; their states have ids. */
function ofResource(
  { states }: Provenances,
  mine: readonly [Held, ...Held[]],
  state: string | undefined,
  isBegun: boolean,
): Provenance {
  const [{ urn }] = mine;
  const inState = mine.flatMap(({ id }) => (id === "" ? [] : [id]));
  const isProved = isBegun || (state !== undefined && states.has(state));
  // After interrupted first creates, a state has no id yet.
  const isOpen = state === undefined || states.size === 0 || inState.length === 0;
  const createdBy = isProved ? "stack" : isOpen ? "perhaps" : "namesake";
  const held =
    inState.length > 0
      ? `for which ${isProved ? "the" : "this"} state holds ${inState.join(" and ")}`
      : "whose creation was interrupted";
  const why =
    createdBy === "namesake"
      ? `It was made for a resource ${urn}. ${elsewhere}`
      : `It was made for ${urn}, ${held}${isProved ? "" : `; for this stack or for one of the same name in another backend or organization, which nothing tells apart`}.`;
  const isWaiting = inState.length === 0 && createdBy !== "namesake";
  return {
    createdBy,
    urn,
    inState,
    pending: isWaiting ? mine[0] : undefined,
    remark: isBegun ? `${why} ${takenUp}` : why,
  };
}

/** Whether all that the inputs of a creation say about an object is so. */
function mayHaveMade({ type, inputs }: Held, kind: ListedType, { parts, name }: ListedObject): boolean {
  if (type !== kind.type) return false;
  const said = { ...(name === undefined ? {} : { name }), ...parts };
  const known = Object.entries(said).filter(([key]) => typeof inputs[key] === "string");
  return known.length > 0 && known.every(([key, value]) => bareId(String(inputs[key])) === value);
}

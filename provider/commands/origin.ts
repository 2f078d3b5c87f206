// Who made an object, as far as it tells: Machines carry a tag, nothing else can.
import type { Intents } from "../client/intents.ts";
import { bareId } from "../core/values.ts";
import { opTag, ownerTag, stackTag } from "../resources/machineCreate.ts";
import type { Found, Kind } from "./kinds.ts";
import { byOwner, idsOfState, type Held } from "./stackState.ts";

/**
 * - `stack`: its tags are those of a resource and of the state of this stack, or of a run on this computer that was cut off;
 * - `perhaps`: only one of them is, and nothing tells the rest;
 * - `namesake`: its tags are those of a resource of this name, and of another state: another backend or organization has it;
 * - `pulumi`: it has tags, of which this stack has none;
 * - `other`: it has none;
 * - `unknown`: it can carry none.
 *
 * Nobody but this stack can have what is `stack`; all else may be somebody's.
 */
export type MadeBy = "stack" | "perhaps" | "namesake" | "pulumi" | "other" | "unknown";

/** What is known of who made an object. */
export interface Origin {
  readonly madeBy: MadeBy;
  /** The resource it was, or may have been, made for. */
  readonly urn: string | undefined;
  /** What the state holds for that resource. */
  readonly inState: readonly string[];
  /** Resource whose place in the program the object may take: its creation was cut off, and the state holds nothing for it. */
  readonly pending: Held | undefined;
  /** The same in a sentence. */
  readonly remark: string | undefined;
}

/** What origins are judged by. */
export interface Origins {
  readonly endpoint: string;
  readonly owners: ReadonlyMap<string, readonly Held[]>;
  /** Ids of this stack's state. */
  readonly states: ReadonlySet<string>;
  /** Owners in states of other stacks. */
  readonly others: ReadonlyMap<string, readonly Held[]>;
  readonly pending: readonly Held[];
  readonly intents: Pick<Intents, "find">;
}

/** Collects them, of a place with these resources in a state with all those. */
export const originsOf = (
  endpoint: string,
  own: readonly Held[],
  { all, besides }: { readonly all: readonly Held[]; readonly besides: readonly Held[] },
  intents: Pick<Intents, "find">,
): Origins => ({
  endpoint,
  owners: byOwner(own),
  states: idsOfState(all),
  others: byOwner(besides),
  pending: own.filter(({ isPending }) => isPending),
  intents,
});

const nobody: Origin = { madeBy: "unknown", urn: undefined, inState: [], pending: undefined, remark: undefined };
const takenUp = "The next up on this computer takes it over, or destroys it when it is not what is wanted by then.";

/** Who made an object. */
export function originIn(origins: Origins, kind: Kind, found: Found): Origin {
  if (kind.type === "Machine") return tagged(origins, found.metadata ?? {});
  const [pending] = origins.pending.filter((held) => mayHaveMade(held, kind, found));
  if (!pending) return nobody;
  const { urn } = pending;
  return { ...nobody, urn, pending, remark: `The creation of ${urn} was cut off, and may have made it.` };
}

function tagged(origins: Origins, metadata: Readonly<Record<string, string>>): Origin {
  const { [ownerTag]: owner, [opTag]: op, [stackTag]: state } = metadata;
  if (owner === undefined) return { ...nobody, madeBy: op === undefined ? "other" : "pulumi" };
  const intent = origins.intents.find(owner);
  const isBegun = intent !== undefined && intent.op === op && intent.endpoint === origins.endpoint;
  const [first, ...more] = origins.owners.get(owner) ?? [];
  if (first) return ofResource(origins, [first, ...more], state, isBegun);
  if (isBegun)
    return { ...nobody, madeBy: "stack", remark: `A run on this computer that was cut off made it. ${takenUp}` };
  if (state !== undefined && origins.states.has(state)) return { ...nobody, madeBy: "perhaps", remark: formerly };
  const [other] = origins.others.get(owner) ?? [];
  const remark = other
    ? `It was made for ${other.urn}.`
    : "Another stack made it, or a resource that is in this one no longer.";
  return { ...nobody, madeBy: "pulumi", urn: other?.urn, remark };
}

const formerly =
  "This stack made it for a resource that it has no longer, or under another name: that may be in another stack by now.";
const elsewhere =
  "Its state is another one: that of a stack of the same name in another backend or organization, or one that is lost.";

/** Who made what carries the tag of resources of this stack. Stacks of the same name have the same tags; their states have ids. */
function ofResource(
  { states }: Origins,
  mine: readonly [Held, ...Held[]],
  state: string | undefined,
  isBegun: boolean,
): Origin {
  const [{ urn }] = mine;
  const inState = mine.flatMap(({ id }) => (id === "" ? [] : [id]));
  const isProved = isBegun || (state !== undefined && states.has(state));
  // Where the first creations of a state were cut off, it holds no id yet.
  const isOpen = state === undefined || states.size === 0 || inState.length === 0;
  const madeBy = isProved ? "stack" : isOpen ? "perhaps" : "namesake";
  const held =
    inState.length > 0
      ? `for which ${isProved ? "the" : "this"} state holds ${inState.join(" and ")}`
      : "whose creation was cut off";
  const why =
    madeBy === "namesake"
      ? `It was made for a resource ${urn}. ${elsewhere}`
      : `It was made for ${urn}, ${held}${isProved ? "" : `; for this stack or for one of the same name in another backend or organization, which nothing tells apart`}.`;
  const isWaiting = inState.length === 0 && madeBy !== "namesake";
  return {
    madeBy,
    urn,
    inState,
    pending: isWaiting ? mine[0] : undefined,
    remark: isBegun ? `${why} ${takenUp}` : why,
  };
}

/** Whether all that the inputs of a creation say about an object is so. */
function mayHaveMade({ type, inputs }: Held, kind: Kind, { parts, name }: Found): boolean {
  if (type !== kind.type) return false;
  const said = { ...(name === undefined ? {} : { name }), ...parts };
  const known = Object.entries(said).filter(([key]) => typeof inputs[key] === "string");
  return known.length > 0 && known.every(([key, value]) => bareId(String(inputs[key])) === value);
}

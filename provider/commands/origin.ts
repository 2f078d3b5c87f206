// Who made an object, as far as it tells: Machines carry a tag, nothing else can.
import type { Intents } from "../client/intents.ts";
import { bareId } from "../core/values.ts";
import { opTag, ownerTag } from "../resources/machineCreate.ts";
import type { Found, Kind } from "./kinds.ts";
import { byOwner, type Held } from "./stackState.ts";

/**
 * - `stack`: its tag is that of a resource of this stack, or of a run on this computer that was cut off;
 * - `pulumi`: it has a tag, which no resource of this stack has;
 * - `other`: it has none;
 * - `unknown`: it can carry none.
 */
export type MadeBy = "stack" | "pulumi" | "other" | "unknown";

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
  /** Owners in states of other stacks. */
  readonly others: ReadonlyMap<string, readonly Held[]>;
  readonly pending: readonly Held[];
  readonly intents: Pick<Intents, "find">;
}

/** Collects them. */
export const originsOf = (
  endpoint: string,
  own: readonly Held[],
  besides: readonly Held[],
  intents: Pick<Intents, "find">,
): Origins => ({
  endpoint,
  owners: byOwner(own),
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

function tagged({ endpoint, owners, others, intents }: Origins, metadata: Readonly<Record<string, string>>): Origin {
  const { [ownerTag]: owner, [opTag]: op } = metadata;
  if (owner === undefined) return { ...nobody, madeBy: op === undefined ? "other" : "pulumi" };
  const intent = intents.find(owner);
  const isBegun = intent !== undefined && intent.op === op && intent.endpoint === endpoint;
  const mine = owners.get(owner) ?? [];
  const [first] = mine;
  if (!first && isBegun)
    return { ...nobody, madeBy: "stack", remark: `A run on this computer that was cut off made it. ${takenUp}` };
  if (!first) {
    const [other] = others.get(owner) ?? [];
    const remark = other
      ? `It was made for ${other.urn}.`
      : "Another stack made it, or a resource that is in this one no longer.";
    return { ...nobody, madeBy: "pulumi", urn: other?.urn, remark };
  }
  const inState = mine.flatMap(({ id }) => (id === "" ? [] : [id]));
  const why =
    inState.length > 0
      ? `It was made for ${first.urn}, for which the state holds ${inState.join(" and ")}.`
      : `It was made for ${first.urn}, whose creation was cut off.`;
  return {
    madeBy: "stack",
    urn: first.urn,
    inState,
    pending: inState.length > 0 ? undefined : first,
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

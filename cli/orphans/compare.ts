// Compares one service and organization with the state's objects there. Only reads.
import type { Api } from "../../provider/client/api.ts";
import { resources } from "../../provider/registry.ts";
import { isNotFound, messageOf } from "../../provider/client/errors.ts";
import { heldKeys, keysOf, secretsHeld } from "../stateIds.ts";
import { fewAtATime } from "../../provider/client/fewAtATime.ts";
import { rootNow, scopesOf, ofType, usedBy, type Scope, type ScopeSelection } from "./scopes.ts";
import {
  isDeletable,
  listedApps,
  listedClusters,
  listedInApp,
  listedInCluster,
  requestToShow,
  type ListedType,
} from "./listing.ts";
import { newPass, type ListedObject, type Pass } from "../../provider/core/listing.ts";
import { holderAmong, indexed, stackText, type IndexedStack, type OtherStack } from "./otherStacks.ts";
import { pathId } from "../../provider/core/ids.ts";
import { opTag, ownerTag, stackTag } from "../../provider/machines/create.ts";
import { provenanceIn, type Provenance, type Provenances } from "./provenance.ts";
import type { StateResource } from "../stackState.ts";

/** An object that is in no state. */
export interface Orphan extends Provenance {
  readonly kind: ListedType;
  /** In the form that `pulumi import` accepts. */
  readonly id: string;
  readonly name: string | undefined;
  readonly createdAt: string | undefined;
  /** The request that shows it, or the list that contains it. */
  readonly request: string;
  /** What distinguishes it from another object that takes its id. */
  readonly identity: string;
  /** Id of the Machine that mounts it. */
  readonly mountedBy: string | undefined;
  /** Whether to propose its deletion: it can be deleted, and it is proved that this stack owns it. */
  readonly isToDelete: boolean;
}

/** An object that another stack of the backend holds. */
export interface HeldElsewhere {
  readonly kind: ListedType;
  readonly id: string;
  readonly stack: string;
  /** Where that stack holds it, if its endpoint is another one, or is spelled differently. */
  readonly endpoint: string | undefined;
}

/** The result of a comparison. */
export interface Compared {
  readonly orphans: readonly Orphan[];
  /** Objects that other stacks of the backend hold. */
  readonly heldElsewhere: readonly HeldElsewhere[];
  /** Resources of the state whose objects no longer exist in the service. */
  readonly missing: readonly StateResource[];
  /** Parts that were deliberately not compared, and the reasons. */
  readonly notes: readonly string[];
  /** Parts that could not be compared, and the reasons. */
  readonly failures: readonly string[];
}

/** Facts known beforehand. */
export interface Known {
  /** Resources of the state at this endpoint. */
  readonly own: readonly StateResource[];
  /** All known resources, including those of other states. Their objects are no orphans. */
  readonly held: readonly StateResource[];
  /** The other stacks of the backend, and this one at other endpoints. Their objects are reported as theirs. */
  readonly others: readonly OtherStack[];
  readonly origins: Provenances;
}

/** @throws MachinesError if the endpoint or organization cannot be read at all */
export async function compare(api: Api, known: Known, wanted: ScopeSelection): Promise<Compared> {
  const failures: string[] = [];
  const kinds = allKinds.filter(
    (kind) =>
      (wanted.only.length === 0 || wanted.only.includes(kind.type)) &&
      (wanted.hasSnapshots || kind.isScheduled !== true),
  );
  const { holders, gone, roots } = await scopesOf(api, known.own, wanted, failures);
  const comparison = begin(api, known);
  const { heldElsewhere } = comparison;
  const everywhere = everyResource(known);
  // Objects of others may contain objects of these resources, which would be deleted with them.
  const used = usedBy(everywhere);
  const orphans = roots.flatMap(([kind, found]) =>
    kinds.includes(kind)
      ? orphansAmong(comparison, kind, found).filter(({ id }) => !used.has(`${kind.type} ${id}`))
      : [],
  );
  // Everything in a deleted App or cluster is deleted too.
  const missing = known.own.filter(
    (held) =>
      isTold(held) && gone.includes(held.id.split("/")[0] ?? "") && kinds.some(({ type }) => type === held.type),
  );
  const notes: string[] = [];
  await fewAtATime(4, holders, async (holder) => {
    const inside = kinds.filter((kind) => isIn(holder, kind));
    await Promise.all(
      inside.map(async (kind) => {
        try {
          const live = await kind.objects(comparison, holder.name);
          const hidden = kind.type === "Secret" ? secretsHeld(everywhere, holder.name).sealed : [];
          if (hidden.length === 0)
            orphans.push(...orphansAmong(comparison, kind, live).filter((one) => isOurs(holder, one)));
          else if (holder.isWhole) notes.push(hiddenSecrets(holder, hidden));
          missing.push(...(await missingAmong(comparison, kind, holder, live)));
        } catch (error) {
          failures.push(`${kind.type} in ${holder.noun} ${holder.name}: ${messageOf(error)}`);
        }
      }),
    );
  });
  return {
    orphans: orphans.sort(byTypeAndId),
    heldElsewhere: heldElsewhere.sort(byTypeAndId),
    missing: missing.sort(byTypeAndId),
    notes,
    failures,
  };
}

/** What is known of an object that was an orphan. `taken` is why it is none by now, as a sentence. */
export type Now = "gone" | { readonly taken: string } | HeldElsewhere | Orphan;

/** Looks at one orphan again. */
export async function lookAgain(api: Api, known: Known, { kind, id }: Pick<Orphan, "kind" | "id">): Promise<Now> {
  const comparison = begin(api, known);
  const isRoot = [listedApps, listedClusters].includes(kind);
  const root = isRoot ? await rootNow(api, kind, id) : undefined;
  const live = isRoot ? [root ?? []].flat() : await kind.objects(comparison, id.split("/")[0] ?? "").catch(noneIfGone);
  const found = live.find(({ parts }) => kind.id.render(parts) === id);
  // A list leaves out what belongs to a fleet.
  if (!found)
    return (await kind.exists?.(api, kind.id.parse(id))) === true ? { taken: "it is part of a fleet by now." } : "gone";
  if (isRoot && usedBy(everyResource(known)).has(`${kind.type} ${id}`))
    return { taken: "a stack has objects in it by now." };
  const [orphan] = orphansAmong(comparison, kind, [found]);
  return orphan ?? comparison.heldElsewhere[0] ?? { taken: "the stack holds it by now." };
}

const noneIfGone = (error: unknown): readonly ListedObject[] => {
  if (isNotFound(error)) return [];
  throw error;
};

const everyResource = ({ held, others }: Known): readonly StateResource[] => [
  ...held,
  ...others.flatMap(({ resources }) => resources),
];

const begin = (api: Api, known: Known): Comparing => ({
  ...newPass(api),
  known,
  keys: heldKeys(known.held),
  others: indexed(known.others),
  heldElsewhere: [],
});

/** One comparison: the lists and the known ids. */
interface Comparing extends Pass {
  readonly known: Known;
  readonly keys: ReadonlyMap<string, ReadonlySet<string>>;
  readonly others: readonly IndexedStack[];
  /** Where objects of these stacks are noted. */
  readonly heldElsewhere: HeldElsewhere[];
}

const allKinds: readonly ListedType[] = [listedApps, listedClusters, ...listedInApp, ...listedInCluster];

/** Names of the types that a comparison can be limited to. */
export const comparedTypes: readonly string[] = allKinds.map(({ type }) => type);

/** Whether the objects of a type can be listed in an App or a cluster. */
const isIn = ({ noun, isReady }: Scope, kind: ListedType): boolean =>
  noun === "App"
    ? listedInApp.includes(kind)
    : listedInCluster.includes(kind) && (isReady || kind.isListedEarly === true);

const isOurs = ({ isWhole }: Scope, { createdBy, urn }: Orphan): boolean =>
  isWhole || (createdBy !== "namesake" && (["stack", "perhaps"].includes(createdBy) || urn !== undefined));

const hiddenSecrets = ({ name }: Scope, sealed: readonly StateResource[]): string =>
  `The secrets of App ${name} are not compared: the state holds encrypted which of them ${sealed.map(({ urn }) => urn).join(" and ")} sets.`;

const typeOf = (one: { readonly kind: ListedType } | { readonly type: string }): string =>
  "kind" in one ? one.kind.type : one.type;

const byTypeAndId = (
  a: { readonly id: string } & ({ readonly kind: ListedType } | { readonly type: string }),
  b: typeof a,
): number => {
  const [left, right] = [a, b].map((one) => `${typeOf(one)} ${one.id}`) as [string, string];
  return left < right ? -1 : 1;
};

/** Whether to report the absence of its object: it belongs to this program, and was not configured to destroy itself. */
function isTold({ id, isExternal, type, inputs, outputs }: StateResource): boolean {
  if (id === "" || isExternal || resources[type]?.list?.isScheduled === true) return false;
  const { autoDestroy } = (inputs["config"] ?? {}) as { readonly autoDestroy?: unknown };
  return !(type === "Machine" && (autoDestroy === true || outputs["state"] === "destroyed"));
}

function orphansAmong(comparing: Comparing, kind: ListedType, live: readonly ListedObject[]): Orphan[] {
  const { api, known, keys, others, heldElsewhere } = comparing;
  return live.flatMap((found) => {
    const id = kind.id.render(found.parts);
    if (keysOf(kind.type, id).some((key) => keys.get(kind.type)?.has(key))) return [];
    const holder = holderAmong(others, { type: kind.type, id, endpoint: api.config.endpoint });
    if (holder) {
      heldElsewhere.push({ kind, id, ...holder });
      return [];
    }
    const { name, createdAt } = found;
    const mountedBy = found.mountedBy && machineId.render(found.mountedBy);
    const origin = inPlaceOf(comparing, id, provenanceIn(known.origins, kind, found));
    const remark = [origin.remark ?? [], mountedBy === undefined ? [] : `Machine ${mountedBy} mounts it.`].flat();
    const isToDelete = origin.createdBy === "stack" && isDeletable(kind);
    return [
      {
        ...{ kind, id, name, createdAt, mountedBy, isToDelete, ...origin },
        identity: identityOf(kind, found),
        request: requestToShow(kind, found.parts),
        remark: remark.length === 0 ? undefined : remark.join(" "),
      },
    ];
  });
}

/** A fleet is several Machines, of which a list shows one. */
function identityOf({ type }: ListedType, { identity, createdAt, metadata = {} }: ListedObject): string {
  const { [ownerTag]: owner, [stackTag]: state, [opTag]: op } = metadata;
  return JSON.stringify(type === "Fleet" ? [owner, state] : [identity, createdAt, owner, state, op]);
}

/** The provenance of an object in an App or a cluster. What carries no tag belongs to the stack that holds those. */
function inPlaceOf({ keys, others }: Comparing, id: string, origin: Provenance): Provenance {
  const [place = "", inside] = id.split("/");
  const holds = (held: typeof keys): boolean => placeTypes.some((type) => held.get(type)?.has(place));
  const other = others.find((one) => holds(one.keys));
  const isOpen = ["other", "unknown"].includes(origin.createdBy) && origin.urn === undefined;
  if (inside === undefined || !isOpen || holds(keys) || !other) return origin;
  const { stack } = other;
  return {
    ...origin,
    belongsTo: stack,
    remark: `${place} belongs to ${stackText(stack)}, which does not hold this: compare there, with --stack ${stack}.`,
  };
}

const machineId = pathId("app", "machineId");

const placeTypes = [listedApps.type, listedClusters.type];

/** Objects of the state that are missing from the list of their parent and from a second read too. */
async function missingAmong(
  { api, known }: Comparing,
  kind: ListedType,
  { name: holder }: Scope,
  live: readonly ListedObject[],
): Promise<StateResource[]> {
  const keysIn = (list: readonly ListedObject[]) =>
    new Set(list.flatMap(({ parts }) => keysOf(kind.type, kind.id.render(parts))));
  const lacks = (keys: ReadonlySet<string>, id: string) => !keysOf(kind.type, id).some((key) => keys.has(key));
  const listed = keysIn(live);
  const lacking = ofType(known.own, kind.type).filter(
    (held) => isTold(held) && held.id.startsWith(`${holder}/`) && lacks(listed, held.id),
  );
  if (lacking.length === 0) return [];
  const { exists } = kind;
  if (!exists) {
    const now = keysIn(await kind.objects(newPass(api), holder));
    return lacking.filter(({ id }) => lacks(now, id));
  }
  const found = await Promise.all(lacking.map(({ id, outputs }) => exists(api, kind.id.parse(id), outputs)));
  return lacking.filter((_, i) => found[i] !== true);
}

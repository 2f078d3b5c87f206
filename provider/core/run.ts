// What one run of the engine has said so far: which resources the program declares, what the state holds for them, and what
// this run created. A deletion is judged by it, because the engine does not say why it deletes (R11, R12, R13).
import { randomBytes } from "node:crypto";
import {
  isProtected,
  lossWithParent,
  mayLoseData,
  parentReplaced,
  protectedFrom,
  unseenReplacement,
} from "./dataLoss.ts";
import { contextOf, kindOf, type Claimant, type Problem, type Resource, type Values } from "./resource.ts";
import { bareId, UNKNOWN } from "./values.ts";

/** A resource that the program declares in this run: the engine has had its inputs checked. */
interface Declared {
  readonly resource: Resource;
  /** Its name in the program. */
  readonly name: string | undefined;
  /** Inputs as the program gives them now. */
  readonly inputs: Values;
  /** Inputs of what the state holds for it; undefined where the engine named none, as for a new or a forced one. */
  readonly before: Values | undefined;
  /** Id of what the state holds for it, once the engine has asked for a diff. */
  readonly id: string | undefined;
  /** Whether the engine replaces what the state holds. */
  readonly isReplaced: boolean;
  /** Id of what this run created for it. */
  readonly createdId: string | undefined;
  /** Owners it had before an alias gave it another name. The deletion of what it replaced then may still be pending. */
  readonly formerOwners: readonly string[];
}

/** What was reported to the engine although something after its creation or change failed. */
export interface Reported {
  readonly id: string;
  readonly properties: Values;
}

/** By owner. */
const declared = new Map<string, Declared>();
/** By type and owner. */
const reported = new Map<string, Reported>();
/** Apps and clusters that this run replaces, by kind and id; the kind alone where the engine did not say the id. */
const replacedParents = new Set<string>();
/** Ids of the state that were in what the engine said of it. */
const seenIds = new Set<string>();
/** The id that this run gave to a state of which it had seen none. */
let newId: string | undefined;

/** Forgets everything: another run begins in this process. */
export function forgetAll(): void {
  for (const known of [declared, reported, replacedParents, seenIds]) known.clear();
  newId = undefined;
}

/**
 * Notes which state a resource is in. Names do not tell: stacks of two backends, or of two organizations, may have the same
 * ones. So what is made notes an id in its state, and whatever is made after it in the same state notes the same one.
 */
export function rememberState(state: Values): void {
  const { stack } = contextOf(state);
  if (typeof stack === "string") seenIds.add(stack);
}

/**
 * The id of the state. Inputs never hold it: they are compared with a saved plan, and chance would break that. A state may come
 * to have several, where something is made before the run has seen any; each of them is its own.
 */
export function stackId(): string {
  const [seen] = seenIds;
  return seen ?? (newId ??= randomBytes(6).toString("hex"));
}

/** Whether an id is one of this state's, as far as this run was told of it. */
export const isOfThisState = (stack: string): boolean => seenIds.has(stack) || stack === newId;

const hasInputs = (values: Values): boolean => Object.keys(values).some((name) => !name.startsWith("__"));
const ofOwner = (owner: string | undefined): Declared | undefined =>
  owner === undefined ? undefined : declared.get(owner);
/**
 * The resources of the program that an object of the state may belong to. An alias may have given one of them another name
 * since, and the program may have given the former name to another one.
 */
const candidatesFor = (resource: Resource, id: string, state: Values): readonly Declared[] => {
  const { owner = "" } = contextOf(state);
  const candidates = [...declared].filter(([, one]) => one.resource === resource);
  return candidates
    .filter(([now, one]) => now === owner || one.id === id || one.formerOwners.includes(owner))
    .map(([, one]) => one);
};

/** The owners that a state tells of, but for the one that the resource has now. */
export const formerOwnersIn = (state: Values, owner: string | undefined): readonly string[] => {
  const { formerOwners = [], owner: last } = contextOf(state);
  const all = last === undefined ? formerOwners : [...formerOwners, last];
  return [...new Set(all)].filter((one) => one !== owner);
};

/** Notes a resource of the program, and what check is told of it as it was. */
export function remember(resource: Resource, olds: Values, news: Values): void {
  const { owner, name = contextOf(olds).name } = { owner: contextOf(olds).owner, ...contextOf(news) };
  if (owner === undefined) return;
  const known = declared.get(owner);
  // The engine checks a replacement a second time, as if there had been nothing; one by force in that way alone.
  const isAgain = known?.before !== undefined && !hasInputs(olds);
  const next: Declared = {
    ...{ resource, name, inputs: news },
    before: hasInputs(olds) ? olds : known?.before,
    id: known?.id,
    isReplaced: isAgain,
    createdId: known?.createdId,
    formerOwners: known?.formerOwners ?? [],
  };
  declared.set(owner, next);
  if (isAgain) noteReplaced(resource, next.id ?? idFrom(resource, next.before));
}

/** Notes the id of what is in the state, and whether the diff replaces it. */
export function rememberDiff(resource: Resource, id: string, state: Values, news: Values, isReplaced: boolean): void {
  const { owner } = contextOf(news);
  const known = ofOwner(owner);
  if (owner === undefined || !known) return;
  const formerOwners = formerOwnersIn(state, owner);
  declared.set(owner, { ...known, id, formerOwners, isReplaced: known.isReplaced || isReplaced });
  if (isReplaced) noteReplaced(resource, id);
}

/** The id, where all of it is in the inputs. */
function idFrom(resource: Resource, inputs: Values | undefined): string | undefined {
  const isWhole = resource.id.parts.every((part) => typeof inputs?.[part] === "string" && inputs[part] !== UNKNOWN);
  return inputs && isWhole ? resource.id.render(inputs) : undefined;
}

function noteReplaced(resource: Resource, id: string | undefined): void {
  const { kind } = resource.within;
  if (isParent(resource)) replacedParents.add(id === undefined ? kind : `${kind} ${id}`);
}

/** Whether others lie in objects of the type: an App and a cluster are named by what they are within. */
const isParent = ({ id, within: { part }, inputFields }: Resource): boolean =>
  id.form === `<${part}>` && inputFields[part]?.meta.format !== "reference";

/** Notes the id of what was created. */
export function rememberCreated(id: string, owner: string | undefined): void {
  const known = ofOwner(owner);
  if (owner !== undefined && known) declared.set(owner, { ...known, createdId: id });
}

const reportKey = (resource: Resource, owner: string | undefined): string => `${resource.name} ${owner ?? ""}`;

/** Notes what was reported as partly created or changed (R13); `undefined` that it is complete. */
export function rememberReported(resource: Resource, owner: string | undefined, what: Reported | undefined): void {
  if (owner === undefined) return;
  if (what) reported.set(reportKey(resource, owner), what);
  else reported.delete(reportKey(resource, owner));
}

/** What this run reported for an owner as partly created or changed. */
export const reportedFor = (resource: Resource, owner: string | undefined): Reported | undefined =>
  reported.get(reportKey(resource, owner));

/** Notes that an object is gone, and with it what was reported of it. */
export function rememberDeleted(resource: Resource, id: string, owner: string | undefined): void {
  if (reportedFor(resource, owner)?.id === id) rememberReported(resource, owner, undefined);
}

/** What check is told of the state, for both bindings. */
export const asSeenInRun = { nameInState, inputsInState, lossByParent } as const;

/** Whether an owner's object is in the state, so that what is created takes its place. */
export const isInState = (owner: string | undefined): boolean => ofOwner(owner)?.before !== undefined;

/** The id an owner's object has in the state, as far as this run was told. */
export const idInState = (owner: string | undefined): string | undefined => ofOwner(owner)?.id;

/** The owners that an owner's resource had before an alias gave it another name, as far as this run was told. */
export const formerOwnersOf = (owner: string | undefined): readonly string[] => ofOwner(owner)?.formerOwners ?? [];

/** The name an owner's object has in the state. */
export function nameInState(owner: string | undefined): unknown {
  const { resource, before } = ofOwner(owner) ?? {};
  return resource?.autoname && before?.[resource.autoname.property];
}

/** The inputs an owner's object has in the state: what is to replace it is checked as if there had been nothing. */
export function inputsInState(owner: string | undefined): Values {
  return ofOwner(owner)?.before ?? {};
}

/** Apps and clusters that the state names, as far as this run was told of it. */
export const placesInState = (): { readonly kind: "app" | "cluster"; readonly name: string }[] => {
  const found = [...declared.values()].flatMap(({ resource: { within }, before, id }) => {
    const name = before?.[within.part] ?? (id === undefined ? undefined : id.split("/")[0]);
    return typeof name === "string" && name !== UNKNOWN ? [`${within.kind} ${bareId(name)}`] : [];
  });
  return [...new Set(found)].map((text) => {
    const [kind, name = ""] = text.split(" ");
    return { kind: kind as "app" | "cluster", name };
  });
};

/**
 * R11: the App or cluster of what holds data is replaced in this run, and the data would be lost with it. Before the engine
 * deletes a parent first, it asks for a diff of what lies in it, with the new parent unknown, and only later for a check.
 */
export function lossByParent(resource: Resource, olds: Values, inputs: Values): Problem | undefined {
  const { kind, part } = resource.within;
  const before = olds[part];
  if (resource.losesData === undefined || mayLoseData(resource, inputs)) return undefined;
  if (inputs[part] !== UNKNOWN || typeof before !== "string" || !resource.replaceOn.includes(part)) return undefined;
  const isReplaced = replacedParents.has(kind) || replacedParents.has(`${kind} ${bareId(before)}`);
  const isAskedEarly = ofOwner(contextOf(inputs).owner) === undefined && contextOf(inputs).owner !== undefined;
  return isReplaced || isAskedEarly
    ? { path: [part], message: parentReplaced(resource, bareId(before), isAskedEarly) }
    : undefined;
}

/**
 * R9: a replacement that no input asks for, because of another provider, a replaced App, or by force. Check did not see it
 * coming; it shows in the create of what is in the state.
 */
export function refuseReplacement(resource: Resource, inputs: Values): void {
  const known = ofOwner(contextOf(inputs).owner);
  if (resource.losesData === undefined || mayLoseData(resource, inputs)) return;
  if (known?.before !== undefined && !mayLoseData(resource, known.inputs)) throw unseenReplacement(resource, known.id);
}

/**
 * R12: the name of the resource that holds an object which the engine asks to delete: another one of the program, or the
 * replacement that was created under the same id, in this run or in one that did not come to its end.
 */
export const holderOf = (resource: Resource, id: string): string | undefined =>
  [...declared.values()].find(
    (one) => one.resource === resource && (one.createdId === id || (one.id === id && !one.isReplaced)),
  )?.name;

/**
 * R12: the resource that claims something (`secret shop/KEY`) which another one gives up: it is another one of the program, or
 * what took this one's place.
 */
export function claimantOtherThan(claim: string, owner: string | undefined): Claimant | undefined {
  for (const [one, { resource, name = "", inputs, isReplaced, createdId }] of declared) {
    const claims = resource.claims?.(inputs) ?? {};
    const isOther = one !== owner || createdId !== undefined || !isReplaced;
    if (isOther && Object.hasOwn(claims, claim)) return { name, owner: one, value: claims[claim] };
  }
  return undefined;
}

/**
 * R11: the deletion of what the program still has is a replacement, whichever run began it; the program's word of now counts.
 * What the program no longer has is deleted, unless it is protected.
 */
export function refuseLoss(resource: Resource, state: Values, id: string): void {
  const known = candidatesFor(resource, id, state);
  if (isParent(resource)) refuseLossWithin(resource, id);
  // Of a replacement that was given up the user was asked, and of nothing that the program has put into it.
  if (resource.losesData === undefined || contextOf(state).discard === true) return;
  if (known.length === 0) {
    if (isProtected(resource) && !mayLoseData(resource, state)) throw protectedFrom(resource, id);
  } else if (known.some(({ inputs }) => !mayLoseData(resource, inputs))) throw unseenReplacement(resource, id);
}

/**
 * The input that names what an object lies in, where this run has created that again under the same id: the object is gone
 * with the former one, although nothing of its own has changed.
 */
export function lostWith(resource: Resource, id: string): string | undefined {
  for (const { resource: parent, createdId } of declared.values()) {
    const { namedAs } = parent;
    if (createdId === undefined || namedAs === undefined || !resource.id.parts.includes(namedAs)) continue;
    const parts = resource.id.parse(id);
    const created = Object.entries(parent.id.parse(createdId)).reverse();
    if (created.every(([part, value], i) => parts[i === 0 ? namedAs : part] === value)) return namedAs;
  }
  return undefined;
}

/** R11: what the program still has in an App or a cluster, and must not lose, goes with it. */
function refuseLossWithin({ name, within: { kind } }: Resource, id: string): void {
  const lost = [...declared.values()].filter(({ resource, before, inputs }) => {
    const place = before?.[resource.within.part];
    const lies = resource.within.kind === kind && typeof place === "string" && bareId(place) === id;
    return lies && resource.losesData !== undefined && !isParent(resource) && !mayLoseData(resource, inputs);
  });
  if (lost.length > 0)
    throw lossWithParent(
      `${name} ${id}`,
      lost.map(({ resource, name: inProgram }) => `${resource.name} ${JSON.stringify(inProgram ?? "")}`),
    );
}

/** The state of what is to be deleted, steered by what the program says now where it still has the resource (R11). */
export function steeredByProgram(resource: Resource, id: string, state: Values): Values {
  const [known] = candidatesFor(resource, id, state);
  if (!known) return state;
  const behaviour = Object.entries(resource.inputFields).filter(([, field]) => kindOf(field) === "behaviour");
  const said = behaviour.map(([name, field]) => [name, known.inputs[name] ?? field.default] as const);
  return { ...state, ...Object.fromEntries(said.filter(([, value]) => value !== undefined && value !== UNKNOWN)) };
}

// The memory of one run of the engine: the resources that the program declares, their objects in the state, and the objects that
// this run created. Deletions are judged by it, because the engine does not say why it deletes (R11, R12, R13).
import { randomBytes } from "node:crypto";
import { bareId } from "../../api/names.ts";
import type { Api } from "../client/api.ts";
import {
  isProtected,
  lossWithParent,
  mayLoseData,
  parentReplaced,
  protectedFrom,
  unseenReplacement,
} from "./dataLoss.ts";
import type { Journal } from "./journal.ts";
import {
  contextOf,
  isParent,
  kindOf,
  type Claimant,
  type Problem,
  type Resource,
  type RunInfo,
  type Values,
} from "./resource.ts";
import { UNKNOWN } from "./values.ts";

/** A resource that the program declares in this run. The engine has had its inputs checked. */
interface Declared {
  readonly resource: Resource;
  /** Its name in the program. */
  readonly name: string | undefined;
  /** Inputs of this run's program. */
  readonly inputs: Values;
  /** Inputs in the state; undefined if the engine gave none, as for a new resource or a forced replacement. */
  readonly before: Values | undefined;
  /** Id in the state, known after the engine has asked for a diff. */
  readonly id: string | undefined;
  /** Whether the engine replaces the object in the state. */
  readonly isReplaced: boolean;
  /** Id of the object that this run created for it. */
  readonly createdId: string | undefined;
  /** Owners that it had before an alias renamed it. The deletion of an object that it replaced then may still be pending. */
  readonly formerOwners: readonly string[];
}

/** An object that was reported to the engine although a step after its creation or change failed. */
export interface Reported {
  readonly id: string;
  readonly properties: Values;
}

const hasInputs = (values: Values): boolean => Object.keys(values).some((name) => !name.startsWith("__"));
/** All former owners in a state, without the current one. */
export const formerOwnersIn = (state: Values, owner: string | undefined): readonly string[] => {
  const { formerOwners = [], owner: last } = contextOf(state);
  const all = last === undefined ? formerOwners : [...formerOwners, last];
  return [...new Set(all)].filter((one) => one !== owner);
};

/** The id, if the inputs have all of its parts. */
function idFrom(resource: Resource, inputs: Values | undefined): string | undefined {
  const isWhole = resource.id.parts.every((part) => typeof inputs?.[part] === "string" && inputs[part] !== UNKNOWN);
  return inputs && isWhole ? resource.id.render(inputs) : undefined;
}

const reportKey = (resource: Resource, owner: string | undefined): string => `${resource.name} ${owner ?? ""}`;

/** The memory of one run. */
export class Run implements RunInfo {
  readonly #deletions = new Map<string, number>();
  readonly createdKeys = new Set<string>();
  readonly creating = new Map<string, Promise<unknown>>();
  /** Why questions of a preview could not be asked. Each reason is reported once. */
  readonly unasked = new Set<string>();
  readonly #openJournal: () => Journal;
  #journal: Journal | undefined;
  /** By owner. */
  readonly #declared = new Map<string, Declared>();
  /** By type and owner. */
  readonly #reported = new Map<string, Reported>();
  /** Apps and clusters that this run replaces, by kind and id, or by kind alone if the engine did not give the id. */
  readonly #replacedParents = new Set<string>();
  /** Ids of this state, as found in its resources. */
  readonly #seenIds = new Set<string>();
  /** The id that this run gave to a state without one. */
  #newId: string | undefined;

  constructor(openJournal: () => Journal) {
    this.#openJournal = openJournal;
  }

  /** The started creates, on disk. The file is read on first use, and survives the run. */
  get journal(): Journal {
    return (this.#journal ??= this.#openJournal());
  }

  /** Begins another run in the same process: forgets everything of the last one. */
  begin(): void {
    for (const known of [this.#deletions, this.createdKeys, this.creating, this.unasked]) known.clear();
    for (const known of [this.#declared, this.#reported, this.#replacedParents, this.#seenIds]) known.clear();
    this.#newId = undefined;
  }

  /**
   * Notes the state that a resource is in. Names cannot identify it: stacks of two backends, or of two organizations, may have the
   * same names. So the first new resource puts a random id into its state, and later ones of the same state repeat it.
   */
  noteState(state: Values): void {
    const { stack } = contextOf(state);
    if (typeof stack === "string") this.#seenIds.add(stack);
  }

  /**
   * The id of the state. Inputs never have it, because they are compared with a saved plan and it is random. A state can get
   * several ids, if a run creates something before it has seen one. Each of them belongs to it.
   */
  stackId(): string {
    const [seen] = this.#seenIds;
    return seen ?? (this.#newId ??= randomBytes(6).toString("hex"));
  }

  /** Whether an id is one of this state's, as far as this run knows. */
  isOfThisState(stack: string): boolean {
    return this.#seenIds.has(stack) || stack === this.#newId;
  }

  #ofOwner(owner: string | undefined): Declared | undefined {
    return owner === undefined ? undefined : this.#declared.get(owner);
  }
  /**
   * The resources of the program that an object of the state may belong to. There can be several: an alias may have renamed the
   * resource, and the program may have given its former name to another one.
   */
  #candidatesFor(resource: Resource, id: string, state: Values): readonly Declared[] {
    const { owner = "" } = contextOf(state);
    const candidates = [...this.#declared].filter(([, one]) => one.resource === resource);
    return candidates
      .filter(([now, one]) => now === owner || one.id === id || one.formerOwners.includes(owner))
      .map(([, one]) => one);
  }

  /** Notes a resource of the program, with its inputs of before and of now. */
  declare(resource: Resource, olds: Values, news: Values): void {
    const { owner, name = contextOf(olds).name } = { owner: contextOf(olds).owner, ...contextOf(news) };
    if (owner === undefined) return;
    const known = this.#declared.get(owner);
    // The engine checks a replacement a second time without old inputs. A forced one is checked only in that way.
    const isAgain = known?.before !== undefined && !hasInputs(olds);
    const next: Declared = {
      ...{ resource, name, inputs: news },
      before: hasInputs(olds) ? olds : known?.before,
      id: known?.id,
      isReplaced: isAgain,
      createdId: known?.createdId,
      formerOwners: known?.formerOwners ?? [],
    };
    this.#declared.set(owner, next);
    if (isAgain) this.#noteReplaced(resource, next.id ?? idFrom(resource, next.before));
  }

  /** Notes the id in the state, and whether the diff replaces the object. */
  noteDiff(resource: Resource, id: string, state: Values, news: Values, isReplaced: boolean): void {
    const { owner } = contextOf(news);
    const known = this.#ofOwner(owner);
    if (owner === undefined || !known) return;
    const formerOwners = formerOwnersIn(state, owner);
    this.#declared.set(owner, { ...known, id, formerOwners, isReplaced: known.isReplaced || isReplaced });
    if (isReplaced) this.#noteReplaced(resource, id);
  }

  #noteReplaced(resource: Resource, id: string | undefined): void {
    const { kind } = resource.within;
    if (isParent(resource)) this.#replacedParents.add(id === undefined ? kind : `${kind} ${id}`);
  }

  /** Notes the id of a created object. */
  noteCreated(id: string, owner: string | undefined): void {
    const known = this.#ofOwner(owner);
    if (owner !== undefined && known) this.#declared.set(owner, { ...known, createdId: id });
  }

  /** Notes an object that was reported as partly created or changed (R13). `undefined` says that it is complete. */
  noteReported(resource: Resource, owner: string | undefined, what: Reported | undefined): void {
    if (owner === undefined) return;
    if (what) this.#reported.set(reportKey(resource, owner), what);
    else this.#reported.delete(reportKey(resource, owner));
  }

  /** The object that this run reported as partly created or changed. */
  reportedFor(resource: Resource, owner: string | undefined): Reported | undefined {
    return this.#reported.get(reportKey(resource, owner));
  }

  /** Notes that an object is deleted. A report about it no longer counts. */
  noteDeleted(resource: Resource, id: string, owner: string | undefined): void {
    if (this.reportedFor(resource, owner)?.id === id) this.noteReported(resource, owner, undefined);
  }

  /** Whether an owner has an object in the state, so that a created one takes its place. */
  isInState(owner: string | undefined): boolean {
    return this.#ofOwner(owner)?.before !== undefined;
  }

  /** The id of an owner's object in the state, as far as this run knows. */
  idInState(owner: string | undefined): string | undefined {
    return this.#ofOwner(owner)?.id;
  }

  /** The former owners of an owner's resource, as far as this run knows. */
  formerOwnersOf(owner: string | undefined): readonly string[] {
    return this.#ofOwner(owner)?.formerOwners ?? [];
  }

  /** The name of an owner's object in the state. */
  nameInState(owner: string | undefined): unknown {
    const { resource, before } = this.#ofOwner(owner) ?? {};
    return resource?.autoname && before?.[resource.autoname.property];
  }

  /** The inputs of an owner's object in the state. The engine checks its replacement without them. */
  inputsInState(owner: string | undefined): Values {
    return this.#ofOwner(owner)?.before ?? {};
  }

  /** Apps and clusters in the state, as far as this run knows. */
  placesInState(): { readonly kind: "app" | "cluster"; readonly name: string }[] {
    const found = [...this.#declared.values()].flatMap(({ resource: { within }, before, id }) => {
      const name = before?.[within.part] ?? (id === undefined ? undefined : id.split("/")[0]);
      return typeof name === "string" && name !== UNKNOWN ? [`${within.kind} ${bareId(name)}`] : [];
    });
    return [...new Set(found)].map((text) => {
      const [kind, name = ""] = text.split(" ");
      return { kind: kind as "app" | "cluster", name };
    });
  }

  /**
   * R11: refuses to lose data because its App or cluster is replaced in this run. Before the engine deletes a parent, it asks for
   * a diff of each child with the new parent unknown. It asks for their checks only later.
   */
  lossByParent(resource: Resource, olds: Values, inputs: Values): Problem | undefined {
    const { kind, part } = resource.within;
    const before = olds[part];
    if (resource.losesData === undefined || mayLoseData(resource, inputs)) return undefined;
    if (inputs[part] !== UNKNOWN || typeof before !== "string" || !resource.replaceOn.includes(part)) return undefined;
    const isReplaced = this.#replacedParents.has(kind) || this.#replacedParents.has(`${kind} ${bareId(before)}`);
    const { owner } = contextOf(inputs);
    // Before its check, the engine asks with the inputs of the state. An imported resource may have no owner yet.
    const isStored = this.#ofOwner(owner) === undefined;
    return isReplaced || (isStored && owner !== undefined)
      ? { path: [part], message: parentReplaced(resource, bareId(before), isStored) }
      : undefined;
  }

  /**
   * R9: refuses a replacement that no input asks for: by another provider, a replaced App, or by force. Check cannot see it. It
   * shows as the create of a resource that is in the state.
   */
  refuseReplacement(resource: Resource, inputs: Values): void {
    const known = this.#ofOwner(contextOf(inputs).owner);
    if (resource.losesData === undefined || mayLoseData(resource, inputs)) return;
    if (known?.before !== undefined && !mayLoseData(resource, known.inputs))
      throw unseenReplacement(resource, known.id);
  }

  /**
   * R12: the name of the resource that has an object which the engine asks to delete. It is another resource of the program, or the
   * replacement with the same id, from this run or from an unfinished one.
   */
  holderOf(resource: Resource, id: string): string | undefined {
    return [...this.#declared.values()].find(
      (one) => one.resource === resource && (one.createdId === id || (one.id === id && !one.isReplaced)),
    )?.name;
  }

  /**
   * R12: the resource that claims something (`secret shop/KEY`) which an owner gives up. It is another resource of the program, or
   * the replacement of this one.
   */
  claimantOtherThan(claim: string, owner: string | undefined): Claimant | undefined {
    for (const [one, { resource, name = "", inputs, isReplaced, createdId }] of this.#declared) {
      const claims = resource.claims?.(inputs) ?? {};
      const isOther = one !== owner || createdId !== undefined || !isReplaced;
      if (isOther && Object.hasOwn(claims, claim)) return { name, owner: one, value: claims[claim] };
    }
    return undefined;
  }

  /**
   * R11: the deletion of an object that the program still declares is a replacement, in whichever run it began. The inputs of now
   * decide whether it may be lost. An object that the program no longer declares is deleted, unless it is protected.
   */
  refuseLoss(resource: Resource, state: Values, id: string): void {
    const known = this.#candidatesFor(resource, id, state);
    if (isParent(resource)) this.#refuseLossWithin(resource, id);
    // The user agreed to this data loss with undo-replacement, but the agreement does not cover other objects of the
    // program.
    if (resource.losesData === undefined || contextOf(state).discard === true) return;
    if (known.length === 0) {
      if (isProtected(resource) && !mayLoseData(resource, state)) throw protectedFrom(resource, id);
    } else if (known.some(({ inputs }) => !mayLoseData(resource, inputs))) throw unseenReplacement(resource, id);
  }

  /**
   * The input that names the parent of an object, if this run has created the parent again under the same id. The object was
   * deleted with the former parent, although its own inputs did not change.
   */
  lostWith(resource: Resource, id: string): string | undefined {
    for (const { resource: parent, createdId } of this.#declared.values()) {
      const { namedAs } = parent;
      if (createdId === undefined || namedAs === undefined || !resource.id.parts.includes(namedAs)) continue;
      const parts = resource.id.parse(id);
      const created = Object.entries(parent.id.parse(createdId)).reverse();
      if (created.every(([part, value], i) => parts[i === 0 ? namedAs : part] === value)) return namedAs;
    }
    return undefined;
  }

  /** R11: refuses to delete an App or a cluster with guarded objects that the program still declares. */
  #refuseLossWithin({ name, within: { kind } }: Resource, id: string): void {
    const lost = [...this.#declared.values()].filter(({ resource, before, inputs }) => {
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

  /** Notes that a deletion in an App or a cluster has started. @returns a function that notes its end */
  beginDeletion({ config: { endpoint } }: Pick<Api, "config">, place: string): () => void {
    const key = `${endpoint} ${place}`;
    const add = (one: number): void => void this.#deletions.set(key, (this.#deletions.get(key) ?? 0) + one);
    add(1);
    return () => add(-1);
  }

  deletionsIn({ config: { endpoint } }: Pick<Api, "config">, place: string): number {
    return this.#deletions.get(`${endpoint} ${place}`) ?? 0;
  }

  /** The state of an object to delete, with the behaviour inputs of now if the program still has the resource (R11). */
  steeredByProgram(resource: Resource, id: string, state: Values): Values {
    const [known] = this.#candidatesFor(resource, id, state);
    if (!known) return state;
    const behaviour = Object.entries(resource.inputFields).filter(([, field]) => kindOf(field) === "behaviour");
    const values = behaviour.map(([name, field]) => [name, known.inputs[name] ?? field.default] as const);
    return { ...state, ...Object.fromEntries(values.filter(([, value]) => value !== undefined && value !== UNKNOWN)) };
  }
}

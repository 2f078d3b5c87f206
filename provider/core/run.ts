// Remembers facts about one run of the engine: the resources that the program declares, their objects in the state, and the
// objects that this run created. The engine does not say why it deletes an object, so this memory decides whether a deletion
// is allowed (R11, R12, R13).
import { randomBytes } from "node:crypto";
import { bareId } from "../../api/names.ts";
import type { Api } from "../client/api.ts";
import {
  guardedReplacementError,
  isProtected,
  mayLoseData,
  parentDeletionError,
  parentReplacementRefusal,
  protectedDeletionError,
  protectedParentError,
} from "./dataLoss.ts";
import { backendId, backendIn, stateIdIn } from "./backend.ts";
import type { Journal } from "./journal.ts";
import {
  contextOf,
  isParent,
  kindOf,
  isSameObject,
  usedAlone,
  type Claimant,
  type Finding,
  type Problem,
  type Resource,
  type RunInfo,
  type UsedAlone,
  type Values,
} from "./resource.ts";
import { withheld, type Leaf, type Withheld } from "./redaction.ts";
import { hasInputs, UNKNOWN } from "./values.ts";
import { writeOnlyIn } from "./writeOnly.ts";

/** A resource that the program declares in this run, and whose inputs the engine has sent to check. */
interface Declared {
  readonly resource: Resource;
  /** Its name in the program. */
  readonly name: string | undefined;
  /** Its URN, if the binding knows it only from the program. */
  readonly urn: string | undefined;
  /** Its inputs in the current program. */
  readonly inputs: Values;
  /** Its inputs in the state. Undefined if the engine sent none, as for a new resource or a forced replacement. */
  readonly before: Values | undefined;
  /** Id of its object in the state. Known once the engine has requested a diff. */
  readonly id: string | undefined;
  /** Whether the engine replaces its object in the state. */
  readonly isReplaced: boolean;
  /** Id of the object that this run created for it. */
  readonly createdId: string | undefined;
  /**
   * Owners that the resource had before an alias renamed it. It may have been replaced under one of them, and the deletion of
   * that original may still be pending.
   */
  readonly formerOwners: readonly string[];
}

/** An object that was reported to the engine although a step after its creation or update failed. */
export interface Reported {
  readonly id: string;
  readonly properties: Values;
}

/** A resource of the program that uses something which only one can use. */
export interface OtherUser {
  /** Its name in the program. */
  readonly name: string;
  /** Whether it uses the object in the state already. */
  readonly isInState: boolean;
}

/** All owners that a state names, without the current one. */
export const formerOwnersIn = (state: Values, currentOwner: string | undefined): readonly string[] => {
  const { formerOwners = [], owner: ownerInState } = contextOf(state);
  const all = ownerInState === undefined ? formerOwners : [...formerOwners, ownerInState];
  return [...new Set(all)].filter((owner) => owner !== currentOwner);
};

/** The id, if the inputs contain all of its parts. */
function idFrom(resource: Resource, inputs: Values | undefined): string | undefined {
  const isComplete = resource.id.parts.every((part) => typeof inputs?.[part] === "string" && inputs[part] !== UNKNOWN);
  return inputs && isComplete ? resource.id.render(inputs) : undefined;
}

const reportKey = (resource: Resource, owner: string | undefined): string => `${resource.name} ${owner ?? ""}`;

/** The memory of one run. */
export class Run implements RunInfo {
  readonly #deletions = new Map<string, number>();
  readonly createdKeys = new Set<string>();
  readonly creating = new Map<string, Promise<unknown>>();
  /** The result of a test request in this preview. It shows whether the service answers, and is undefined until it is needed. */
  connection: Promise<Finding | undefined> | undefined;
  readonly #shared = new Map<string, unknown>();
  /** What this run has reported, with the subject of the first report. */
  readonly #reportedOnce = new Map<string, string>();
  readonly #openJournal: () => Journal;
  #journal: Journal | undefined;
  /** Declared resources, by owner. */
  readonly #declared = new Map<string, Declared>();
  /** Reported objects, by type and owner. */
  readonly #reported = new Map<string, Reported>();
  /** Apps and clusters that this run replaces, by kind and id. The kind stands alone if the engine did not send the id. */
  readonly #replacedParents = new Set<string>();
  /** Ids of the state, as found in its resources. */
  readonly #seenStateIds = new Set<string>();
  /** Secrets of its resources, and whether they certainly are. */
  readonly #secrets = new Map<Leaf, boolean>();
  /** The id that this run generated for a state without an id, or whose ids come from another backend. */
  #newStateId: string | undefined;
  /** The backend of the state, once it is needed. */
  #backend: { readonly id: string | undefined } | undefined;

  constructor(openJournal: () => Journal) {
    this.#openJournal = openJournal;
  }

  /** The journal of started creates. Its file is read on first use, and remains after the run. */
  get journal(): Journal {
    return (this.#journal ??= this.#openJournal());
  }

  /** Begins another run in the same process, and forgets the previous one. */
  begin(): void {
    for (const known of [this.#deletions, this.createdKeys, this.creating, this.#shared, this.#reportedOnce])
      known.clear();
    for (const known of [this.#declared, this.#reported, this.#replacedParents, this.#seenStateIds]) known.clear();
    this.#secrets.clear();
    this.#newStateId = undefined;
    this.#backend = undefined;
    this.connection = undefined;
  }

  /** Whether this run reports something for the first time. Many resources may have the same problem. */
  isFirstReport(key: string): boolean {
    if (this.#reportedOnce.has(key)) return false;
    this.#reportedOnce.set(key, "");
    return true;
  }

  /** The subject that this run reported something about first: the given one, unless there is an earlier report. */
  firstReporter(key: string, subject: string): string {
    const first = this.#reportedOnce.get(key) ?? subject;
    this.#reportedOnce.set(key, first);
    return first;
  }

  /**
   * Notes the state id of a resource. A state needs an id of its own, because stacks in two backends or two organizations may
   * have the same names. So the first new resource of a state gets a random id, and later resources repeat it.
   */
  noteState(state: Values): void {
    const { stack } = contextOf(state);
    if (typeof stack === "string") this.#seenStateIds.add(stack);
  }

  /**
   * The id of the state. It is random, and Pulumi compares inputs with a saved plan, so inputs never contain it. A state has
   * several ids if a run created a resource before it had read an existing id. It also keeps those of a state that it was
   * copied from in another backend, where that state may live on: it then gets an id of its own.
   */
  stateId(): string {
    return this.#ownStateId() ?? (this.#newStateId ??= stateIdIn(randomBytes(6).toString("hex"), this.#backendId()));
  }

  /** The id of the state in this backend, if this run has seen one. */
  #ownStateId(): string | undefined {
    return [...this.#seenStateIds].find((id) => backendIn(id) === this.#backendId());
  }

  #backendId(): string | undefined {
    return (this.#backend ??= { id: backendId() }).id;
  }

  /** Whether this run has seen an id of the state in this backend. */
  get knowsState(): boolean {
    return this.#ownStateId() !== undefined;
  }

  /** Whether an id identifies this state, as far as this run knows. An id from another backend may be that of a living state. */
  isStateId(id: string): boolean {
    if (id === this.#newStateId) return true;
    const from = backendIn(id);
    return this.#seenStateIds.has(id) && (from === undefined || from === this.#backendId());
  }

  /** The ids that identify this state, as far as this run knows. The first is that of new objects. */
  get stateIds(): readonly string[] {
    return [...new Set([this.stateId(), ...this.#seenStateIds])].filter((id) => this.isStateId(id));
  }

  #declaredBy(owner: string | undefined): Declared | undefined {
    return owner === undefined ? undefined : this.#declared.get(owner);
  }

  /**
   * The resources of the program that an object of the state may belong to. There can be several: an alias may have renamed the
   * resource, and another resource of the program may now have its former name.
   */
  #candidatesFor(resource: Resource, id: string, state: Values): readonly Declared[] {
    const { owner: ownerInState = "" } = contextOf(state);
    return [...this.#declared]
      .filter(([, declared]) => declared.resource === resource)
      .filter(
        ([owner, declared]) =>
          owner === ownerInState || declared.id === id || declared.formerOwners.includes(ownerInState),
      )
      .map(([, declared]) => declared);
  }

  /** Notes a resource of the program, with its inputs in the state (`olds`) and in the program (`news`). */
  declare(resource: Resource, olds: Values, news: Values): void {
    const { owner, name = contextOf(olds).name, urn } = { owner: contextOf(olds).owner, ...contextOf(news) };
    if (owner === undefined) return;
    const known = this.#declared.get(owner);
    // The engine checks a replacement twice, the second time without old inputs. It checks a forced one only without them.
    const isSecondCheck = known?.before !== undefined && !hasInputs(olds);
    const next: Declared = {
      ...{ resource, name, urn, inputs: news },
      before: hasInputs(olds) ? olds : known?.before,
      id: known?.id,
      isReplaced: isSecondCheck,
      createdId: known?.createdId,
      formerOwners: known?.formerOwners ?? [],
    };
    this.#declared.set(owner, next);
    if (isSecondCheck) this.#noteReplaced(resource, next.id ?? idFrom(resource, next.before));
  }

  /** Whether the run has a program that declares resources. A plain refresh or destroy has none. */
  get hasProgram(): boolean {
    return this.declared > 0;
  }

  /** Notes the id of an object in the state, and whether its diff replaces the object. */
  noteDiff(resource: Resource, id: string, state: Values, news: Values, isReplaced: boolean): void {
    const { owner } = contextOf(news);
    const known = this.#declaredBy(owner);
    if (owner === undefined || !known) return;
    const formerOwners = formerOwnersIn(state, owner);
    this.#declared.set(owner, { ...known, id, formerOwners, isReplaced: known.isReplaced || isReplaced });
    if (isReplaced) this.#noteReplaced(resource, id);
  }

  #noteReplaced(resource: Resource, id: string | undefined): void {
    const { kind } = resource.within;
    if (isParent(resource)) this.#replacedParents.add(id === undefined ? kind : `${kind} ${id}`);
  }

  /** Records the id of a created object. */
  noteCreated(id: string, owner: string | undefined): void {
    const known = this.#declaredBy(owner);
    if (owner !== undefined && known) this.#declared.set(owner, { ...known, createdId: id });
  }

  /** Notes an object that was reported as partly created or updated (R13). `undefined` means that it is complete. */
  noteReported(resource: Resource, owner: string | undefined, reported: Reported | undefined): void {
    if (owner === undefined) return;
    if (reported) this.#reported.set(reportKey(resource, owner), reported);
    else this.#reported.delete(reportKey(resource, owner));
  }

  /** The object that this run reported as partly created or updated. */
  reportedFor(resource: Resource, owner: string | undefined): Reported | undefined {
    return this.#reported.get(reportKey(resource, owner));
  }

  /** Notes that an object was deleted, and forgets a report about it. */
  noteDeleted(resource: Resource, id: string, owner: string | undefined): void {
    if (this.reportedFor(resource, owner)?.id === id) this.noteReported(resource, owner, undefined);
  }

  /** Whether an owner has an object in the state, so that a newly created object replaces it. */
  isInState(owner: string | undefined): boolean {
    return this.#declaredBy(owner)?.before !== undefined;
  }

  /** The id of an owner's object in the state, as far as this run knows. */
  idInState(owner: string | undefined): string | undefined {
    return this.#declaredBy(owner)?.id;
  }

  /** How many resources the program has declared so far. */
  get declared(): number {
    return this.#declared.size;
  }

  /** Whether the engine deletes an owner's object before it creates the replacement. */
  isReplacedFirst(owner: string | undefined, id: string): boolean {
    const known = this.#declaredBy(owner);
    return known?.isReplaced === true && known.createdId === undefined && known.id === id;
  }

  /** What the handlers of a family remember during this run. */
  shared<T>(key: string, make: () => T): T {
    if (!this.#shared.has(key)) this.#shared.set(key, make());
    return this.#shared.get(key) as T;
  }

  /** The former owners of an owner's resource, as far as this run knows. */
  formerOwnersOf(owner: string | undefined): readonly string[] {
    return this.#declaredBy(owner)?.formerOwners ?? [];
  }

  /** The name of an owner's object in the state. */
  nameInState(owner: string | undefined): unknown {
    const { resource, before } = this.#declaredBy(owner) ?? {};
    return resource?.autoname && before?.[resource.autoname.property];
  }

  /** The URN of a resource that the program declares in this run. */
  urnInProgram(owner: string | undefined): string | undefined {
    return this.#declaredBy(owner)?.urn;
  }

  /** The inputs of an owner's object in the state. The engine does not send them when it checks the replacement. */
  inputsInState(owner: string | undefined): Values {
    return this.#declaredBy(owner)?.before ?? {};
  }

  /** Apps and clusters in the state, as far as this run knows. */
  parentsInState(): { readonly kind: "app" | "cluster"; readonly name: string }[] {
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
   * R11: refuses a data loss that the replacement of an App or cluster in this run would cause. Before the engine deletes a
   * parent, it requests the diff of each child with the parent's id unknown. It sends the child's inputs to check only later.
   */
  dataLossByParent(resource: Resource, olds: Values, inputs: Values): Problem | undefined {
    const { kind, part } = resource.within;
    const before = olds[part];
    if (resource.losesData === undefined || mayLoseData(resource, inputs)) return undefined;
    if (inputs[part] !== UNKNOWN || typeof before !== "string" || !resource.replaceOn.includes(part)) return undefined;
    const isReplaced = this.#replacedParents.has(kind) || this.#replacedParents.has(`${kind} ${bareId(before)}`);
    const { owner } = contextOf(inputs);
    // A diff that precedes the check has the inputs of the state. An imported resource may have no owner yet.
    const isFromState = this.#declaredBy(owner) === undefined;
    return isReplaced || (isFromState && owner !== undefined)
      ? { path: [part], message: parentReplacementRefusal(resource, bareId(before), isFromState) }
      : undefined;
  }

  /**
   * R9: refuses a replacement that no changed input causes. The cause may be another provider, a replaced App, or `--replace`.
   * Check cannot detect such a replacement: it appears as the create of a resource that is in the state.
   */
  refuseReplacement(resource: Resource, inputs: Values): void {
    const known = this.#declaredBy(contextOf(inputs).owner);
    if (resource.losesData === undefined || mayLoseData(resource, inputs)) return;
    if (known?.before !== undefined && !mayLoseData(resource, known.inputs))
      throw guardedReplacementError(resource, known.id);
  }

  /**
   * R12: the name of the resource that still has an object which the engine wants to delete. It is another resource of the
   * program, or a replacement with the same id, created by this run or by an unfinished one.
   */
  remainingResource(resource: Resource, id: string): string | undefined {
    return [...this.#declared.values()].find(
      (declared) =>
        declared.resource === resource && (declared.createdId === id || (declared.id === id && !declared.isReplaced)),
    )?.name;
  }

  /**
   * R12: the resource that still claims something (`secret shop/KEY`) which an owner gives up. It is another resource of the
   * program, or the replacement of the owner's resource.
   */
  remainingClaimant(claim: string, formerOwner: string | undefined): Claimant | undefined {
    for (const [owner, { resource, name = "", inputs, isReplaced, createdId }] of this.#declared) {
      const claims = resource.claims?.(inputs) ?? {};
      const isRemaining = owner !== formerOwner || createdId !== undefined || !isReplaced;
      if (isRemaining && Object.hasOwn(claims, claim)) return { name, owner, value: claims[claim] };
    }
    return undefined;
  }

  /**
   * R11: refuses to delete a guarded object. If the program still declares the resource, the deletion is part of a replacement,
   * whichever run began it, and the current inputs must permit the data loss. Otherwise only a protected object is refused.
   */
  refuseGuardedDeletion(resource: Resource, state: Values, id: string): void {
    const candidates = this.#candidatesFor(resource, id, state);
    if (isParent(resource)) this.#refuseParentDeletion(resource, id);
    if (candidates.length === 0) this.#refuseInProtected(resource, state, id);
    // The user agreed to this data loss with undo-replacement. Other objects of the program are not part of that agreement.
    if (resource.losesData === undefined || contextOf(state).discard === true) return;
    if (candidates.length === 0) {
      if (isProtected(resource) && !mayLoseData(resource, state)) throw protectedDeletionError(resource, id);
    } else if (candidates.some(({ inputs }) => !mayLoseData(resource, inputs)))
      throw guardedReplacementError(resource, id);
  }

  /**
   * The input that names the parent of an object, if this run deleted the parent and created it again under the same id. The
   * object was deleted with its parent, although its own inputs did not change.
   */
  recreatedParentInput(resource: Resource, id: string): string | undefined {
    for (const { resource: parent, createdId } of this.#declared.values()) {
      const { namedAs } = parent;
      if (createdId === undefined || namedAs === undefined || !resource.id.parts.includes(namedAs)) continue;
      const parts = resource.id.parse(id);
      const created = Object.entries(parent.id.parse(createdId)).reverse();
      if (created.every(([part, value], i) => parts[i === 0 ? namedAs : part] === value)) return namedAs;
    }
    return undefined;
  }

  /** R11: refuses to delete an App or a cluster that contains guarded objects which the program still declares. */
  #refuseParentDeletion({ name, within: { kind } }: Resource, id: string): void {
    const guarded = [...this.#declared.values()].filter(({ resource, before, inputs }) => {
      const parent = before?.[resource.within.part];
      const isInside = resource.within.kind === kind && typeof parent === "string" && bareId(parent) === id;
      return isInside && resource.losesData !== undefined && !isParent(resource) && !mayLoseData(resource, inputs);
    });
    if (guarded.length > 0)
      throw parentDeletionError(
        `${name} ${id}`,
        guarded.map(({ resource, name: nameInProgram }) => `${resource.name} ${JSON.stringify(nameInProgram ?? "")}`),
      );
  }

  /** The cluster of the program that contains an object, if the program can protect it. */
  #clusterWith(resource: Resource, inputs: Values): Declared | undefined {
    const parent = inputs[resource.within.part];
    if (isParent(resource) || typeof parent !== "string") return undefined;
    return [...this.#declared.values()].find(
      (declared) =>
        isProtected(declared.resource) &&
        declared.resource.within.kind === resource.within.kind &&
        [declared.id, declared.createdId].includes(bareId(parent)),
    );
  }

  /**
   * Whether the program protects the cluster that contains an object. Undefined if the program does not declare the cluster,
   * or if the object is not in a cluster.
   */
  isInProtected(resource: Resource, inputs: Values): boolean | undefined {
    const cluster = this.#clusterWith(resource, inputs);
    return cluster && !mayLoseData(cluster.resource, cluster.inputs);
  }

  /**
   * Refuses to delete an object in a protected cluster. If the program still declares the cluster, only objects with data are
   * refused. If it does not, the cluster is to be deleted too, and every object is refused.
   */
  #refuseInProtected(resource: Resource, state: Values, id: string): void {
    if (contextOf(state).inProtected !== true) return;
    const isStillProtected = this.isInProtected(resource, state);
    if (isStillProtected === false || (isStillProtected === true && resource.losesData === undefined)) return;
    const nameInProgram = this.#clusterWith(resource, state)?.name;
    throw protectedParentError(resource, id, String(state[resource.within.part]), nameInProgram);
  }

  /** Another resource of the program that uses an object which only one can use. */
  otherUserOf(used: UsedAlone, owner: string | undefined): OtherUser | undefined {
    const isUsedBy = (resource: Resource, values: Values): boolean =>
      usedAlone(resource, values).some((one) => isSameObject(one, used));
    for (const [other, { resource, name = "", inputs, before = {} }] of this.#declared)
      if (other !== owner && isUsedBy(resource, inputs)) return { name, isInState: isUsedBy(resource, before) };
    return undefined;
  }

  /** The inputs of a resource in the current program, if its check has begun. */
  inputsInProgram(owner: string): Values | undefined {
    return this.#declaredBy(owner)?.inputs;
  }

  /** The values that the program gives a resource and that are not stored. They are not in the inputs that check returned. */
  writeOnlyOf(owner: string | undefined): Values {
    const known = this.#declaredBy(owner);
    return known ? writeOnlyIn(known.resource, known.inputs) : {};
  }

  /** Every text and number that the program gives and that is not stored, so that no message quotes one. */
  writeOnlySecrets(): readonly Withheld[] {
    return [...this.#declared.values()].flatMap(({ resource, inputs }) =>
      withheld(resource.inputFields, writeOnlyIn(resource, inputs), undefined),
    );
  }

  /** Notes secrets of a resource: another resource of the run may use them, and its program may print them. */
  noteSecrets(found: Iterable<Withheld>): void {
    for (const { value, isCertain } of found) this.#secrets.set(value, this.#secrets.get(value) === true || isCertain);
  }

  secrets(): readonly Withheld[] {
    const noted = [...this.#secrets].map(([value, isCertain]) => ({ value, isCertain }));
    return [...noted, ...this.writeOnlySecrets()];
  }

  /** Counts a deletion in an App or a cluster as running. @returns a function that ends the count */
  beginDeletion({ config: { endpoint } }: Pick<Api, "config">, parent: string): () => void {
    const key = `${endpoint} ${parent}`;
    const add = (change: number): void => void this.#deletions.set(key, (this.#deletions.get(key) ?? 0) + change);
    add(1);
    return () => add(-1);
  }

  /** How many deletions are running in an App or a cluster. */
  deletionsIn({ config: { endpoint } }: Pick<Api, "config">, parent: string): number {
    return this.#deletions.get(`${endpoint} ${parent}`) ?? 0;
  }

  /**
   * The state of an object to delete. If the program still declares the resource, its current behaviour inputs replace those of
   * the state (R11).
   */
  withCurrentOptions(resource: Resource, id: string, state: Values): Values {
    const [declared] = this.#candidatesFor(resource, id, state);
    if (!declared) return state;
    const behaviour = Object.entries(resource.inputFields).filter(([, field]) => kindOf(field) === "behaviour");
    const values = behaviour.map(([name, field]) => [name, declared.inputs[name] ?? field.default] as const);
    return { ...state, ...Object.fromEntries(values.filter(([, value]) => value !== undefined && value !== UNKNOWN)) };
  }
}

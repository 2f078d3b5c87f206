// The resources that the program of a run declares, with their objects in the state. The engine does not say why it creates
// or deletes an object; what the program declares does.
import { bareId } from "../../../api/names.ts";
import {
  contextOf,
  isParent,
  kindOf,
  isSameObject,
  usedAlone,
  type Claimant,
  type Resource,
  type UsedAlone,
  type Values,
} from "../resource.ts";
import { hasInputs, UNKNOWN } from "../values.ts";
import { writeOnlyIn } from "../writeOnly.ts";

/** A resource that the program declares in this run, and whose inputs the engine has sent to check. */
export interface Declared {
  readonly resource: Resource;
  readonly owner: string;
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
export function idFrom(resource: Resource, inputs: Values | undefined): string | undefined {
  const isComplete = resource.id.parts.every((part) => typeof inputs?.[part] === "string" && inputs[part] !== UNKNOWN);
  return inputs && isComplete ? resource.id.render(inputs) : undefined;
}

/** The program of one run, as far as the engine has sent its resources. */
export class Program {
  readonly #declared = new Map<string, Declared>();
  /** Apps and clusters that this run replaces, by kind and id. The kind stands alone if the engine did not send the id. */
  readonly #replacedParents = new Set<string>();

  /** Notes a resource, with its inputs in the state (`olds`) and in the program (`news`). */
  declare(resource: Resource, olds: Values, news: Values): void {
    const { owner, name = contextOf(olds).name, urn } = { owner: contextOf(olds).owner, ...contextOf(news) };
    if (owner === undefined) return;
    const known = this.#declared.get(owner);
    // The engine checks a replacement twice, the second time without old inputs. It checks a forced one only without them.
    const isSecondCheck = known?.before !== undefined && !hasInputs(olds);
    const next: Declared = {
      ...{ resource, owner, name, urn, inputs: news },
      before: hasInputs(olds) ? olds : known?.before,
      id: known?.id,
      isReplaced: isSecondCheck,
      createdId: known?.createdId,
      formerOwners: known?.formerOwners ?? [],
    };
    this.#declared.set(owner, next);
    if (isSecondCheck) this.#noteReplaced(resource, next.id ?? idFrom(resource, next.before));
  }

  /** Notes the id of an object in the state, and whether its diff replaces the object. */
  noteDiff(resource: Resource, id: string, state: Values, news: Values, isReplaced: boolean): void {
    const { owner } = contextOf(news);
    const known = this.of(owner);
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
    const known = this.of(owner);
    if (owner !== undefined && known) this.#declared.set(owner, { ...known, createdId: id });
  }

  /** The resources declared so far. A plain refresh or destroy has none. */
  get all(): readonly Declared[] {
    return [...this.#declared.values()];
  }

  /** How many resources it has declared so far. */
  get size(): number {
    return this.#declared.size;
  }

  /** The resource of an owner. */
  of(owner: string | undefined): Declared | undefined {
    return owner === undefined ? undefined : this.#declared.get(owner);
  }

  /**
   * The resources that an object of the state may belong to. There can be several: an alias may have renamed the resource, and
   * another resource of the program may now have its former name. Of a tainted object the engine requests no diff, so that an alias is
   * known only by the id, if the inputs decide on it.
   */
  candidatesFor(resource: Resource, id: string, state: Values): readonly Declared[] {
    const { owner: ownerInState = "" } = contextOf(state);
    return this.all.filter(
      (declared) =>
        declared.resource === resource &&
        (declared.owner === ownerInState ||
          (declared.id ?? idFrom(resource, declared.inputs)) === id ||
          declared.formerOwners.includes(ownerInState)),
    );
  }

  /** Whether an owner has an object in the state, so that a newly created object replaces it. */
  isInState(owner: string | undefined): boolean {
    return this.of(owner)?.before !== undefined;
  }

  /** The id of an owner's object in the state, as far as this run knows. */
  idInState(owner: string | undefined): string | undefined {
    return this.of(owner)?.id;
  }

  /** The inputs of an owner's object in the state. The engine does not send them when it checks the replacement. */
  inputsInState(owner: string | undefined): Values {
    return this.of(owner)?.before ?? {};
  }

  /** The name of an owner's object in the state. */
  nameInState(owner: string | undefined): unknown {
    const { resource, before } = this.of(owner) ?? {};
    return resource?.autoname && before?.[resource.autoname.property];
  }

  /** Whether the engine deletes an owner's object before it creates the replacement. */
  isReplacedFirst(owner: string | undefined, id: string): boolean {
    const known = this.of(owner);
    return known?.isReplaced === true && known.createdId === undefined && known.id === id;
  }

  /** Whether this run replaces an App or a cluster. */
  isParentReplaced(kind: string, id: string): boolean {
    return this.#replacedParents.has(kind) || this.#replacedParents.has(`${kind} ${id}`);
  }

  /** Apps and clusters in the state, as far as this run knows. */
  parentsInState(): { readonly kind: "app" | "cluster"; readonly name: string }[] {
    const found = this.all.flatMap(({ resource: { within }, before, id }) => {
      const name = before?.[within.part] ?? (id === undefined ? undefined : id.split("/")[0]);
      return typeof name === "string" && name !== UNKNOWN ? [`${within.kind} ${bareId(name)}`] : [];
    });
    return [...new Set(found)].map((text) => {
      const [kind, name = ""] = text.split(" ");
      return { kind: kind as "app" | "cluster", name };
    });
  }

  /**
   * R12: the name of the resource that still has an object which the engine wants to delete. It is another resource of the
   * program, or a replacement with the same id, created by this run or by an unfinished one.
   */
  remainingResource(resource: Resource, id: string): string | undefined {
    return this.all.find(
      (declared) =>
        declared.resource === resource && (declared.createdId === id || (declared.id === id && !declared.isReplaced)),
    )?.name;
  }

  /**
   * R12: the resource that still claims something (`secret shop/KEY`) which an owner gives up. It is another resource of the
   * program, or the replacement of the owner's resource.
   */
  remainingClaimant(claim: string, formerOwner: string | undefined): Claimant | undefined {
    for (const { owner, resource, name = "", inputs, isReplaced, createdId } of this.all) {
      const claims = resource.claims?.(inputs) ?? {};
      const isRemaining = owner !== formerOwner || createdId !== undefined || !isReplaced;
      if (isRemaining && Object.hasOwn(claims, claim)) return { name, owner, value: claims[claim] };
    }
    return undefined;
  }

  /** Another resource of the program that uses an object which only one can use. */
  otherUserOf(used: UsedAlone, owner: string | undefined): OtherUser | undefined {
    const isUsedBy = (resource: Resource, values: Values): boolean =>
      usedAlone(resource, values).some((one) => isSameObject(one, used));
    for (const { owner: other, resource, name = "", inputs, before = {} } of this.all)
      if (other !== owner && isUsedBy(resource, inputs)) return { name, isInState: isUsedBy(resource, before) };
    return undefined;
  }

  /**
   * The input that names the parent of an object, if this run deleted the parent and created it again under the same id. The
   * object was deleted with its parent, although its own inputs did not change.
   */
  recreatedParentInput(resource: Resource, id: string): string | undefined {
    for (const { resource: parent, createdId } of this.all) {
      const { namedAs } = parent;
      if (createdId === undefined || namedAs === undefined || !resource.id.parts.includes(namedAs)) continue;
      const parts = resource.id.parse(id);
      const created = Object.entries(parent.id.parse(createdId)).reverse();
      if (created.every(([part, value], i) => parts[i === 0 ? namedAs : part] === value)) return namedAs;
    }
    return undefined;
  }

  /** The values that the program gives a resource and that are not stored. They are not in the inputs that check returned. */
  writeOnlyOf(owner: string | undefined): Values {
    const known = this.of(owner);
    return known ? writeOnlyIn(known.resource, known.inputs) : {};
  }

  /**
   * The state of an object to delete. If the program still declares the resource, its current behaviour inputs replace those of
   * the state (R11).
   */
  withCurrentOptions(resource: Resource, id: string, state: Values): Values {
    const [declared] = this.candidatesFor(resource, id, state);
    if (!declared) return state;
    const behaviour = Object.entries(resource.inputFields).filter(([, field]) => kindOf(field) === "behaviour");
    const values = behaviour.map(([name, field]) => [name, declared.inputs[name] ?? field.default] as const);
    return { ...state, ...Object.fromEntries(values.filter(([, value]) => value !== undefined && value !== UNKNOWN)) };
  }
}

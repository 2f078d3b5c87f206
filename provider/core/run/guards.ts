// Decides whether a deletion or a replacement may lose data (R9, R11). The engine does not say why it deletes an object, so
// the program of the run decides.
import { bareId } from "../../../api/names.ts";
import {
  guardedReplacementError,
  isProtected,
  mayLoseData,
  parentDeletionError,
  parentReplacementRefusal,
  protectedDeletionError,
  protectedParentError,
} from "../dataLoss.ts";
import { contextOf, isParent, type Context, type Problem, type Resource, type Values } from "../resource.ts";
import { UNKNOWN } from "../values.ts";
import type { Declared, Program } from "./program.ts";

/** The guards of one run. */
export class Guards {
  readonly #program: Program;

  constructor(program: Program) {
    this.#program = program;
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
    const { owner } = contextOf(inputs);
    // A diff that precedes the check has the inputs of the state. An imported resource may have no owner yet.
    const isFromState = this.#program.of(owner) === undefined;
    return this.#program.isParentReplaced(kind, bareId(before)) || (isFromState && owner !== undefined)
      ? { path: [part], message: parentReplacementRefusal(resource, bareId(before), isFromState) }
      : undefined;
  }

  /**
   * R9: refuses a replacement that no changed input causes. The cause may be another provider, a replaced App, or `--replace`.
   * Check cannot detect such a replacement: it appears as the create of a resource that is in the state.
   */
  refuseReplacement(resource: Resource, inputs: Values): void {
    const known = this.#program.of(contextOf(inputs).owner);
    if (resource.losesData === undefined || mayLoseData(resource, inputs)) return;
    if (known?.before !== undefined && !mayLoseData(resource, known.inputs))
      throw guardedReplacementError(resource, known.id);
  }

  /**
   * R11: refuses to delete a guarded object. If the program still declares the resource, the deletion is part of a replacement,
   * whichever run began it, and the current inputs must permit the data loss. Otherwise only a protected object is refused.
   */
  refuseDeletion(resource: Resource, state: Values, id: string): void {
    const candidates = this.#program.candidatesFor(resource, id, state);
    if (isParent(resource)) this.#refuseParentDeletion(resource, id);
    if (candidates.length === 0) this.#refuseInProtected(resource, state, id);
    // The user agreed to this data loss with undo-replacement. Other objects of the program are not part of that agreement.
    if (resource.losesData === undefined || contextOf(state).discard === true) return;
    if (candidates.length === 0) {
      if (isProtected(resource) && !mayLoseData(resource, state)) throw protectedDeletionError(resource, id);
    } else if (candidates.some(({ inputs }) => !mayLoseData(resource, inputs)))
      throw guardedReplacementError(resource, id);
  }

  /** R11: refuses to delete an App or a cluster that contains guarded objects which the program still declares. */
  #refuseParentDeletion({ name, within: { kind } }: Resource, id: string): void {
    const guarded = this.#program.all.filter(({ resource, before, inputs }) => {
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

  /** How the program protects the cluster that contains an object, for the object's state. Empty without such a cluster. */
  protectionOf(resource: Resource, inputs: Values): Pick<Context, "inCluster" | "inProtected"> {
    const cluster = this.#clusterWith(resource, inputs);
    if (!cluster) return {};
    return mayLoseData(cluster.resource, cluster.inputs)
      ? { inProtected: false }
      : { inProtected: true, inCluster: cluster.owner };
  }

  /** The cluster of the program that contains an object, if the program can protect it. */
  #clusterWith(resource: Resource, values: Values): Declared | undefined {
    const parent = values[resource.within.part];
    if (isParent(resource) || typeof parent !== "string") return undefined;
    // The engine requests no diff of a tainted cluster, so its id is unknown. The object's state names it by its owner.
    const { inCluster } = contextOf(values);
    return this.#program.all.find(
      (declared) =>
        isProtected(declared.resource) &&
        declared.resource.within.kind === resource.within.kind &&
        (declared.owner === inCluster || [declared.id, declared.createdId].includes(bareId(parent))),
    );
  }

  /**
   * Refuses to delete an object in a protected cluster. If the program still declares the cluster, only objects with data are
   * refused. If it does not, the cluster is to be deleted too, and every object is refused.
   */
  #refuseInProtected(resource: Resource, state: Values, id: string): void {
    if (contextOf(state).inProtected !== true) return;
    const cluster = this.#clusterWith(resource, state);
    const isStillProtected = cluster && !mayLoseData(cluster.resource, cluster.inputs);
    if (isStillProtected === false || (isStillProtected === true && resource.losesData === undefined)) return;
    throw protectedParentError(resource, id, String(state[resource.within.part]), cluster?.name);
  }
}

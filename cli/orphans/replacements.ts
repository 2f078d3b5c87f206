// Replacements in a state whose originals still exist, and how to undo one. No I/O.
import { isObject, type Field } from "../../api/schema.ts";
import { MachinesError } from "../../provider/client/errors.ts";
import { CONTEXT, contextOf, kindOf, type Resource, type Values } from "../../provider/core/resource.ts";
import { same } from "../../provider/core/values.ts";
import { resources as types } from "../../provider/registry.ts";
import { withNeeds, type DeploymentEntry } from "../entries.ts";
import { heldIn, isSealed, listIn, type StateResource } from "../stackState.ts";

/** An original with a pending deletion, and its replacement. */
export interface Replacement {
  readonly resource: Resource;
  readonly original: StateResource;
  /** The original in the deployment. */
  readonly entry: DeploymentEntry;
  readonly current: StateResource;
  /** All other objects of the resource in the deployment: its replacement, and other originals. */
  readonly others: readonly DeploymentEntry[];
  /** Whether the original was itself replaced by an undo. */
  readonly isGivenUp: boolean;
  /** RFC 3339 time at which the original was added to the state. */
  readonly createdAt: string | undefined;
}

/** The replacements in a deployment whose originals still exist according to it. */
export function replacementsIn(deployment: Values): Replacement[] {
  const entries = listIn(deployment, "resources") as readonly DeploymentEntry[];
  return entries.flatMap((entry) => {
    const [original, resource] = [heldIn(entry), types[heldIn(entry)?.type ?? ""]];
    if (entry["delete"] !== true || !original || original.isExternal || original.id === "" || !resource) return [];
    // A resource that cannot be read cannot be kept.
    if (resource.noImport !== undefined) return [];
    const others = entries.filter((other) => other.urn === entry.urn && other !== entry);
    const taking = others.find((other) => other["delete"] !== true);
    const current = taking && heldIn(taking);
    // The same object in two entries already belongs to its resource.
    if (!current || (current.id === original.id && current.provider === original.provider)) return [];
    const isGivenUp = contextOf(original.outputs).discard === true;
    const createdAt = createdIn(entry);
    return [{ resource, original, entry, current, others, isGivenUp, createdAt }];
  });
}

/** When an entry was added to the state, in RFC 3339. */
export const createdIn = ({ created }: Values): string | undefined =>
  typeof created === "string" ? created.replace(/\.\d+/, "") : undefined;

/** Whether data is deleted with the original: its own data, or that of objects in it. */
const isPrecious = (resource: Resource): boolean => resource.losesData !== undefined || resource === types["App"];

const isReference = ({ meta }: Field): boolean => meta.format === "reference";

/** A name that selects only this one. */
export const whole = ({ original: { urn, id } }: Replacement): string => `${urn}#${id}`;

/**
 * Selects replacements by the resource's name in the program, its URN, the original's id, or the first two with the id
 * behind a `#`. Without a name, it selects those with data or with other objects in them.
 * @throws MachinesError `invalid-input` for a name that matches none or several, with the choices
 */
export function chosen(all: readonly Replacement[], names: readonly string[]): Replacement[] {
  const open = all.filter(({ isGivenUp }) => !isGivenUp);
  const found =
    names.length === 0 ? open.filter(({ resource }) => isPrecious(resource)) : names.map((name) => named(all, name));
  const once = [...new Set(found)];
  for (const { original } of once) {
    const rivals = once.filter((other) => other.original.urn === original.urn);
    if (rivals.length > 1)
      throw new MachinesError(
        "invalid-input",
        `there are several originals of ${original.type} ${JSON.stringify(original.name)}, and one can be kept: name it.\n${listOf(rivals)}`,
      );
  }
  return once;
}

function named(all: readonly Replacement[], name: string): Replacement {
  const byId = all.filter(({ original: { urn, name: inProgram, id } }) =>
    [id, `${urn}#${id}`, `${inProgram}#${id}`].includes(name),
  );
  const byName = all.filter(({ original, isGivenUp }) => !isGivenUp && [original.urn, original.name].includes(name));
  const [one, ...more] = byId.length > 0 ? byId : byName;
  if (one && more.length === 0) return one;
  const why = one
    ? `${name} names several originals; name one by what is shown here`
    : `${name} names no original that waits for its deletion`;
  throw new MachinesError(
    "invalid-input",
    all.length === 0 ? `${why}; the state holds none` : `${why}:\n${listOf(one ? [one, ...more] : all)}`,
  );
}

const listOf = (all: readonly Replacement[]): string =>
  all
    .map((one) => {
      const { original, current, createdAt, isGivenUp } = one;
      const when = createdAt === undefined ? "" : `, created ${createdAt}`;
      return `  ${whole(one)}\n    the ${original.type} ${JSON.stringify(original.name)}${when}; ${isGivenUp ? "given up before for" : "replaced by"} ${current.id}`;
    })
    .join("\n");

/**
 * Inputs that would replace the original again: those that the program set differently when it was replaced. References are
 * omitted, because their targets may be restored too.
 */
export function changedBack({ resource, original, current }: Replacement): { input: string; before: string }[] {
  const isMade = contextOf(current.inputs).autonamed === true ? resource.autoname?.property : undefined;
  return resource.replaceOn.flatMap((input) => {
    const field = resource.inputFields[input];
    const [before, now] = [original.inputs[input], current.inputs[input]];
    if (!field || isReference(field) || input === isMade || before === undefined) return [];
    if (kindOf(field) === "computed" && now === undefined) return [];
    if (isSealed(before) || isSealed(now)) return [];
    return same(field, before, now)
      ? []
      : [{ input, before: field.meta.secret ? "the previous value" : JSON.stringify(before) }];
  });
}

/**
 * The resources of a deployment after undoing. Each original belongs to its resource again. All other entries with its URN
 * have a pending deletion, with the user's consent recorded. Dependencies still come before their dependents.
 */
export function undone(
  resources: readonly DeploymentEntry[],
  undoing: readonly Pick<Replacement, "entry" | "others">[],
): DeploymentEntry[] {
  const ordered = undoing.reduce(withOriginalFirst, resources);
  const originals = new Set(undoing.map(({ entry }) => entry));
  const givenUp = new Set(undoing.flatMap(({ others }) => others));
  return ordered.map((entry) =>
    originals.has(entry) ? restored(entry) : givenUp.has(entry) ? discarded(entry) : entry,
  );
}

/**
 * Moves an original, with its dependencies, to its position before its replacement. Dependents of the resource already come
 * after that, and the replacement stays before its current dependents: the engine deletes in this order.
 */
function withOriginalFirst(
  list: readonly DeploymentEntry[],
  { entry, others }: Pick<Replacement, "entry" | "others">,
): readonly DeploymentEntry[] {
  const current = others.find((other) => other["delete"] !== true);
  const at = current ? list.indexOf(current) : -1;
  if (at < 0 || list.indexOf(entry) < at) return list;
  const before = list.slice(0, at);
  const moved = withNeeds(entry, before, list.slice(at));
  return [...before, ...moved, ...list.slice(at).filter((other) => !moved.includes(other))];
}

/** As its resource's current object: no replacement or deletion is pending. */
function restored({ delete: _, taint: __, pendingReplacement: ___, ...entry }: DeploymentEntry): DeploymentEntry {
  return withContext(entry, ({ discard: ____, ...context }) => context);
}

/**
 * Marked for deletion in the next run. The engine would not delete a protected resource, and the protection was meant for
 * the original's data.
 */
function discarded({ protect: _, ...entry }: DeploymentEntry): DeploymentEntry {
  return { ...withContext(entry, (context) => ({ ...context, discard: true })), delete: true };
}

function withContext(entry: DeploymentEntry, change: (context: Values) => Values): DeploymentEntry {
  const next = (values: unknown): Values => {
    const { [CONTEXT]: _, ...rest } = isObject(values) ? values : {};
    const context = change({ ...contextOf(isObject(values) ? values : {}) });
    return Object.keys(context).length > 0 ? { ...rest, [CONTEXT]: context } : rest;
  };
  return { ...entry, inputs: next(entry["inputs"]), outputs: next(entry["outputs"]) };
}

// The data of the model engine: the resources of a program, and those of a state.
import { isObject } from "../../api/schema.ts";
import type { Values } from "../../provider/core/resource.ts";
import { UNKNOWN } from "../../provider/core/values.ts";
import type { ResourceName } from "../../provider/registry.ts";

/** A reference in a program to the id or an output of an earlier resource. */
export interface Reference {
  readonly $of: string;
  /** `id`, or the name of an output. */
  readonly get: string;
}

/** Resource options that the state saves. */
interface Options {
  readonly protect?: boolean;
  readonly retainOnDelete?: boolean;
  /** Inputs whose change replaces it, whatever the provider reports. */
  readonly replaceOnChanges?: readonly string[];
  /** How often a failed step is retried, as an `onError` hook requests. */
  readonly retries?: number;
}

/** One resource of a program. Names are unique in it. */
export interface Declared extends Options {
  readonly type: ResourceName;
  readonly name: string;
  readonly inputs: Values;
  /** Names of resources it waits for beside those in its inputs: `dependsOn`. */
  readonly after?: readonly string[];
  /** Its earlier names. */
  readonly aliases?: readonly string[];
  /** Replaced without calling the provider's diff. */
  readonly deleteBeforeReplace?: boolean;
}

/** One resource of a state. */
export interface Kept {
  readonly type: ResourceName;
  name: string;
  id: string;
  inputs: Values;
  state: Values;
  /** Names of its dependencies. */
  needs: readonly string[];
  /** The same for each of its inputs. */
  sources?: Readonly<Record<string, readonly string[]>>;
  /** Failures after its creation or change: the next up updates it even with an empty diff. */
  failed: readonly string[];
  /** `leaving`: replaced, and its deletion is pending; `replacing`: deleted, and its recreation is pending. */
  mark?: "leaving" | "replacing";
  /** The next up replaces it, even with an empty diff. */
  tainted?: boolean;
  options?: Options;
  /** The provider configuration with which it was created or last refreshed. */
  configuration?: Values | undefined;
}

/** The steps of an engine. */
export type Verb = "check" | "same" | "create" | "update" | "delete" | "read" | "import";

/** The engine's data between runs. */
export interface Stack {
  resources: Kept[];
  /** Steps that began and did not end: after an interrupted run, their result is unknown. */
  pending: { readonly verb: Verb; readonly type: ResourceName; readonly name: string }[];
  /** Resources removed from the state whose objects were deliberately kept. */
  orphans: Kept[];
}

/** An empty stack. */
export const emptyStack = (): Stack => ({ resources: [], pending: [], orphans: [] });

/** The data of a declared resource in the state, beside its values. */
export function optionsOf({ protect, retainOnDelete, replaceOnChanges, retries }: Declared): Options {
  return {
    ...(protect === undefined ? {} : { protect }),
    ...(retainOnDelete === undefined ? {} : { retainOnDelete }),
    ...(replaceOnChanges === undefined ? {} : { replaceOnChanges }),
    ...(retries === undefined ? {} : { retries }),
  };
}

const isReference = (value: unknown): value is Reference => isObject(value) && typeof value["$of"] === "string";

/** Names of the resources that inputs refer to. */
export function namesIn(value: unknown): string[] {
  if (isReference(value)) return [value.$of];
  const inner = Array.isArray(value) ? (value as unknown[]) : isObject(value) ? Object.values(value) : [];
  return [...new Set(inner.flatMap(namesIn))];
}

/** Names of all dependencies of a resource. */
export const needsOf = ({ inputs, after = [] }: Declared): string[] => [...new Set([...namesIn(inputs), ...after])];

/** Names of the dependencies of each input. */
export const sourcesOf = ({ inputs }: Declared): Record<string, readonly string[]> =>
  Object.fromEntries(Object.entries(inputs).map(([name, value]) => [name, namesIn(value)]));

/** Inputs with resolved references; outputs of resources not yet created are unknown. */
export function resolved(value: unknown, made: ReadonlyMap<string, Kept>): unknown {
  if (isReference(value)) {
    const found = made.get(value.$of);
    if (!found) return UNKNOWN;
    return value.get === "id" ? found.id : found.state[value.get];
  }
  if (Array.isArray(value)) return value.map((item: unknown) => resolved(item, made));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, resolved(inner, made)]));
}

/** Names and dependencies at the start of a run. */
export interface Past {
  readonly kept: Kept;
  readonly name: string;
  readonly needs: readonly string[];
}

/** All transitive dependents of a resource, dependents first. */
export function dependentsOf(root: Past, all: readonly Past[], ignored: ReadonlySet<string> = new Set()): Past[] {
  const names = new Set([root.name]);
  const found = new Set<Past>();
  for (let last = -1; last < found.size;) {
    last = found.size;
    for (const one of all) {
      if (one.kept === root.kept || ignored.has(one.name) || !one.needs.some((name) => names.has(name))) continue;
      found.add(one);
      names.add(one.name);
    }
  }
  const ordered: Past[] = [];
  const visit = (one: Past): void => {
    if (!found.delete(one)) return;
    for (const other of [...found]) if (one.needs.includes(other.name)) visit(other);
    ordered.push(one);
  };
  for (const one of [...found]) visit(one);
  return ordered;
}

/** `pulumi state delete`: forgets a resource and keeps its object. @throws Error while others need it */
export function stateDelete(stack: Stack, kept: Kept): void {
  const needed = stack.resources.some(({ name, mark }) => name === kept.name && mark === undefined);
  const users = stack.resources.filter(({ needs }) => needs.includes(kept.name));
  if (users.length > 0 && (kept.mark === undefined || !needed))
    throw new Error(`${kept.name} is needed by ${users.map(({ name }) => name).join(", ")}`);
  stack.resources = stack.resources.filter((other) => other !== kept);
  if (kept.mark !== "replacing") stack.orphans.push(kept);
}

/** `pulumi state taint`: the next up replaces it. */
export function taint(stack: Stack, name: string): void {
  for (const kept of stack.resources) if (kept.name === name && kept.mark === undefined) kept.tainted = true;
}

/** `pulumi state unprotect --all`. */
export function unprotect(stack: Stack): void {
  for (const kept of stack.resources) kept.options = { ...kept.options, protect: false };
}

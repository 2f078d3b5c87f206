// What the model of the engine works on: the resources of a program, and those of a state.
import { isObject } from "../../api/schema.ts";
import type { Values } from "../../provider/core/resource.ts";
import { UNKNOWN } from "../../provider/core/values.ts";

/** What stands in a program for the id or an output of an earlier resource. */
export interface Reference {
  readonly $of: string;
  /** `id`, or the name of an output. */
  readonly get: string;
}

/** Options of a resource that the state remembers. */
interface Options {
  readonly protect?: boolean;
  readonly retainOnDelete?: boolean;
  /** Inputs whose change replaces it, whatever the provider says. */
  readonly replaceOnChanges?: readonly string[];
  /** How often a step that fails is made again: what an `onError` hook asks for. */
  readonly retries?: number;
}

/** One resource of a program. Names are unique in it. */
export interface Declared extends Options {
  readonly type: string;
  readonly name: string;
  readonly inputs: Values;
  /** Names of resources it waits for beside those its inputs refer to: `dependsOn`. */
  readonly after?: readonly string[];
  /** Names it had before. */
  readonly aliases?: readonly string[];
  /** In whose place the provider's opinion is not asked. */
  readonly deleteBeforeReplace?: boolean;
}

/** One resource of a state. */
export interface Kept {
  readonly type: string;
  name: string;
  id: string;
  inputs: Values;
  state: Values;
  /** Names of what it was made with. */
  needs: readonly string[];
  /** The same for each of its inputs. */
  sources?: Readonly<Record<string, readonly string[]>>;
  /** What failed after it was made or changed: the next up updates it whatever its diff says. */
  failed: readonly string[];
  /** `leaving`: it was replaced, and is still to be deleted; `replacing`: it was deleted, and is still to be made anew. */
  mark?: "leaving" | "replacing";
  /** The next up replaces it, whatever its diff says. */
  tainted?: boolean;
  options?: Options;
  /** What the provider was configured with that it was made or last looked at with. */
  configuration?: Values | undefined;
}

/** What an engine can have the provider do. */
export type Verb = "check" | "same" | "create" | "update" | "delete" | "read" | "import";

/** What an engine keeps between runs. */
export interface Stack {
  resources: Kept[];
  /** Steps that were begun and did not end: after an interrupted run, nobody knows what became of them. */
  pending: { readonly verb: Verb; readonly type: string; readonly name: string }[];
  /** What was taken out of the state and left where it is, because somebody said so. */
  orphans: Kept[];
}

/** A stack without anything in it. */
export const emptyStack = (): Stack => ({ resources: [], pending: [], orphans: [] });

/** What a declared resource leaves in the state beside its values. */
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

/** Names of everything a resource waits for. */
export const needsOf = ({ inputs, after = [] }: Declared): string[] => [...new Set([...namesIn(inputs), ...after])];

/** Names of what each input refers to. */
export const sourcesOf = ({ inputs }: Declared): Record<string, readonly string[]> =>
  Object.fromEntries(Object.entries(inputs).map(([name, value]) => [name, namesIn(value)]));

/** Inputs with what they refer to in place of the references; what was not made is not known. */
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

/** Names and needs as they were when a run began. */
export interface Past {
  readonly kept: Kept;
  readonly name: string;
  readonly needs: readonly string[];
}

/** What depends on a resource, directly or not, with what others need before these. */
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

/** `pulumi state delete`: forgets a resource and leaves it where it is. @throws Error while others need it */
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

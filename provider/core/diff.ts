// Computes which inputs changed and the consequence: the one diff of all resources in both bindings (R1, R2, R4). No
// I/O.
import { isObject, type Field } from "../../api/schema.ts";
import { contextOf, kindOf, type Resource, type Values } from "./resource.ts";
import { canonical, equal, fieldAt, UNKNOWN } from "./values.ts";

/** One property that differs, at the depth where it does. */
export interface Change {
  readonly path: readonly (string | number)[];
  readonly kind: "add" | "update" | "delete";
  /** The new value is unknown; it never causes a replacement (R2). */
  readonly unknown: boolean;
  readonly replaces: boolean;
}

/** The result of comparing inputs. */
export interface Diff {
  readonly changes: readonly Change[];
  /** Top-level properties whose change replaces the resource. */
  readonly replaces: readonly string[];
  /** Whether a replacement deletes first. It also applies if only the program requests one (`replaceOnChanges`). */
  readonly deleteBeforeReplace: boolean;
}

/** Compares the old state (its owned inputs) with checked new inputs. */
export function diffInputs(resource: Resource, state: Values, news: Values): Diff {
  const changes: Change[] = [];
  for (const [name, field] of Object.entries(resource.inputFields)) {
    if (kindOf(field) === "computed" && news[name] === undefined) continue;
    compare(field, canonical(field, state[name]), canonical(field, news[name]), [name], ({ path, unknown }) => {
      changes.push({
        path,
        unknown,
        kind: kindOfChange(state, news, path),
        replaces: !unknown && asksToReplace(resource, path),
      });
    });
  }
  const pending = resource.pendingWhen?.(state, news);
  if (pending && (pending.replaces || !changes.some(({ path }) => path[0] === pending.property)))
    changes.push({ path: [pending.property], kind: "update", unknown: false, replaces: pending.replaces });
  const replaces = [...new Set(changes.filter((change) => change.replaces).map(({ path }) => String(path[0])))];
  return { changes, replaces, deleteBeforeReplace: mustDeleteFirst(resource, state, news) };
}

/** R1: the changes that are sent. */
export const sentChanges = (resource: Resource, state: Values, news: Values): readonly Change[] =>
  diffInputs(resource, state, news).changes.filter((change) => isSent(resource, change));

/** R1: whether a change is sent. Behaviour inputs and their parts are not, nor is a lower bound that is removed: it requires nothing. */
function isSent(resource: Resource, { path, kind }: Pick<Change, "path" | "kind">): boolean {
  const [name = "", ...rest] = path;
  let field = resource.inputFields[String(name)];
  if (field?.meta.format === "greatest" && kind === "delete") return false;
  for (const part of rest) {
    if (!field || kindOf(field) === "behaviour") break;
    field = fieldAt(field, part);
  }
  return field === undefined || kindOf(field) !== "behaviour";
}

/** The kind of a change. A change to or from an explicit default is neither an addition nor a removal. */
function kindOfChange(state: Values, news: Values, path: Change["path"]): Change["kind"] {
  const isAt = (values: unknown): boolean => {
    let at = values;
    for (const part of path) at = isObject(at) || Array.isArray(at) ? (at as Values)[part] : undefined;
    return at !== undefined && at !== null;
  };
  if (!isAt(state)) return "add";
  return isAt(news) ? "update" : "delete";
}

function compare(
  field: Field | undefined,
  old: unknown,
  next: unknown,
  path: readonly (string | number)[],
  found: (change: Pick<Change, "path" | "unknown">) => void,
): void {
  if (equal(old, next)) return;
  const unknown = next === UNKNOWN;
  if (old === undefined || next === undefined) return found({ path, unknown });
  const inside = field && ((isObject(old) && isObject(next)) || (Array.isArray(old) && Array.isArray(next)));
  if (!inside || field.shape.kind === "leaf") return found({ path, unknown });
  const names: (string | number)[] = Array.isArray(old)
    ? [...Array(Math.max(old.length, (next as unknown[]).length)).keys()]
    : [...new Set([...Object.keys(old), ...Object.keys(next)])];
  for (const name of names) {
    const [before, after] = [(old as Values)[name], (next as Values)[name]];
    compare(fieldAt(field, name), before ?? undefined, after ?? undefined, [...path, name], found);
  }
}

const asksToReplace = (resource: Resource, path: readonly (string | number)[]): boolean =>
  resource.replaceOn.some((pattern) => matches(pattern.split("."), path));

/** A pattern matches its own path, everything below it, and every path that contains it; `*` is any item. */
export const matches = (pattern: readonly (string | number)[], path: readonly (string | number)[]): boolean =>
  pattern.every((part, i) => i >= path.length || part === "*" || String(part) === String(path[i]));

/**
 * R4: the engine creates before it deletes. If old and new would use the same thing, the old one has to be deleted first.
 * Such things are an id that the user chose, a fixed name and a mounted volume.
 */
function mustDeleteFirst(resource: Resource, state: Values, news: Values): boolean {
  const keeps = (name: string) => {
    const field = resource.inputFields[name];
    return (
      field &&
      news[name] !== undefined &&
      news[name] !== UNKNOWN &&
      equal(canonical(field, state[name]), canonical(field, news[name]))
    );
  };
  const nameStays = resource.uniqueBy.length > 0 && resource.uniqueBy.every(keeps) && !contextOf(news).autonamed;
  return nameStays || (resource.sharesWith?.(state, news) ?? false);
}

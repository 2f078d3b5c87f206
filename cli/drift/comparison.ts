// Compares a resource of the state with its object, as a refresh does: the same read and the same diff. Only reads.
import { isObject, type Field } from "../../api/schema.ts";
import { secretIn } from "../../policy/core/secretText.ts";
import { parsePath } from "../../provider/plugin/propertyPath.ts";
import { messageForUser } from "../../provider/client/errors.ts";
import { diffInputs, matches } from "../../provider/core/diff.ts";
import { read, type Caller } from "../../provider/core/verbs/index.ts";
import { ownerOf } from "../../provider/core/owner.ts";
import { hide, leavesIn, withheld, type SecretMarks, type Withheld } from "../../provider/core/redaction.ts";
import { CONTEXT, contextOf, type Values } from "../../provider/core/resource.ts";
import { fieldAt, pathText } from "../../provider/core/values.ts";
import { resources } from "../../provider/registry.ts";
import { isDynamic } from "../stackState.ts";
import type { OpenResource, Path } from "./openState.ts";

/** A property whose values differ. */
export interface Difference {
  /** `config.env["A.B"]`. */
  readonly path: string;
  /** The values of the state and of the service; undefined where there is none, or if they are secret. */
  readonly state: unknown;
  readonly live: unknown;
  /** Whether a value is secret, or may hold a secret. */
  readonly isSecret: boolean;
}

/** How a resource of the state compares with its object. */
export type Status = "unchanged" | "changed" | "missing" | "unchecked";

/** The result for one resource. */
export interface Checked {
  readonly resource: OpenResource;
  readonly status: Status;
  readonly differences: readonly Difference[];
  /** Why it could not be checked. */
  readonly reason: string | undefined;
}

/** The result for a resource that could not be checked. */
export const unchecked = (resource: OpenResource, reason: string): Checked => ({
  ...{ resource, status: "unchecked", differences: [], reason },
});

/** Reads the object of a resource and compares it with the state. A failure is part of the result. */
export async function checkResource(held: OpenResource, caller: Caller): Promise<Checked> {
  const { type, id, inputs, outputs, ignoredPaths } = held;
  const resource = Object.hasOwn(resources, type) ? resources[type] : undefined;
  if (resource === undefined)
    return unchecked(held, `this version of pulumi-machines has no ${type}; is it older than the stack?`);
  if (held.isPending)
    return unchecked(held, "its creation was interrupted, and its result is unknown: `pulumi up` settles that.");
  const { inputFields, outputFields } = resource;
  const fields = { ...outputFields, ...inputFields };
  try {
    const seen = await read(resource, id, stateOf(held), caller);
    if (seen === undefined) return { resource: held, status: "missing", differences: [], reason: undefined };
    const { state: live } = seen;
    const ignored = ignoredPaths.map(parsePath);
    const changes = diffInputs(resource, live, inputs).changes.filter(
      ({ path }) => !ignored.some((pattern) => pattern.length <= path.length && matches(pattern, path)),
    );
    // A fleet says there which of its Machines differ, and also repeats what its inputs show.
    const { drift } = live;
    if (
      changes.length > 0 &&
      Array.isArray(drift) &&
      drift.length > 0 &&
      !changes.some(({ path }) => path[0] === "drift")
    )
      changes.push({ path: ["drift"], kind: "update", unknown: false, replaces: false });
    const marks = marksAt(held.secretPaths);
    const secrets = [inputs, outputs, live].flatMap((values) => withheld(fields, values, marks));
    const differences = changes.map(({ path }) => {
      const isInput = Object.hasOwn(inputFields, String(path[0]));
      const values = [valueAt(isInput ? inputs : outputs, path), valueAt(live, path)] as const;
      return difference(path, values, { isSecret: isSecretAt(fields, held.secretPaths, path, values), secrets });
    });
    differences.sort((a, b) => (a.path < b.path ? -1 : 1));
    return { resource: held, status: changes.length === 0 ? "unchanged" : "changed", differences, reason: undefined };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    // A message may quote values that only may be secret, too.
    const marks = marksAt(held.secretPaths);
    const quoted = [inputs, outputs].flatMap((values) => [
      ...withheld(fields, values, "unreported"),
      ...withheld(fields, values, marks),
    ]);
    return unchecked(held, hide(quoted, messageForUser(error)));
  }
}

/** The state in core's form. The plugin gets its owner from the engine, with every request. */
function stateOf({ urn, name, outputs }: OpenResource): Values {
  if (isDynamic(urn)) return outputs;
  return { ...outputs, [CONTEXT]: { ...contextOf(outputs), owner: ownerOf(urn), name } };
}

type Fields = Readonly<Record<string, Field>>;

/** The marks of values that are secret at these paths. */
function marksAt(paths: readonly Path[]): SecretMarks {
  const within = new Map<string | number, Path[]>();
  for (const [first, ...rest] of paths)
    if (first !== undefined) within.set(first, [...(within.get(first) ?? []), rest]);
  return {
    secret: paths.some(({ length }) => length === 0),
    within: new Map([...within].map(([name, inner]) => [name, marksAt(inner)])),
  };
}

/** The secrets of a resource in the state: for the program, or by its schema. */
export function secretsOf({ type, inputs, outputs, secretPaths }: OpenResource): readonly Withheld[] {
  const resource = Object.hasOwn(resources, type) ? resources[type] : undefined;
  const fields = { ...resource?.outputFields, ...resource?.inputFields };
  const marks = marksAt(secretPaths);
  return [inputs, outputs].flatMap((values) => withheld(fields, values, marks));
}

/** The value at a path. */
export function valueAt(values: Values, path: Path): unknown {
  let found: unknown = values;
  for (const part of path)
    found =
      (isObject(found) || Array.isArray(found)) && Object.hasOwn(found, part) ? (found as Values)[part] : undefined;
  return found ?? undefined;
}

/** Whether a difference is, contains, or lies in something secret: for the program, by its schema, or by its looks. */
export function isSecretAt(
  fields: Fields,
  secretPaths: readonly Path[],
  path: Path,
  values: readonly unknown[],
): boolean {
  const lies = (inner: Path, outer: Path): boolean => outer.every((part, i) => String(part) === String(inner[i]));
  if (secretPaths.some((one) => lies(path, one) || lies(one, path))) return true;
  let field = fields[String(path[0])];
  for (const part of path.slice(1)) {
    if (field === undefined || isWithheld(field)) break;
    field = fieldAt(field, part);
  }
  if (field !== undefined && (isWithheld(field) || values.some((value) => holdsWithheld(field, value)))) return true;
  return values.some((value) => looksSecret(String(path.at(-1)), value));
}

const isWithheld = ({ meta }: Field): boolean => meta.secret === true || meta.sensitive === true;

function holdsWithheld(field: Field | undefined, value: unknown): boolean {
  if (field === undefined) return false;
  if (isWithheld(field)) return leavesIn(value).length > 0;
  if (Array.isArray(value)) return value.some((inner, i) => holdsWithheld(fieldAt(field, i), inner));
  return isObject(value) && Object.entries(value).some(([name, inner]) => holdsWithheld(fieldAt(field, name), inner));
}

function looksSecret(name: string, value: unknown): boolean {
  if (typeof value === "string") return secretIn(name, value, { names: [], entropy: 4.2 }) !== undefined;
  if (Array.isArray(value)) return value.some((item) => looksSecret(name, item));
  return isObject(value) && Object.entries(value).some(([inner, item]) => looksSecret(inner, item));
}

function difference(
  path: Path,
  [state, live]: readonly [state: unknown, live: unknown],
  { isSecret, secrets }: { readonly isSecret: boolean; readonly secrets: readonly Withheld[] },
): Difference {
  const shown = (value: unknown): unknown => (isSecret ? undefined : withoutLeaves(value, secrets));
  return { path: hide(secrets, pathText(path)), state: shown(state), live: shown(live), isSecret };
}

/** A value whose texts quote none of the secrets that other properties have. */
function withoutLeaves(value: unknown, secrets: readonly Withheld[]): unknown {
  if (typeof value === "string") return hide(secrets, value);
  if (Array.isArray(value)) return value.map((item) => withoutLeaves(item, secrets));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [hide(secrets, name), withoutLeaves(inner, secrets)]),
  );
}

// Whether inputs can work, before anything happens: types, names, limits, refusals (R3, R9). Fills defaults and names.
// No I/O; values not known yet pass.
import { z } from "zod";
import { define, isObject, type Field } from "../../api/schema.ts";
import { dataLoss, mayLoseData } from "./dataLoss.ts";
import { didYouMean } from "./didYouMean.ts";
import type { Journal } from "./journal.ts";
import type { Run } from "./run.ts";
import { CONTEXT, contextOf, kindOf, type Context, type Problem, type Resource, type Values } from "./resource.ts";
import { hasUnknown, pathText, same, UNKNOWN, withoutUndefined } from "./values.ts";

/** Result of a check: the inputs the engine keeps, and why they cannot work. */
export interface Checked {
  readonly inputs: Values;
  readonly problems: readonly string[];
}

/** Inputs of check from outside; none of them is I/O. */
export interface Surroundings {
  /** Random hexadecimal characters. */
  readonly randomHex: (characters: number) => string;
  /** Facts about the run: the state, and the interrupted creates. */
  readonly run: Pick<Run, "inputsInState" | "lossByParent" | "nameInState"> & {
    readonly journal: Pick<Journal, "find">;
  };
  /** The name that the engine proposes, if any: fitted to our rules, taken unchanged, or a ban on generated names. */
  readonly proposal?: { readonly name: string; readonly mode: "propose" | "enforce" | "disable" } | undefined;
  /** Warns the user of a finding of the service that does not fail the preview. */
  readonly warn?: ((message: string) => void) | undefined;
  /** Whether the value at a path is a secret of the program's, which no message may quote. */
  readonly isSecret?: ((path: readonly (string | number)[]) => boolean) | undefined;
}

/** Checks new inputs against the resource's declaration and the inputs before (`{}` when there are none). */
export function check(resource: Resource, olds: Values, news: Values, around: Surroundings): Checked {
  const problems: Problem[] = [];
  const given = contextOf(news);
  const inputs = knownProperties(resource.inputFields, news, problems);
  const autonamed = fillName(resource, olds, inputs, given, around);
  if (resource.autoname && inputs[resource.autoname.property] === undefined)
    problems.push({
      path: [resource.autoname.property],
      message: "is required, because pulumi:autonaming is switched off for this resource",
    });
  fillAndCheck(resource.inputFields, inputs, { problems, isSecret: around.isSecret });
  // The engine checks the inputs of a replacement without the inputs before.
  const isMade = Object.keys(olds).some((name) => !name.startsWith("__"));
  if (problems.length === 0)
    problems.push(
      ...(resource.validate?.(known(inputs) as Values, isMade) ?? []).filter(
        ({ path, about }) => !hasUnknown(about ? about.map((name) => inputs[name]) : holderOf(inputs, path)),
      ),
    );
  if (problems.length === 0 && isMade) problems.push(...refusals(resource, olds, inputs, around));
  problems.push(...findings(resource, olds, inputs, given, around));

  const context: Context = withoutUndefined({
    owner: given.owner,
    timeouts: Object.keys(given.timeouts ?? {}).length > 0 ? given.timeouts : undefined,
    autonamed: autonamed || undefined,
    left: computedLeft(resource, inputs),
  }) as Context;
  if (Object.keys(context).length > 0) inputs[CONTEXT] = context;
  return {
    inputs,
    problems: problems.map(({ path, message }) => (path.length > 0 ? `${pathText(path)}: ${message}` : message)),
  };
}

/** The inputs with defaults filled in, and their problems. Names of resources are not generated here. */
export function problemsOf(
  fields: Readonly<Record<string, Field>>,
  values: Values,
): { readonly inputs: Values; readonly problems: readonly Problem[] } {
  const problems: Problem[] = [];
  const inputs = knownProperties(fields, values, problems);
  fillAndCheck(fields, inputs, { problems, isSecret: undefined });
  return { inputs, problems };
}

/** The values that are known fields and not null. Unknown properties are reported as problems. */
function knownProperties(fields: Readonly<Record<string, Field>>, values: Values, problems: Problem[]): Values {
  const inputs: Values = {};
  for (const [name, value] of Object.entries(withoutUndefined(values))) {
    if (name.startsWith("__")) continue;
    if (!Object.hasOwn(fields, name))
      problems.push({ path: [name], message: unknownProperty(name, Object.keys(fields)) });
    else if (value !== null) define(inputs, name, value);
  }
  return inputs;
}

function fillAndCheck(fields: Readonly<Record<string, Field>>, inputs: Values, found: ProblemCollector): void {
  for (const [name, field] of Object.entries(fields)) {
    if (inputs[name] === undefined && field.default !== undefined) define(inputs, name, field.default);
    checkValue(field, inputs[name], [name], found, false);
  }
}

const computedLeft = (resource: Resource, inputs: Values): string[] | undefined => {
  const names = Object.entries(resource.inputFields).filter(
    ([name, field]) => kindOf(field) === "computed" && field.meta["creation"] !== true && inputs[name] === undefined,
  );
  return names.length > 0 ? names.map(([name]) => name) : undefined;
};

/** Generates a name if none is given. It returns whether the name in `inputs` is a generated one. */
function fillName(resource: Resource, olds: Values, inputs: Values, given: Context, around: Surroundings): boolean {
  if (!resource.autoname) return false;
  const { property } = resource.autoname;
  const { proposal } = around;
  if (inputs[property] !== undefined) return false;
  const proposed =
    proposal?.mode === "enforce"
      ? proposal.name
      : proposal?.mode === "propose"
        ? fitted(resource.autoname, proposal.name, "")
        : undefined;
  // Leaving the name out does not ask for another one. The existing name is kept, generated or chosen (R1).
  if (olds[property] !== undefined) {
    inputs[property] = olds[property];
    // A name that would be proposed again is as good as a fixed one (R4).
    return (contextOf(olds).autonamed ?? false) && proposed !== olds[property];
  }
  const interrupted = resource.autoname.random ? around.run.journal.find(given.owner)?.name : undefined;
  if (interrupted !== undefined) {
    inputs[property] = interrupted;
    return true;
  }
  if (proposal?.mode === "disable") return false;
  const suffix = resource.autoname.random ? resource.autoname.separator + around.randomHex(7) : "";
  inputs[property] =
    proposed || fitted(resource.autoname, given.name ?? resource.name, suffix) || resource.name.toLowerCase() + suffix;
  return true;
}

/** A name in the characters and the length that are allowed; empty when nothing of it is left. */
function fitted({ maxLength, separator }: NonNullable<Resource["autoname"]>, name: string, suffix: string): string {
  const base = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, separator)
    .slice(0, maxLength - suffix.length)
    .replace(new RegExp(`^${separator}+|${separator}+$`, "g"), "");
  return base && base + suffix;
}

/** Collects the problems of inputs, and knows which values no message may quote. */
interface ProblemCollector {
  readonly problems: Problem[];
  readonly isSecret: Surroundings["isSecret"];
}

function checkValue(
  field: Field,
  value: unknown,
  path: readonly (string | number)[],
  found: ProblemCollector,
  quiet: boolean,
): void {
  const { problems } = found;
  if (value === UNKNOWN) return;
  if (value === undefined || value === null) {
    if (!field.optional && field.default === undefined)
      problems.push({
        path,
        message: field.meta.description === undefined ? "is required" : `is required: ${field.meta.description}`,
      });
    return;
  }
  const { shape } = field;
  const hidden =
    quiet || field.meta.secret === true || field.meta.sensitive === true || found.isSecret?.(path) === true;
  // A value of the wrong type may contain secrets, so it is never quoted.
  const wrongType = (allowed: string) => problems.push({ path, message: `got ${typeOf(value)}; must be ${allowed}` });
  if (shape.kind === "leaf") {
    const problem = firstIssue(shape.schema, value);
    if (problem !== undefined)
      problems.push({ path, message: `got ${hidden ? typeOf(value) : shown(value)}; ${problem}` });
  } else if (shape.kind === "array") {
    if (!Array.isArray(value)) return void wrongType("a list");
    value.forEach((item: unknown, i) => checkValue(shape.item, item, [...path, i], found, hidden));
    if (!hasUnknown(value)) listLimits(shape.schema, value, path, problems);
  } else if (!isObject(value)) {
    wrongType(shape.kind === "record" ? "a map" : `an object with ${Object.keys(shape.fields).slice(0, 6).join(", ")}`);
  } else if (shape.kind === "record") {
    for (const [name, inner] of Object.entries(value)) {
      const problem =
        shape.schema instanceof z.ZodRecord ? firstIssue(shape.schema.keyType as z.ZodType, name) : undefined;
      if (problem !== undefined) problems.push({ path: [...path, name], message: `the name ${problem}` });
      checkValue(shape.value, inner, [...path, name], found, hidden);
    }
  } else {
    for (const name of Object.keys(value)) {
      if (!Object.hasOwn(shape.fields, name))
        problems.push({ path: [...path, name], message: unknownProperty(name, Object.keys(shape.fields)) });
    }
    for (const [name, inner] of Object.entries(shape.fields))
      checkValue(inner, value[name], [...path, name], found, hidden);
  }
}

/** Limits on the list itself; the items have been looked at one by one. */
function listLimits(schema: z.ZodType, value: unknown, path: readonly (string | number)[], problems: Problem[]): void {
  if (!schema.def.checks?.length) return;
  const result = schema.safeParse(value, { jitless: true });
  for (const issue of result.success ? [] : result.error.issues) {
    if (issue.path.length === 0) problems.push({ path, message: issue.message });
  }
}

function firstIssue(schema: z.ZodType, value: unknown): string | undefined {
  const result = schema.safeParse(value);
  return result.success ? undefined : (result.error.issues[0]?.message ?? "is not allowed");
}

const typeOf = (value: unknown): string =>
  Array.isArray(value) ? "a list" : isObject(value) ? "an object" : `a ${typeof value}`;

const shown = (value: unknown): string => {
  const text = isObject(value) || Array.isArray(value) ? typeOf(value) : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
};

function unknownProperty(name: string, names: readonly string[]): string {
  const meant = didYouMean(name, names);
  return `there is no such property${meant === undefined ? `; known are ${names.join(", ")}` : `; did you mean ${meant}?`}`;
}

/**
 * The object that contains the property at a path. A rule about the property is judged once all of that object is
 * known.
 */
function holderOf(value: unknown, path: readonly (string | number)[]): unknown {
  let holder: unknown = value;
  for (const part of path.slice(0, -1)) holder = (holder as Record<string | number, unknown> | undefined)?.[part];
  return holder;
}

/** The value without its unknown parts. */
function known(value: unknown): unknown {
  if (value === UNKNOWN) return undefined;
  if (Array.isArray(value)) return value.map((item: unknown) => known(item) ?? {});
  if (!isObject(value)) return value;
  const out: Values = {};
  for (const [name, inner] of Object.entries(value)) {
    const kept = known(inner);
    if (kept !== undefined) define(out, name, kept);
  }
  return out;
}

/** R3, R9 and R11: refuses changes from old to new inputs that are not allowed. */
function refusals(resource: Resource, olds: Values, inputs: Values, around: Surroundings): Problem[] {
  const refused = resource.refuse?.(known(olds) as Values, known(inputs) as Values);
  if (refused) return [refused];
  const lost = around.run.lossByParent(resource, olds, inputs);
  if (lost) return [lost];
  if (resource.losesData === undefined || mayLoseData(resource, inputs)) return [];
  return resource.replaceOn
    .filter((name) => {
      const field = resource.inputFields[name];
      if (
        !field ||
        hasUnknown(inputs[name]) ||
        (kindOf(field) === "computed" && (inputs[name] === undefined || olds[name] === undefined))
      )
        return false;
      return !same(field, olds[name], inputs[name]);
    })
    .map((name) => ({ path: [name], message: dataLoss(resource, name) }));
}

/** Findings of the service at preview that concern a new or changed input. */
function findings(resource: Resource, olds: Values, inputs: Values, given: Context, around: Surroundings): Problem[] {
  return (Array.isArray(given.findings) ? given.findings : []).flatMap((finding: unknown) => {
    if (!isObject(finding)) return [];
    const [name, message] = [String(finding["property"]), String(finding["message"])];
    const field = resource.inputFields[name];
    // A replacement is checked without the original, and the original itself still has the name.
    const before = Object.keys(olds).length > 0 ? olds : around.run.inputsInState(given.owner);
    const ownName = name === resource.autoname?.property && around.run.nameInState(given.owner) === inputs[name];
    if (!field || ownName || same(field, before[name], inputs[name])) return [];
    if (finding["isWarning"] !== true) return [{ path: [name], message }];
    around.warn?.(`${resource.name} ${name}: ${message}`);
    return [];
  });
}

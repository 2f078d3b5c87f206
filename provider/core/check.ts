// Checks whether inputs are valid, before anything happens: types, names, limits, refusals (R3, R9). Fills defaults and
// names. No I/O; unknown values are accepted.
import { z } from "zod";
import { define, formProblem, isObject, type Field } from "../../api/schema.ts";
import { firstIssue, isOtherOption, meantText, unknownName, validated } from "../../api/validated.ts";
import { inputChangeRefusal, mayLoseData } from "./dataLoss.ts";
import type { Journal } from "./journal.ts";
import { oncePerInput } from "./oncePerInput.ts";
import type { Run } from "./run/run.ts";
import {
  CONTEXT,
  contextOf,
  kindOf,
  isSameObject,
  usedAlone,
  type UsedAlone,
  type Context,
  type Finding,
  type Problem,
  type Resource,
  type Values,
} from "./resource.ts";
import { greatestOf, hasInputs, hasUnknown, located, pathText, same, UNKNOWN, withoutUndefined } from "./values.ts";
import { completeWriteOnly, withoutWriteOnly } from "./writeOnly.ts";

/** Result of a check: the inputs that the engine keeps, and their problems. */
export interface Checked {
  readonly inputs: Values;
  readonly problems: readonly string[];
  /** Those of them that refuse a change, by the changed input. A value that cannot be used at all matters more. */
  readonly refusedChanges: ReadonlyMap<string, string>;
}

/** External inputs of check, without I/O. */
export interface Surroundings {
  /** Random hexadecimal characters. */
  readonly randomHex: (characters: number) => string;
  /**
   * Whether the update will generate other random characters than this preview: then a generated name is unknown, because a saved
   * plan holds the update to every known input.
   */
  readonly isNameOpen?: boolean | undefined;
  /** Facts about the run: the state, and the interrupted creates. */
  readonly run: Pick<Run, "program" | "guards" | "problems"> & { readonly journal: Pick<Journal, "find"> };
  /** The object's state, if the engine sent it: it has the service's choices for inputs that the program left out. */
  readonly state?: Values | undefined;
  /** The name that the engine proposes, if any: fitted to our rules, taken unchanged, or a ban on generated names. */
  readonly proposal?: { readonly name: string; readonly mode: "propose" | "enforce" | "disable" } | undefined;
  /** Warns the user of a finding that does not fail the preview. */
  readonly warn?: ((message: string) => void) | undefined;
  /** Whether the program marks the value at a path as secret, so that no message may quote it. */
  readonly isSecret?: ((path: readonly (string | number)[]) => boolean) | undefined;
}

/** Checks new inputs against the resource's declaration and the old inputs (`{}` when there are none). */
export function checkInputs(resource: Resource, olds: Values, news: Values, around: Surroundings): Checked {
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const given = contextOf(news);
  const inputs = knownProperties(resource.inputFields, news, problems);
  const autonamed = fillName(resource, olds, inputs, given, around);
  if (resource.autoname && inputs[resource.autoname.property] === undefined)
    problems.push({
      path: [resource.autoname.property],
      message: "is required, because pulumi:autonaming is switched off for this resource",
    });
  // The engine checks the inputs of a replacement without the inputs before.
  const isMade = hasInputs(olds);
  problems.push(...completeWriteOnly(resource, olds, inputs, isMade));
  const unread = new Set(isMade ? neverRead(resource, olds) : []);
  fillAndCheck(resource.inputFields, inputs, { problems, warnings, isSecret: around.isSecret, unread });
  for (const { path, message } of warnings) around.warn?.(`${resource.name} ${pathText(path)}: ${message}`);
  if (problems.length === 0)
    problems.push(
      ...(resource.validate?.(known(inputs) as Values, isMade) ?? []).filter(
        ({ path, about }) => !hasUnknown(about ? about.map((name) => inputs[name]) : holderOf(inputs, path)),
      ),
    );
  const asked = findings(resource, olds, inputs, given, around, problems);
  // The refusal of a change to a region that does not exist would explain how to move there.
  const refused =
    problems.length === 0 && isMade
      ? refusals(resource, olds, inputs, around).filter(
          ({ path: [name] }) => !asked.some(({ path }) => path[0] === name),
        )
      : [];
  const withContext = { ...inputs, [CONTEXT]: given };
  problems.push(
    ...asked,
    ...refused,
    ...alreadyUsed(resource, olds, withContext, given, around),
    // A region that does not exist differs from that of the volume, too.
    ...disagreements(resource, withContext, around).filter(
      ({ path: [name] }) => ![...problems, ...asked].some(({ path }) => path[0] === name),
    ),
  );

  const context: Context = withoutUndefined({
    owner: given.owner,
    timeouts: Object.keys(given.timeouts ?? {}).length > 0 ? given.timeouts : undefined,
    autonamed: autonamed || undefined,
    left: computedLeft(resource, inputs),
  }) as Context;
  if (Object.keys(context).length > 0) inputs[CONTEXT] = context;
  // Without an owner there is no state, and no memory of the run could find the values again.
  return {
    inputs: given.owner === undefined ? inputs : withoutWriteOnly(resource, inputs),
    problems: problems.map(({ path, message }) => located(path, message)),
    refusedChanges: new Map(refused.map(({ path, message }) => [String(path[0]), located(path, message)])),
  };
}

/**
 * Required inputs of an existing object that an import could not read back, such as the value of a secret. They may be left
 * out: the object keeps what it has. The engine leaves them out too, if the program ignores their changes.
 */
const neverRead = (resource: Resource, olds: Values): readonly string[] =>
  Object.entries(resource.inputFields).flatMap(([name, field]) =>
    !field.optional && field.default === undefined && olds[name] === undefined ? [name] : [],
  );

/** The inputs with defaults filled in, and their problems. Names of resources are not generated here. */
export function problemsOf(
  fields: Readonly<Record<string, Field>>,
  values: Values,
): { readonly inputs: Values; readonly problems: readonly Problem[] } {
  const problems: Problem[] = [];
  const inputs = knownProperties(fields, values, problems);
  fillAndCheck(fields, inputs, { problems, warnings: [], isSecret: undefined, unread: new Set() });
  return { inputs, problems };
}

/** The values that are known fields and not null. Unknown properties are reported as problems. */
function knownProperties(fields: Readonly<Record<string, Field>>, values: Values, problems: Problem[]): Values {
  const inputs: Values = {};
  for (const [name, value] of Object.entries(withoutUndefined(values))) {
    if (name.startsWith("__")) continue;
    if (!Object.hasOwn(fields, name)) problems.push({ path: [name], message: unknownName(name, Object.keys(fields)) });
    else if (value !== null) define(inputs, name, value);
  }
  return inputs;
}

function fillAndCheck(fields: Readonly<Record<string, Field>>, inputs: Values, found: ProblemCollector): void {
  for (const [name, field] of Object.entries(fields)) {
    if (inputs[name] === undefined && field.default !== undefined) define(inputs, name, field.default);
    const value = inputs[name];
    if (value === undefined && found.unread.has(name)) continue;
    if (field.meta.format === "greatest" && Array.isArray(value)) {
      const item = { ...field, optional: true };
      value.forEach((one: unknown, i) => checkValue(item, one, [name, i], found, false));
      define(inputs, name, greatestOf(value));
    } else checkValue(field, value, [name], found, false);
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
  // Omitting the name does not request another one. The existing name is kept, generated or chosen (R1).
  if (olds[property] !== undefined) {
    inputs[property] = olds[property];
    // A name that would be proposed again counts as a fixed one (R4).
    return (contextOf(olds).autonamed ?? false) && proposed !== olds[property];
  }
  const interrupted = resource.autoname.random ? around.run.journal.find(given.owner)?.name : undefined;
  if (interrupted !== undefined) {
    inputs[property] = interrupted;
    return true;
  }
  if (proposal?.mode === "disable") return false;
  if (resource.autoname.random && around.isNameOpen) {
    inputs[property] = proposed || UNKNOWN;
    return true;
  }
  const suffix = resource.autoname.random ? resource.autoname.separator + around.randomHex(7) : "";
  inputs[property] =
    proposed || fitted(resource.autoname, given.name ?? resource.name, suffix) || resource.name.toLowerCase() + suffix;
  return true;
}

/** A name reduced to the allowed characters and length; empty if nothing remains. */
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
  readonly warnings: Problem[];
  readonly isSecret: Surroundings["isSecret"];
  /** Required inputs that may be missing. */
  readonly unread: ReadonlySet<string>;
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
    checkLeaf(field, value, path, { ...found, hidden });
  } else if (shape.kind === "array") {
    if (!Array.isArray(value)) return void wrongType("a list");
    value.forEach((item: unknown, i) => checkValue(shape.item, item, [...path, i], found, hidden));
    if (!hasUnknown(value)) listLimits(shape.schema, value, path, problems);
  } else if (!isObject(value)) {
    wrongType(shape.kind === "record" ? "a map" : `an object with ${Object.keys(shape.fields).slice(0, 6).join(", ")}`);
  } else if (shape.kind === "record") {
    for (const [name, inner] of Object.entries(value)) {
      const issue =
        shape.schema instanceof z.ZodRecord ? firstIssue(shape.schema.keyType as z.ZodType, name) : undefined;
      if (issue) problems.push({ path: [...path, name], message: `the name ${issue.message}` });
      checkValue(shape.value, inner, [...path, name], found, hidden);
    }
  } else {
    for (const name of Object.keys(value)) {
      if (!Object.hasOwn(shape.fields, name))
        problems.push({ path: [...path, name], message: unknownName(name, Object.keys(shape.fields)) });
    }
    for (const [name, inner] of Object.entries(shape.fields))
      checkValue(inner, value[name], [...path, name], found, hidden);
  }
}

function checkLeaf(
  { shape, meta }: Field,
  value: unknown,
  path: readonly (string | number)[],
  { problems, warnings, hidden }: ProblemCollector & { readonly hidden: boolean },
): void {
  const got = `got ${hidden ? typeOf(value) : shown(value)}`;
  const issue = firstIssue(shape.schema, value);
  const problem = issue ? undefined : formProblem({ meta }, value);
  if (problem !== undefined) problems.push({ path, message: `${got}; ${problem}` });
  if (!issue) return;
  const meant = hidden ? "" : meantText(issue, value);
  if (!isOtherOption(issue, value, meta.open)) {
    const orList = meta.format === "greatest" && path.length === 1 ? ", or a list of such numbers" : "";
    problems.push({ path, message: `${got}; ${issue.message}${orList}${meant}` });
  } else if (!(meta.format === "caseless" && meta.open?.some((one) => one.toLowerCase() === value.toLowerCase())))
    warnings.push({
      path,
      message: `${got}, which is not among the values that this version knows (${meta.open?.join(", ") ?? ""}); the service decides${meant}`,
    });
}

/** Limits on the list itself; the items have been looked at one by one. */
function listLimits(schema: z.ZodType, value: unknown, path: readonly (string | number)[], problems: Problem[]): void {
  if (!schema.def.checks?.length) return;
  const result = validated(schema, value, { jitless: true });
  for (const issue of result.success ? [] : result.error.issues) {
    if (issue.path.length === 0) problems.push({ path, message: issue.message });
  }
}

const typeOf = (value: unknown): string =>
  Array.isArray(value) ? "a list" : isObject(value) ? "an object" : `a ${typeof value}`;

const shown = (value: unknown): string => {
  const text = isObject(value) || Array.isArray(value) ? typeOf(value) : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
};

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
export function known(value: unknown): unknown {
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
  const lost = around.run.guards.dataLossByParent(resource, olds, inputs);
  if (lost) return [lost];
  if (resource.losesData === undefined || mayLoseData(resource, inputs)) return [];
  return resource.replaceOn
    .filter((name) => {
      const field = resource.inputFields[name];
      if (!field || hasUnknown(inputs[name])) return false;
      if (kindOf(field) !== "computed") return !same(field, olds[name], inputs[name]);
      // Without the state, the diff refuses another value than the service's choice.
      if (inputs[name] === undefined || (olds[name] === undefined && around.state === undefined)) return false;
      return !same(field, olds[name] ?? around.state?.[name], inputs[name]);
    })
    .map((name) => ({ path: [name], message: inputChangeRefusal(resource, name) }));
}

/**
 * Objects that another resource of the program uses too, although only one can. The engine may check the new resource first.
 * So the message names both, and blames the one that does not use the object in the state.
 */
function alreadyUsed(
  resource: Resource,
  olds: Values,
  inputs: Values,
  { owner, name }: Context,
  { run }: Surroundings,
): Problem[] {
  return usedAlone(resource, inputs).flatMap((used) => {
    const other = run.program.otherUserOf(used, owner);
    if (other === undefined) return [];
    const before = hasInputs(olds) ? olds : run.program.inputsInState(owner);
    const isInState = usedAlone(resource, before).some((one) => isSameObject(one, used));
    const names = [JSON.stringify(other.name), name === undefined ? "this one" : JSON.stringify(name)];
    const [first, second] = isInState && !other.isInState ? names.reverse() : names;
    return [
      {
        path: used.path,
        message: `${textOf(used)} is for one ${resource.name}, but ${first} and ${second} of this program use it; declare a second ${used.kind} for ${second}`,
      },
    ];
  });
}

/** Inputs that differ from those of a new object which the resource uses. The service is asked about existing objects. */
function disagreements(resource: Resource, inputs: Values, { run }: Surroundings): Problem[] {
  return usedAlone(resource, inputs).flatMap((used) => {
    const { agreesOn, source } = used;
    const theirs = source && run.program.of(source.owner)?.inputs?.[agreesOn];
    const mine = inputs[agreesOn];
    if ([mine, theirs].some((value) => value === undefined || value === UNKNOWN) || mine === theirs) return [];
    return [
      {
        path: [agreesOn],
        message: `got ${JSON.stringify(mine)}; must be ${JSON.stringify(theirs)}, the ${agreesOn} of ${textOf(used)} of this program`,
      },
    ];
  });
}

const textOf = ({ kind, id, source }: UsedAlone): string =>
  `${kind} ${source === undefined ? id : JSON.stringify(source.name)}`;

/**
 * Findings of the service at preview: about the service as a whole, and about inputs that are new or changed. An input with
 * a problem gets no further one.
 */
function findings(
  resource: Resource,
  olds: Values,
  inputs: Values,
  given: Context,
  around: Surroundings,
  problems: readonly Problem[],
): Problem[] {
  const all = (Array.isArray(given.findings) ? given.findings : []).filter(isObject).map((finding): Finding => ({
    path: finding["property"] === "" ? [] : [String(finding["property"])],
    message: String(finding["message"]),
    isWarning: finding["isWarning"] === true,
  }));
  const about = all.filter(({ path: [name], message }) => {
    // Without a property it is about the whole service, and every resource has it.
    if (name === undefined) return around.run.problems.isFirst(message);
    if (problems.some(({ path }) => path[0] === name)) return false;
    // A replacement is checked without the original, and the original itself still has the name.
    const before = hasInputs(olds) ? olds : around.run.program.inputsInState(given.owner);
    const field = resource.inputFields[name];
    const isChanged = field !== undefined && !same(field, before[name], inputs[name]);
    const ownName =
      name === resource.autoname?.property && around.run.program.nameInState(given.owner) === inputs[name];
    return field !== undefined && !ownName && (!hasInputs(before) || isChanged);
  });
  return oncePerInput(about).flatMap(({ path, message, isWarning }) => {
    if (!isWarning || path.length === 0) return [{ path, message }];
    around.warn?.(`${resource.name} ${pathText(path)}: ${message}`);
    return [];
  });
}

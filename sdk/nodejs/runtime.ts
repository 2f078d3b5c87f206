// Shared parts of the generated classes: they connect a resource to the dynamic binding and ask the service at preview.
import { createRequire } from "node:module";
import { join } from "node:path";
import * as pulumi from "@pulumi/pulumi";
import { containsUnknowns, getAllResources, unknown } from "@pulumi/pulumi/output.js";
import {
  ask as askQuestion,
  askConnection,
  contextKey,
  invoke,
  ownerInProgram,
  questionsOf,
  unknownKeys,
  warnOfConfiguration,
  type Called,
  type Finding,
} from "../../provider/dynamic/index.ts";

/** Type of a resource as the engine knows it. */
export const typeToken = (type: string): string => `pulumi-nodejs:dynamic/machines:${type}`;

/**
 * The text that the engine stores as the resource's provider. It must never change, because a difference would update
 * every resource. It names the installed code, so refresh and destroy run the current version.
 */
const providerText = (type: string): string =>
  `exports.handler=()=>require("pulumi-machines/dynamic").provider(${JSON.stringify(type)});`;

// A program of the Automation API runs in any process and folder. Its host starts elsewhere, so nothing is known of that here.
const isStartedByHost = /[\\/]cmd[\\/]run(?:[\\/]|$)/.test(process.argv[1] ?? "");
let resolvable: boolean | undefined = isStartedByHost ? undefined : true;

/** The engine's host resolves the provider from the project: a wrapper package that hides this one would fail at its first call. */
function requireResolvable(): void {
  resolvable ??= (() => {
    try {
      createRequire(join(process.cwd(), "package.json")).resolve("pulumi-machines/dynamic");
      return true;
    } catch {
      return false;
    }
  })();
  if (!resolvable) {
    throw new pulumi.RunError(
      `pulumi-machines cannot be found from ${process.cwd()}: add it to this project with \`npm install pulumi-machines\``,
    );
  }
}

const configuration = (key: string): string | undefined => pulumi.runtime.getConfig(`machines:${key}`);

/** Fails if a key of the stack's `machines:` configuration is misspelt: the resources would silently use its default. */
function requireKnownConfiguration(): void {
  const given = Object.keys(pulumi.runtime.allConfig()).flatMap((key) => /^machines:(.*)/.exec(key)?.[1] ?? []);
  const problems = unknownKeys(given);
  if (problems.length > 0) throw new pulumi.RunError(problems.join("; "));
}

const warn = (message: string): void => void pulumi.log.warn(message);

/** Whether the configuration holds a value encrypted. Pulumi's types leave this function out; without it nothing is known. */
const { isConfigSecret } = pulumi.runtime as { readonly isConfigSecret?: (key: string) => boolean };
let isPlainTokenReported = false;

/** Warns once of a token that the stack's configuration holds in plain text. A token of the environment is not in any file. */
function warnOfPlainToken(): void {
  const key = "machines:token";
  if (isPlainTokenReported || configuration("token") === undefined || isConfigSecret?.(key) !== false) return;
  isPlainTokenReported = true;
  warn(`${key} is in plain text in the stack's configuration: set it again with \`pulumi config set --secret ${key}\``);
}

/** The properties a resource registers: its arguments, its outputs (unknown until they are known), its provider and context. */
export function propertiesFor(
  type: string,
  name: string,
  args: object | undefined,
  { outputs, secrets }: { readonly outputs: readonly string[]; readonly secrets: readonly string[] },
  opts: pulumi.CustomResourceOptions | undefined,
): pulumi.Inputs {
  requireResolvable();
  requireKnownConfiguration();
  warnOfConfiguration(configuration, warn);
  warnOfPlainToken();
  const unknown = Object.fromEntries(outputs.map((output) => [output, undefined]));
  const provider = { __provider: providerText(type) };
  if (opts?.id !== undefined) return { ...unknown, ...provider };
  const given: Record<string, unknown> = { ...args };
  // Values that are always secret are secret in the state too, whatever their source.
  for (const name of secrets)
    if (given[name] !== undefined && given[name] !== null) given[name] = pulumi.secret(given[name]);
  return { ...unknown, ...given, ...provider, [contextKey]: contextFor(type, name, given, opts) };
}

/**
 * The options of a resource: outputs that are always secret are marked so, and the plugin's type is an alias, so that a
 * stack of the plugin can change to this binding.
 */
export const optionsFor = (
  type: string,
  opts: pulumi.CustomResourceOptions | undefined,
  secrets: readonly string[],
): pulumi.CustomResourceOptions =>
  pulumi.mergeOptions(opts, {
    aliases: [{ type: `machines:index:${type}` }],
    ...(secrets.length === 0 ? {} : { additionalSecretOutputs: [...secrets] }),
  });

function contextFor(
  type: string,
  name: string,
  args: Record<string, unknown>,
  opts: pulumi.CustomResourceOptions | undefined,
): pulumi.Inputs {
  const { create, update, delete: remove } = opts?.customTimeouts ?? {};
  const parent = urnOf(opts?.parent);
  const owner = parent.then((of) => ownerHash(type, name, of));
  return {
    name,
    owner,
    urn: parent.then((of) => urnFor(type, name, of)),
    timeouts: { create, update, delete: remove },
    ...(pulumi.runtime.isDryRun() ? { findings: findingsFor(type, args, owner), sources: sourcesIn(args) } : {}),
  };
}

/** The resource that an input is the id of, for check: a preview does not know the id of a new resource. */
interface Source {
  readonly owner: string;
  readonly name: string;
}

/** The sources of inputs, by path. */
async function sourcesIn(args: Record<string, unknown>): Promise<Record<string, Source>> {
  const found = outputsIn(args).map(async ([path, output]) => [path.join("."), await sourceOf(output)] as const);
  return Object.fromEntries((await Promise.all(found)).flatMap(([path, source]) => (source ? [[path, source]] : [])));
}

function outputsIn(
  value: unknown,
  path: readonly string[] = [],
): (readonly [readonly string[], pulumi.Output<unknown>])[] {
  if (pulumi.Output.isInstance(value)) return [[path, value]];
  if (typeof value !== "object" || value === null || pulumi.Resource.isInstance(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => outputsIn(inner, [...path, name]));
}

/** The resource of this package whose id an output is. A value that is only derived from an id is none. */
async function sourceOf(output: pulumi.Output<unknown>): Promise<Source | undefined> {
  for (const resource of await getAllResources(output)) {
    const { __pulumiType: token = "", __name: name = "", __parentResource: parent } = resource as Internals;
    const type = token.slice(typeToken("").length);
    if (!token.startsWith(typeToken("")) || (resource as pulumi.CustomResource).id !== output) continue;
    // The SDK names the stack as the parent of what has none.
    const isChild = parent?.__pulumiType !== pulumi.runtime.rootPulumiStackTypeName;
    return { owner: ownerHash(type, name, isChild ? await urnOf(parent) : ""), name };
  }
  return undefined;
}

/**
 * The URN of a parent. A plain promise: an output would carry the parent as a dependency, and with it all of the parent's
 * children, which would then wait for one another.
 */
const urnOf = (parent: pulumi.Resource | undefined): Promise<string> =>
  new Promise((resolve) => void pulumi.output(parent?.urn ?? "").apply(resolve));

/** The URN of a resource, as the engine makes it. Check removes it from the inputs, so that no diff compares it. */
function urnFor(type: string, name: string, parent: string): string {
  const [, , types = ""] = parent.split("::");
  const within = types === "" || types === pulumi.runtime.rootPulumiStackTypeName ? "" : `${types}$`;
  return `urn:pulumi:${pulumi.getStack()}::${pulumi.getProject()}::${within}${typeToken(type)}::${name}`;
}

const ownerHash = (type: string, name: string, parent: string): string =>
  ownerInProgram({ project: pulumi.getProject(), stack: pulumi.getStack(), type, parent, name });

/**
 * Preview asks the service questions that only it can answer, each as soon as its inputs are known. The answers are plain promises:
 * an output would add what its inputs depend on to the context, and a saved plan would miss these dependencies in the update.
 */
function findingsFor(type: string, args: Record<string, unknown>, owner: Promise<string>): Promise<Finding | null>[] {
  const answers = questionsOf(type).flatMap(({ needs, uses = [] }, index) => {
    if (needs.some((need) => args[need] === undefined || args[need] === null)) return [];
    const wanted = Object.fromEntries([...needs, ...uses].map((path) => [path, valueAt(args, path.split("."))]));
    return [
      knownIn(wanted).then(async (inputs) =>
        inputs === undefined ? null : noted(await askQuestion(type, index, inputs, await owner, configuration, warn)),
      ),
    ];
  });
  return [askConnection(configuration, warn), ...answers];
}

/** Values without their outputs; undefined if one of them is unknown. */
async function knownIn(values: Record<string, unknown>): Promise<Record<string, unknown> | undefined> {
  const output = pulumi.output(values) as pulumi.Output<unknown> & Waiting;
  const known = (await output.isKnown) ? await output.promise(true) : unknown;
  return containsUnknowns(known) ? undefined : (known as Record<string, unknown>);
}

/** Shows a note; the rest is for check. */
function noted(found: Finding | null): Finding | null {
  if (!found?.isNote) return found;
  void pulumi.log.info(found.message);
  return null;
}

/** The value at a path into arguments: an output if a part of the path is one, so that the rest need not be known. */
function valueAt(args: unknown, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined || args === undefined || args === null) return args;
  if (pulumi.Output.isInstance(args) || args instanceof Promise)
    return pulumi.output(args).apply((known: unknown) => valueAt(known, [name, ...rest]));
  return typeof args === "object" ? valueAt((args as Record<string, unknown>)[name], rest) : undefined;
}

/** Asks the service; the program does not end before it has answered. */
async function ask(
  name: string,
  args: object | undefined,
  get: (key: string) => string | undefined = configuration,
): Promise<Called> {
  const done = pulumi.runtime.rpcKeepAlive();
  try {
    requireKnownConfiguration();
    warnOfConfiguration(get, warn);
    return await invoke(name, { ...args }, get, {
      isPreview: pulumi.runtime.isDryRun(),
      say: (message) => void pulumi.log.info(message),
    });
  } finally {
    done();
  }
}

/** Calls a function of the provider; `get` reads the configuration, where it is not that of the stack. */
export async function call<Result>(
  name: string,
  args: object | undefined,
  // Options of an invoke say which plugin is asked; there is none here.
  _opts: pulumi.InvokeOptions | undefined,
  get?: (key: string) => string | undefined,
): Promise<Result> {
  return (await ask(name, args, get)).answer as Result;
}

/**
 * Calls a function of the provider once all arguments are known and all its dependencies exist, as Pulumi's own SDKs
 * do. In a preview, a resource that does not exist yet leaves the answer unknown, even if its properties are known.
 */
export function callOutput<Result>(
  name: string,
  args: object | undefined,
  opts: pulumi.InvokeOutputOptions | undefined,
): pulumi.Output<Result> {
  const given = pulumi.output({ ...args });
  const first = pulumi.output(opts?.dependsOn ?? []);
  const named = first.apply((found) => idsOf(Array.isArray(found) ? found : [found]));
  const implied = Promise.all([getAllResources(given), getAllResources(first)]).then(([a, b]) => idsOf([...a, ...b]));
  return pulumi.all([given, named, pulumi.output(implied)]).apply(async ([known]) => {
    const { answer, isSecret, isKnown } = await ask(name, known);
    if (!isKnown) return unknown;
    return isSecret ? pulumi.secret(answer) : answer;
  }) as unknown as pulumi.Output<Result>;
}

/** Ids of resources, and of all resources in components among them: known once all of them exist. */
const idsOf = async (resources: readonly pulumi.Resource[]): Promise<pulumi.Output<string[]>> =>
  pulumi.all([...(await custom(new Set(resources)))].map(({ id }) => id));

/** The resources themselves and those in components, without the children of custom resources. */
async function custom(
  resources: Iterable<pulumi.Resource>,
  seen = new Set<pulumi.Resource>(),
): Promise<Set<pulumi.CustomResource>> {
  const found = new Set<pulumi.CustomResource>();
  for (const one of resources) {
    if (seen.has(one)) continue;
    seen.add(one);
    if (pulumi.CustomResource.isInstance(one) && (one.id as pulumi.Output<string> | undefined)) found.add(one);
    if (!pulumi.ComponentResource.isInstance(one)) continue;
    // The SDK itself waits for these; a component has its children once it is constructed.
    const { __data: constructed, __childResources: children } = one as Internals;
    await constructed;
    for (const child of await custom(children ?? [], seen)) found.add(child);
  }
  return found;
}

/** What the SDK keeps in an output, and does not declare. */
interface Waiting {
  readonly isKnown: Promise<boolean>;
  promise(withUnknowns: boolean): Promise<unknown>;
}

/** What the SDK keeps in a resource, and does not declare. */
interface Internals extends pulumi.ComponentResource {
  readonly __pulumiType?: string;
  readonly __name?: string;
  readonly __parentResource?: Internals;
  readonly __data?: Promise<unknown>;
  readonly __childResources?: ReadonlySet<pulumi.Resource>;
}

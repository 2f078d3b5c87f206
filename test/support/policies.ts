// Runs policies as Pulumi's SDK does, with a mock of the engine: inputs by way of the SDK's own views, which throw where a value
// is unknown and keep secrets secret, and configuration with its defaults filled in.
import * as deserialize from "@pulumi/policy/deserialize.js";
import {
  Secret,
  type PolicyResource,
  type PolicyResourceOptions,
  type ResourceValidationArgs,
  type ResourceValidationPolicy,
  type StackValidationPolicy,
} from "@pulumi/policy/policy.js";
import * as proxy from "@pulumi/policy/proxy.js";
import { secretsPreservingProxy } from "@pulumi/policy/secret.js";
import type { ResourceName, ResourceTypes } from "../../policy/resources.ts";
import type { Binding } from "./stack.ts";

// The SDK marks these internal, and leaves them out of its types.
const { unknownCheckingProxy, UnknownValueError } = proxy as unknown as {
  unknownCheckingProxy: <T>(value: T) => T;
  UnknownValueError: new (...args: unknown[]) => Error;
};
const { serializeProperties } = deserialize as unknown as {
  serializeProperties: (value: unknown) => Promise<Record<string, unknown>>;
};

/** A text that a preview does not know. */
export const unknownText = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
/** A list that a preview does not know; typed as whatever is wanted. */
export const unknownList = "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2" as never;

/** What a policy said. */
export interface Said {
  /** Messages of violations. */
  readonly violations: readonly string[];
  /** What could not be checked, and why. */
  readonly unknown?: string;
  /** Why the policy is not about the resource. */
  readonly notApplicable?: string;
}

/** How a resource is checked, where it is not as usual. */
export interface CheckOptions {
  /** Name of the resource; `it`. */
  readonly name?: string;
  /** Options of the resource. */
  readonly opts?: Partial<PolicyResourceOptions>;
  /** Configuration of the policy. */
  readonly config?: object | undefined;
  /** Where the resource comes from; the dynamic binding. */
  readonly binding?: Binding;
}

/** The type the engine has a resource by. */
export const typeOf = (type: string, binding: Binding = "pulumi-machines"): string =>
  binding === "pulumi-machines" ? `pulumi-nodejs:dynamic/machines:${type}` : `machines:index:${type}`;

class NotApplicable extends Error {}

const options = (opts: Partial<PolicyResourceOptions> = {}): PolicyResourceOptions => ({
  protect: false,
  ignoreChanges: [],
  aliases: [],
  customTimeouts: { createSeconds: 0, updateSeconds: 0, deleteSeconds: 0 },
  additionalSecretOutputs: [],
  ...opts,
});

/** What the engine hands a policy: what is configured, over the defaults of the schema. */
function configOf(policy: ResourceValidationPolicy | StackValidationPolicy, config: object = {}) {
  const defaults = Object.entries(policy.configSchema?.properties ?? {}).flatMap(([name, schema]) =>
    schema.default === undefined ? [] : [[name, schema.default]],
  );
  return <T extends object>() => structuredClone({ ...Object.fromEntries(defaults), ...config }) as T;
}

const common = (policy: ResourceValidationPolicy | StackValidationPolicy, config?: object) => ({
  getConfig: configOf(policy, config),
  stackTags: new Map<string, string>(),
  notApplicable: (reason?: string): never => {
    throw new NotApplicable(reason);
  },
});

function argsOf(
  policy: ResourceValidationPolicy,
  type: string,
  props: object,
  { name = "it", opts, config, binding }: CheckOptions,
): ResourceValidationArgs {
  const token = typeOf(type, binding);
  return {
    ...common(policy, config),
    type: token,
    name,
    urn: `urn:pulumi:dev::test::${token}::${name}`,
    props,
    opts: options(opts),
    isType: () => false,
    asType: () => undefined,
  };
}

/** Runs something of a policy, and tells what the SDK would. */
async function listen(run: (report: (message: string, urn?: string) => void) => unknown): Promise<Said> {
  const violations: string[] = [];
  try {
    await run((message, urn) => violations.push(urn === undefined ? message : `${nameOf(urn)}: ${message}`));
    return { violations };
  } catch (error) {
    if (error instanceof UnknownValueError) return { violations, unknown: error.message };
    if (error instanceof NotApplicable) return { violations, notApplicable: error.message };
    throw error;
  }
}

const nameOf = (urn: string): string => urn.slice(urn.lastIndexOf("::") + 2);

/** Checks a resource with a policy. @returns what the policy said; one of several checks at least must be about the type */
export async function check<Name extends ResourceName>(
  policy: ResourceValidationPolicy,
  type: Name,
  inputs: ResourceTypes[Name]["inputs"],
  how: CheckOptions = {},
): Promise<Said> {
  const all = await Promise.all(
    [policy.validateResource ?? []]
      .flat()
      .map((validate) =>
        listen((report) => validate(argsOf(policy, type, unknownCheckingProxy<object>({ ...inputs }), how), report)),
      ),
  );
  const about = all.filter(({ notApplicable }) => notApplicable === undefined);
  const [first = all[0]] = about;
  if (about.length > 1) throw new Error(`${policy.name} checks a ${type} twice`);
  if (first === undefined) throw new Error(`${policy.name} checks no resource by itself`);
  return first;
}

/** Remediates a resource with a policy. @returns its inputs as the engine gets them, or undefined where nothing is changed */
export async function repair<Name extends ResourceName>(
  policy: ResourceValidationPolicy,
  type: Name,
  inputs: ResourceTypes[Name]["inputs"],
  how: CheckOptions = {},
): Promise<Record<string, unknown> | undefined> {
  const props = unknownCheckingProxy(secretsPreservingProxy(inputs));
  const result = await policy.remediateResource?.(argsOf(policy, type, props, how));
  return result ? serializeProperties(result) : undefined;
}

/** A value that is secret, for {@link repair}, which changes the inputs it is given. */
export const secret = (value: unknown): never => new Secret(value) as never;

/** A resource of a stack that is checked. */
export interface Declared {
  readonly type: ResourceName;
  readonly name: string;
  /** What the stack holds of it. */
  readonly props: Readonly<Record<string, unknown>>;
  /** Names of the resources that a property is made of. */
  readonly madeOf?: Readonly<Record<string, readonly string[]>>;
}

/** Checks a stack with a policy; violations begin with the name of the resource they are about. */
export function checkStack(
  policy: StackValidationPolicy,
  declared: readonly Declared[],
  { config, binding }: CheckOptions = {},
): Promise<Said> {
  const resources = declared.map(({ type, name, props }): PolicyResource => ({
    type: typeOf(type, binding),
    name,
    urn: `urn:pulumi:dev::test::${typeOf(type, binding)}::${name}`,
    props: unknownCheckingProxy({ ...props }),
    opts: options(),
    dependencies: [],
    propertyDependencies: {},
    isType: () => false,
    asType: () => undefined,
  }));
  for (const [at, { madeOf = {} }] of declared.entries()) {
    for (const [property, names] of Object.entries(madeOf)) {
      const own = resources[at];
      if (own) own.propertyDependencies[property] = resources.filter(({ name }) => names.includes(name));
    }
  }
  return listen((report) => policy.validateStack({ ...common(policy, config), resources }, report));
}

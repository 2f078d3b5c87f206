// Runs policies like Pulumi's SDK, with a mock of the engine: inputs as the SDK's own proxies, which throw for unknown
// values and keep secrets secret, and configuration with defaults.
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

// The SDK marks these as internal, and omits them from its types.
const { unknownCheckingProxy, UnknownValueError } = proxy as unknown as {
  unknownCheckingProxy: <T>(value: T) => T;
  UnknownValueError: new (...args: unknown[]) => Error;
};
const { serializeProperties } = deserialize as unknown as {
  serializeProperties: (value: unknown) => Promise<Record<string, unknown>>;
};

/** A text that is unknown at preview. */
export const unknownText = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
/** A list that is unknown at preview, with any type. */
export const unknownList = "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2" as never;

/** The result of a policy. */
export interface Said {
  /** Messages of violations. */
  readonly violations: readonly string[];
  /** What could not be checked, and why. */
  readonly unknown?: string;
  /** Why the policy does not apply to the resource. */
  readonly notApplicable?: string;
}

/** Options of a check. */
export interface CheckOptions {
  /** Name of the resource; `it` by default. */
  readonly name?: string;
  /** Options of the resource. */
  readonly opts?: Partial<PolicyResourceOptions>;
  /** Configuration of the policy. */
  readonly config?: object | undefined;
  /** The binding of the resource; dynamic by default. */
  readonly binding?: Binding;
}

/** The engine's type of the resource. */
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

/** The configuration that the engine passes to a policy: the configured values over the schema's defaults. */
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

/** Runs a function of a policy, and reports results like the SDK. */
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

/** Checks a resource with a policy. @returns its result; at least one of several checks must apply to the type */
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
  const [first = all[0], ...more] = about;
  if (first === undefined) throw new Error(`${policy.name} checks no resource by itself`);
  // A fleet can be checked as itself, and as the Machines that it has.
  const messages = about.flatMap(({ violations }) => violations);
  if (new Set(messages).size < messages.length) throw new Error(`${policy.name} reports the same of a ${type} twice`);
  return more.reduce<Said>((said, one) => ({ ...one, ...said, violations: messages }), first);
}

/** Remediates a resource with a policy. @returns its new inputs, or undefined if nothing is changed */
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

/** A secret value, for {@link repair}, which changes the given inputs. */
export const secret = (value: unknown): never => new Secret(value) as never;

/** A resource of a checked stack. */
export interface Declared {
  readonly type: ResourceName;
  readonly name: string;
  /** Its properties in the stack. */
  readonly props: Readonly<Record<string, unknown>>;
  /** Names of the resources that a property depends on. */
  readonly madeOf?: Readonly<Record<string, readonly string[]>>;
}

/** Checks a stack with a policy; violations begin with the name of their resource. */
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

// Parses the output of `pulumi stack export`: our resources, interrupted creations, and our providers. Secrets stay
// sealed.
import { isObject } from "../api/schema.ts";
import { MachinesError } from "../provider/client/errors.ts";
import { dynamicOwnerOf, ownerOf } from "../provider/core/owner.ts";
import { contextOf, type Values } from "../provider/core/resource.ts";

/** One of our resources in a state. */
export interface StateResource {
  readonly urn: string;
  /** Its name in the program. */
  readonly name: string;
  /** Name of the resource type: `Machine`. */
  readonly type: string;
  /** Empty while its creation is pending. */
  readonly id: string;
  /** Whether its creation had started and the engine does not know the result. */
  readonly isPending: boolean;
  /** Whether the program only reads it (`get`). */
  readonly isExternal: boolean;
  /** Whether Pulumi refuses to delete it (`protect`). */
  readonly isProtected: boolean;
  /** Whether a replacement has taken its place, and the next `up` deletes it. */
  readonly isReplaced: boolean;
  /** Property paths whose changes the program ignores (`ignoreChanges`). */
  readonly ignoredPaths: readonly string[];
  readonly inputs: Values;
  readonly outputs: Values;
  /** URN of its parent resource or component; undefined if that is the stack itself. */
  readonly parent: string | undefined;
  /** URN of the provider that the program created for it; undefined with the default one, and for dynamic resources. */
  readonly provider: string | undefined;
}

/** A provider that a program created. */
export interface StateProvider {
  readonly urn: string;
  readonly name: string;
  readonly inputs: Values;
}

/** A stack in its exported form. */
export interface StackState {
  /** Names of stack and project; undefined if the state is empty. */
  readonly stack: string | undefined;
  readonly project: string | undefined;
  readonly resources: readonly StateResource[];
  readonly providers: readonly StateProvider[];
  /** Whether all our resources are dynamic ones: these cannot be imported. */
  readonly isDynamic: boolean;
}

/** The state of a stack that holds nothing. */
export const emptyState: StackState = {
  ...{ stack: undefined, project: undefined },
  ...{ resources: [], providers: [], isDynamic: false },
};

const signature = "4dabf18193072939515e22adb298388d";

/** Whether a value of an export is a secret, which only the stack's own key decrypts. */
export const isSealed = (value: unknown): boolean => isObject(value) && Object.hasOwn(value, signature);

/** A secret as an import of a state takes it: the CLI encrypts it. Only for its standard input. */
export const sealed = (value: unknown): Values => ({
  [signature]: "1b47061264138c4ac30d75fd1eb44270",
  plaintext: JSON.stringify(value),
});

/** The plain text of an input. */
export const plainText = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** The text of an input, even of a secret in an export with `--show-secrets`. Never print it. */
export function openText(value: unknown): string | undefined {
  if (!isSealed(value)) return plainText(value);
  const { plaintext } = value as Values;
  return typeof plaintext === "string" ? plainText(JSON.parse(plaintext)) : undefined;
}

/** The name of a resource in the program. */
export const nameIn = (urn: string): string => urn.split("::").slice(3).join("::");

/**
 * Reads an export.
 * @param source the origin of the text, for messages
 * @throws MachinesError `invalid-input` for anything else
 */
export function readState(text: string, source: string): StackState {
  const deployment = deploymentIn(text, source);
  const resources = listIn(deployment, "resources");
  const pending = listIn(deployment, "pending_operations").filter(({ type }) => type === "creating");
  const resource = [
    ...resources.flatMap((found) => heldIn(found) ?? []),
    ...pending.flatMap(({ resource }) => (isObject(resource) ? (heldIn(resource, true) ?? []) : [])),
  ];
  const [, , stack, project] = /^(urn:pulumi:)([^:]*)::([^:]*)::/.exec(firstUrn(resources, resource)) ?? [];
  return {
    stack,
    project,
    resources: resource,
    providers: resources.flatMap(({ type, urn, inputs }) =>
      type === "pulumi:providers:machines" && typeof urn === "string" && !isDefaultProvider(urn)
        ? [{ urn, name: nameIn(urn), inputs: isObject(inputs) ? inputs : {} }]
        : [],
    ),
    isDynamic: resource.length > 0 && resource.every(({ urn }) => isDynamic(urn)),
  };
}

const firstUrn = (resources: readonly Values[], resource: readonly StateResource[]): string =>
  plainText(resources[0]?.["urn"]) ?? resource[0]?.urn ?? "";

/** The deployment in an export. @throws MachinesError `invalid-input` for any other text */
export function deploymentIn(text: string, source: string): Values {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // Reported below: a parser's message quotes the text.
  }
  const deployment = isObject(json) ? json["deployment"] : undefined;
  if (!isObject(deployment))
    throw new MachinesError(
      "invalid-input",
      `${source} is no export of a stack; \`pulumi stack export --file state.json\` writes one`,
    );
  return deployment;
}

/** A list of a deployment. */
export const listIn = (deployment: Values, key: string): readonly Values[] => {
  const list = deployment[key];
  return Array.isArray(list) ? list.filter(isObject) : [];
};

/** Whether a URN is that of a dynamic resource. */
export const isDynamic = (urn: string): boolean => tokenIn(urn).startsWith("pulumi-nodejs:dynamic/");

function tokenIn(urn: string): string {
  const types = urn.split("::")[2] ?? "";
  return types.slice(types.lastIndexOf("$") + 1);
}

const isDefaultProvider = (urn: string): boolean => /^default(_|$)/.test(nameIn(urn));

/** A resource of a deployment; undefined if it is not ours, or a component such as a Release, which has no object. */
export function heldIn(found: Values, isPending = false): StateResource | undefined {
  const { urn, id, inputs, outputs, parent, provider, external, protect, custom, ignoreChanges } = found;
  if (typeof urn !== "string" || custom === false) return undefined;
  const type = /^(?:pulumi-nodejs:dynamic\/machines:|machines:index:)(\w+)$/.exec(tokenIn(urn))?.[1];
  if (type === undefined) return undefined;
  const from = (plainText(provider) ?? "").replace(/::[^:]*$/, "");
  return {
    urn,
    name: nameIn(urn),
    type,
    id: isPending || typeof id !== "string" ? "" : id,
    isPending,
    isExternal: external === true,
    isProtected: protect === true,
    isReplaced: found["delete"] === true || found["pendingReplacement"] === true,
    ignoredPaths: Array.isArray(ignoreChanges) ? ignoreChanges.filter((path) => typeof path === "string") : [],
    inputs: isObject(inputs) ? inputs : {},
    outputs: isObject(outputs) ? outputs : {},
    parent: typeof parent === "string" && !parent.includes("::pulumi:pulumi:Stack::") ? parent : undefined,
    provider: from === "" || isDynamic(urn) || isDefaultProvider(from) ? undefined : from,
  };
}

/** Resources by the owners in their objects' tags, for both bindings, because a stack may have switched. */
export function byOwner(resources: readonly StateResource[]): ReadonlyMap<string, readonly StateResource[]> {
  const found = new Map<string, StateResource[]>();
  for (const resource of resources)
    for (const owner of ownersOf(resource)) found.set(owner, [...(found.get(owner) ?? []), resource]);
  return found;
}

/** The ids of the states of resources; an object with a tag has one of them. */
export const idsOfState = (resources: readonly StateResource[]): ReadonlySet<string> =>
  new Set(
    resources.flatMap(({ inputs, outputs }) =>
      [inputs, outputs].map((values) => contextOf(values).stack).filter((id) => typeof id === "string"),
    ),
  );

function ownersOf({ urn, type, name, parent = "", inputs, outputs }: StateResource): ReadonlySet<string> {
  const [root = "", project = ""] = urn.split("::");
  const stack = root.slice("urn:pulumi:".length);
  const noted = [inputs, outputs].map((values) => contextOf(values).owner);
  return new Set([
    ownerOf(urn),
    dynamicOwnerOf({ project, stack, type, parent, name }),
    ...noted.filter((owner) => typeof owner === "string"),
  ]);
}

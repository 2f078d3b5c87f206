// The other stacks of the backend, whose objects are theirs.
import { configKeys, normalEndpoint } from "../../provider/client/config.ts";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { bareId } from "../../api/names.ts";
import { exportStack, listStacks, stackEndpoint, stackOfEnvironment, type ListedStack } from "../pulumi.ts";
import { readState, plainText, type StateResource } from "../stackState.ts";
import { heldKeys, keysOf } from "../stateIds.ts";
import { fewAtATime } from "../../provider/client/fewAtATime.ts";

/** Another stack of the backend. */
export interface OtherStack {
  /** As `--stack` takes it: its name, with its organization if that is another one, and in another project as `organization/project/name`. */
  readonly stack: string;
  readonly resources: readonly StateResource[];
  /** Where a resource is, as far as known. */
  readonly endpointOf: (resource: StateResource) => string | undefined;
}

/** Another stack, with what it contains by type. */
export interface IndexedStack extends OtherStack {
  readonly keys: ReturnType<typeof heldKeys>;
}

/** The stacks with what they contain. */
export const indexed = (stacks: readonly OtherStack[]): readonly IndexedStack[] =>
  stacks.map((one) => ({ ...one, keys: heldKeys(one.resources) }));

/** The stack that holds an object. Its endpoint there is undefined if that is this one, or unknown. */
export function holderAmong(
  stacks: readonly IndexedStack[],
  { type, id, endpoint: here }: { readonly type: string; readonly id: string; readonly endpoint: string },
): { readonly stack: string; readonly endpoint: string | undefined } | undefined {
  const isIn = (keys: IndexedStack["keys"]): boolean => keysOf(type, id).some((key) => keys.get(type)?.has(key));
  const other = stacks.find((one) => isIn(one.keys));
  if (!other) return undefined;
  const holder = other.resources.find((one) => isIn(heldKeys([one])));
  const endpoint = holder && other.endpointOf(holder);
  return { stack: other.stack, endpoint: endpoint === here ? undefined : endpoint };
}

/** A stack in a sentence. */
export const stackText = (stack: string): string => `stack ${stack}${isOfProject(stack) ? " of this project" : ""}`;

/** The CLI names the project of a stack only if it is another one. */
const isOfProject = (listed: string): boolean => listed.split("/").length < 3;

/**
 * The other stacks of the backend, and why some could not be read. Their endpoints do not matter: one service has many
 * addresses, such as `local` and that of its port, and an object that a stack holds must never look like no one's.
 */
export interface OtherStacks {
  readonly stacks: readonly OtherStack[];
  /** Names of those that could not be read. */
  readonly unread: readonly string[];
  readonly failures: readonly string[];
  /** Whether they were looked for: an export alone does not say which backend it is from. */
  readonly areKnown: boolean;
}

/** The answer where an export is compared, without the project. */
export const noOtherStacks: OtherStacks = { stacks: [], unread: [], failures: [], areKnown: false };

/**
 * Reads the other stacks of the backend, of all projects: `pulumi state move` gives resources to any of them.
 * @param own name of the stack that is compared; when left out, the one that commands without `--stack` use. The names in its
 * state may be those of a stack that it was copied from.
 */
export async function readOtherStacks(own: string | undefined): Promise<OtherStacks> {
  const all = await listStacks("all");
  const given = own ?? stackOfEnvironment();
  const ownName = given === undefined ? all.find(({ isSelected }) => isSelected)?.name : listedAs(given, all);
  const others = all.filter(({ name }) => name !== ownName);
  const stacks: OtherStack[] = [];
  const unread: string[] = [];
  const failures: string[] = [];
  await fewAtATime(4, others, async ({ name }) => {
    try {
      const { resources, providers } = readState(await exportStack(name), `the state of ${name}`);
      if (resources.length === 0) return;
      // The configuration of another project's stack is in that project's folder.
      const configured = isOfProject(name) ? await endpointOf(name) : undefined;
      const endpoints = new Map(providers.map(({ urn, inputs }) => [urn, plainText(inputs["endpoint"])]));
      stacks.push({
        stack: name,
        resources,
        endpointOf: ({ provider }) =>
          normal((provider === undefined ? undefined : endpoints.get(provider)) ?? configured),
      });
    } catch (error) {
      // Also if its passphrase is another one: this stack can be compared nevertheless.
      if (!(error instanceof MachinesError)) throw error;
      unread.push(name);
      failures.push(`${stackText(name)}, whose objects cannot be distinguished: ${messageOf(error)}`);
    }
  });
  stacks.sort((a, b) => (a.stack < b.stack ? -1 : 1));
  return { stacks, unread: unread.sort(), failures: failures.sort(), areKnown: true };
}

/**
 * The name under which the CLI lists a stack: without its project if that is this one, and then also without the default
 * organization. Two organizations may have stacks of one name, so no other stack counts as the one that is meant.
 */
function listedAs(given: string, all: readonly ListedStack[]): string | undefined {
  const [owner = "", ...rest] = given.split("/");
  const names = rest.length === 0 ? [given] : [given, `${owner}/${bareId(given)}`, bareId(given)];
  return names.find((name) => all.some((one) => one.name === name));
}

const normal = (endpoint: string | undefined): string | undefined =>
  endpoint === undefined ? undefined : (normalEndpoint(endpoint) ?? endpoint);

/** The endpoint of a stack. It is only shown, so a configuration that cannot be read does not matter. */
async function endpointOf(stack: string): Promise<string | undefined> {
  const configured = await stackEndpoint(stack).catch(() => undefined);
  return configured ?? process.env[configKeys.endpoint.environment];
}

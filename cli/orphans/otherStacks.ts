// The other stacks of the project, whose objects are theirs.
import { configKeys, normalEndpoint } from "../../provider/client/config.ts";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { bareId } from "../../api/names.ts";
import { exportStack, listStacks, stackEndpoint } from "../pulumi.ts";
import { readState, plainText, type StateResource } from "../stackState.ts";
import { fewAtATime } from "../../provider/client/fewAtATime.ts";

/** Another stack of the project. */
export interface OtherStack {
  readonly stack: string;
  readonly resources: readonly StateResource[];
  /** Where a resource is, as far as known. */
  readonly endpointOf: (resource: StateResource) => string | undefined;
}

/**
 * The other stacks of the project, and why some could not be read. Their endpoints do not matter: one service has many
 * addresses, such as `local` and that of its port, and an object that a stack holds must never look like no one's.
 */
export interface OtherStacks {
  readonly stacks: readonly OtherStack[];
  /** Names of those that could not be read. */
  readonly unread: readonly string[];
  readonly failures: readonly string[];
}

/** The answer where an export is compared, without the project. */
export const noOtherStacks: OtherStacks = { stacks: [], unread: [], failures: [] };

/**
 * Reads the other stacks of the project in this folder.
 * @param own name of the stack that is compared; the selected one when left out
 */
export async function readOtherStacks(own: string | undefined): Promise<OtherStacks> {
  const all = await listStacks();
  const others = all.filter(({ name, isSelected }) => (own === undefined ? !isSelected : bareId(name) !== bareId(own)));
  const stacks: OtherStack[] = [];
  const unread: string[] = [];
  const failures: string[] = [];
  await fewAtATime(4, others, async ({ name }) => {
    try {
      const { resources, providers } = readState(await exportStack(name), `the state of ${name}`);
      if (resources.length === 0) return;
      const configured = await endpointOf(name);
      const endpoints = new Map(providers.map(({ urn, inputs }) => [urn, plainText(inputs["endpoint"])]));
      stacks.push({
        stack: bareId(name),
        resources,
        endpointOf: ({ provider }) =>
          normal((provider === undefined ? undefined : endpoints.get(provider)) ?? configured),
      });
    } catch (error) {
      // Also if its passphrase is another one: this stack can be compared nevertheless.
      if (!(error instanceof MachinesError)) throw error;
      unread.push(bareId(name));
      failures.push(`stack ${name} of this project, whose objects cannot be distinguished: ${messageOf(error)}`);
    }
  });
  stacks.sort((a, b) => (a.stack < b.stack ? -1 : 1));
  return { stacks, unread: unread.sort(), failures };
}

const normal = (endpoint: string | undefined): string | undefined =>
  endpoint === undefined ? undefined : (normalEndpoint(endpoint) ?? endpoint);

/** The endpoint of a stack. It is only shown, so a configuration that cannot be read does not matter. */
async function endpointOf(stack: string): Promise<string | undefined> {
  const configured = await stackEndpoint(stack).catch(() => undefined);
  return configured ?? process.env[configKeys.endpoint.environment];
}

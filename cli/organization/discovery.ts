// Finds all objects of an organization, with the inputs that an import gives each.
import type { Api } from "../../provider/client/api.ts";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { fewAtATime } from "../../provider/client/fewAtATime.ts";
import { processJournal, type Journal } from "../../provider/core/journal.ts";
import { read } from "../../provider/core/verbs/index.ts";
import type { Values } from "../../provider/core/resource.ts";
import { Run } from "../../provider/core/run/run.ts";
import { resources } from "../../provider/registry.ts";
import { compare } from "../orphans/compare.ts";
import {
  holderAmong,
  indexed,
  noOtherStacks,
  stackText,
  type IndexedStack,
  type OtherStacks,
} from "../orphans/otherStacks.ts";
import { provenancesOf } from "../orphans/provenance.ts";
import { heldKeys, keysOf, secretsHeld } from "../stateIds.ts";
import type { StackState, StateResource } from "../stackState.ts";

/** An object that a program can declare. */
export interface Found {
  readonly key: string;
  readonly type: string;
  readonly id: string;
  readonly name: string | undefined;
  /** Its name in Terraform. */
  readonly terraformName?: string | undefined;
  readonly inputs: Values;
  /** The resource of the state that holds it. */
  readonly held: StateResource | undefined;
}

/** What was found, and sentences about what was left out, and about what may not be the stack's to own. */
export interface Discovery {
  readonly found: readonly Found[];
  readonly remarks: readonly string[];
  readonly warnings: readonly string[];
}

/** Apps to look into; the whole organization when empty. */
export interface Wanted {
  readonly apps: readonly string[];
  readonly hasSnapshots: boolean;
  /** The creates that were started on this computer; by default those of its user. */
  readonly journal?: Journal;
}

/** What may hold some of it. */
export interface States {
  /** The state of the stack that is to have all. */
  readonly state: StackState;
  readonly others: OtherStacks;
}

/** Reads everything. @throws MachinesError if an App that the user named does not exist, or a list cannot be read */
export async function discover(
  api: Api,
  { state, others }: States,
  { apps, hasSnapshots, journal }: Wanted,
  warn: (message: string) => void,
): Promise<Discovery> {
  // Not with the other stacks: an App that one of them uses and that this stack holds would be no object to declare.
  const around = { state, besides: [], others: noOtherStacks };
  const openJournal = () => journal ?? processJournal(warn);
  const origins = provenancesOf(api.config.endpoint, [], around, openJournal());
  const known = { own: [], held: [], others: [], origins };
  const compared = await compare(api, known, { apps, isAll: apps.length === 0, hasSnapshots, only: [] });
  // A program without a part that could not be read would look complete.
  const { failures } = compared;
  if (failures.length > 0)
    throw new MachinesError(
      "invalid-input",
      `not everything could be read:${failures.length === 1 ? " " : "\n"}${failures.join("\n")}`,
    );
  const holders = new Map(
    state.resources.flatMap((held) =>
      held.isPending || held.isExternal
        ? []
        : keysOf(held.type, held.id).map((key) => [`${held.type} ${key}`, held] as const),
    ),
  );
  const run = new Run(openJournal);
  const caller = { api, run, progress: () => undefined, warn };
  const [found, remarks, warnings]: [Found[], string[], string[]] = [[], [], []];
  const setElsewhere = heldKeys(state.resources).get("Secret");
  const { endpoint } = api.config;
  // What a stack only reads is not its own.
  const heldAt = (isHere: boolean): readonly IndexedStack[] =>
    indexed(
      others.stacks.map((one) => ({
        ...one,
        resources: one.resources.filter(
          (their) => !their.isExternal && ((one.endpointOf(their) ?? endpoint) === endpoint) === isHere,
        ),
      })),
    );
  const theirs = heldAt(true);
  const all = [...theirs, ...heldAt(false)];
  await fewAtATime(8, compared.orphans, async (object) => {
    const { kind, id, name } = object;
    const { type } = kind;
    const key = `${type} ${id}`;
    const held = keysOf(type, id)
      .map((one) => holders.get(`${type} ${one}`))
      .find((one) => one !== undefined);
    const resource = resources[type];
    const problem = kind.isImportable ? heldProblem(held) : whyNot(type);
    if (resource === undefined || problem !== undefined) return void remarks.push(`${key}: ${problem ?? whyNot(type)}`);
    const holder = held === undefined ? holderAmong(all, { type, id, endpoint }) : undefined;
    if (holder && holder.endpoint === undefined)
      return void remarks.push(`${key}: ${stackText(holder.stack)} holds it. Two stacks must not own one object.`);
    if (type === "Secret" && held === undefined) {
      const setter = setElsewhere?.has(id)
        ? "another resource of the state"
        : [state, ...theirs].flatMap((one) => sealedSetter(one, id) ?? [])[0];
      if (setter !== undefined) return void remarks.push(`${key}: ${setter} sets it.`);
    }
    try {
      const seen = await read(resource, id, undefined, caller);
      if (seen) found.push({ key, type, id, name: nameOf(name, seen.inputs), inputs: seen.inputs, held });
      if (seen && holder) warnings.push(heldElsewhere(key, holder));
      else if (seen && held === undefined && object.createdBy === "pulumi") warnings.push(ofAnotherStack(key));
    } catch (error) {
      remarks.push(`${key}: it cannot be read (${messageOf(error)}).`);
    }
  });
  const byKey = (a: Found, b: Found): number => (a.key < b.key ? -1 : 1);
  const unread = others.failures.map((failure) => `Not compared: ${failure}`);
  return {
    found: found.sort(byKey),
    remarks: [...remarks.sort(), ...compared.notes],
    warnings: [...unread, ...warnings.sort()],
  };
}

/** The warning about an object that has the tags of a resource. */
export const ofAnotherStack = (key: string): string =>
  `${key} was created for a resource of another stack. Two stacks must not own one object.`;

/** The warning about an object that another stack has at another endpoint, which may be another address of the same service. */
const heldElsewhere = (
  key: string,
  { stack, endpoint = "" }: { stack: string; endpoint: string | undefined },
): string =>
  `${key} is held by ${stackText(stack)}, whose endpoint is ${endpoint}. If that is the same service, do not import it: two stacks must not own one object.`;

/** The resource that may set a secret: the state holds encrypted which ones it sets. */
const sealedSetter = ({ resources }: Pick<StackState, "resources">, id: string): string | undefined =>
  secretsHeld(resources, id.split("/")[0]).sealed.map(({ urn }) => `perhaps ${urn}`)[0];

/** Why a resource of the state has no place in a program without components and providers. */
function heldProblem(held: StateResource | undefined): string | undefined {
  if (held?.parent !== undefined) return `${held.urn} of a component has it.`;
  return held?.provider === undefined ? undefined : `${held.urn} with a provider of its own has it.`;
}

/** The name of an object: the one of its list, else the one among its inputs; undefined if it has only an id. */
export const nameOf = (listed: string | undefined, inputs: Values): string | undefined => {
  if (listed !== undefined) return listed;
  const { name, hostname, username, type } = inputs;
  return [name, username, hostname, type].find((one) => typeof one === "string");
};

const whyNot = (type: string): string =>
  type === "Hostname"
    ? "a hostname without a certificate is no resource; delete it, or add an AcmeCertificate."
    : `a ${type} cannot be imported (${resources[type]?.noImport ?? "no resource has it"}).`;

// Describes in a few words what a run of the engine did to a resource, from facts: the state before and after, the objects
// of the service, and the errors of the run.
import { fleetTag } from "../../api/fleetTags.ts";
import { send } from "./around.ts";
import type { Stack } from "./stack.ts";
import type { TestService } from "./startService.ts";

/** A resource in the state; a second one of the same name may be pending deletion. */
export interface InState {
  readonly id: string;
  readonly created: string;
  readonly modified: string;
  /** Ids of the Machines of a fleet. */
  readonly machines: readonly string[];
}

/** The state by name. */
export interface Held {
  readonly live: Readonly<Record<string, InState>>;
  /** Ids with a pending deletion. */
  readonly leaving: readonly string[];
}

/** The state by name, and the pending deletions in it. */
export function held(stack: Stack): Held {
  const own = stack.resources().filter(({ custom, type }) => custom && !type.startsWith("pulumi:"));
  return {
    live: Object.fromEntries(
      own
        .filter((one) => one.delete !== true)
        .map(({ urn, outputs, ...one }) => [
          urn.slice(urn.lastIndexOf("::") + 2),
          { ...one, machines: members(outputs) },
        ]),
    ),
    leaving: own.filter((one) => one.delete === true).map(({ id }) => id),
  };
}

/** The Machines in the outputs of a fleet. */
const members = ({ machines = [] }: Readonly<Record<string, unknown>> = {}): string[] =>
  (machines as { readonly id: string }[]).map(({ id }) => id);

const over: readonly (string | undefined)[] = ["destroyed", "destroying", "pending_destroy", "deleting", "deleted"];

interface OneMachine {
  readonly id: string;
  readonly state: string;
  readonly config: { readonly metadata?: Readonly<Record<string, string>> };
}

/** Ids, as the state has them, of the service's objects in these Apps, and of all clusters. */
export async function onService(service: TestService): Promise<Set<string>> {
  const get = <T>(path: string): Promise<T> => send<T>(service, "GET", path);
  const { apps } = await get<{ apps: { name: string }[] }>("/v1/apps?org_slug=personal");
  const inApp = async ({ name: app }: { name: string }): Promise<string[]> => {
    const [volumes, machines, { secrets }] = await Promise.all([
      get<{ id: string; state: string }[]>(`/v1/apps/${app}/volumes`),
      get<OneMachine[]>(`/v1/apps/${app}/machines`),
      get<{ secrets: { name: string }[] }>(`/v1/apps/${app}/secrets`),
    ]);
    const inside = [...volumes, ...machines].filter(({ state }) => !over.includes(state));
    const fleets = machines
      .filter((one) => inside.includes(one))
      .flatMap(({ config }) => config.metadata?.[fleetTag] ?? []);
    const all = [...inside.map(({ id }) => id), ...fleets, ...secrets.map(({ name }) => name)];
    return [app, ...all.map((id) => `${app}/${id}`)];
  };
  const { data } = await get<{ data: { id: string; status: string }[] }>("/v1/postgres?org_slug=personal");
  const clusters = data.filter(({ status }) => !over.includes(status)).map(({ id }) => id);
  return new Set([...clusters, ...(await Promise.all(apps.map(inApp))).flat()]);
}

/** The errors of a run by resource name. */
export function errorsOf(output: string): Readonly<Record<string, string>> {
  // The Automation API repeats the output in the message of its error.
  const [, diagnostics = ""] = output.split(/^(?:Diagnostics|Resources):$/m);
  const sections = diagnostics.split(/^ {2}\S+ \((.+)\):$/m);
  const pairs = sections.flatMap((name, at): [string, string][] =>
    at % 2 === 1 ? [[name, sections[at + 1] ?? ""]] : [],
  );
  return Object.fromEntries(pairs.filter(([, text]) => text.includes("error:")));
}

/** The facts about one cell. */
export interface Facts {
  /** In the state before, under its name at that time. */
  readonly before: InState | undefined;
  /** In the state afterwards, under the same name. */
  readonly after: InState | undefined;
  /** In the state afterwards, under its current name in the program, if that is different. */
  readonly renamed: InState | undefined;
  /** Id that the program imports. */
  readonly imported: string | undefined;
  /** Whether the original still exists on the service afterwards. */
  readonly isThere: boolean;
  /** Whether the deletion of the original is pending. */
  readonly isLeaving: boolean;
  /** Whether others have deleted it. */
  readonly isDeletedOutside: boolean;
  /** Whether the user removed it from the state. */
  readonly isForgotten: boolean;
  readonly error: string | undefined;
}

const ourRefusal = /troubleshooting\.md#refused|set (?:allowDataLoss: true|deletionProtection: false)/;
const engineRefusal = /protect|violates plan/;
const hookFailure = /hook "[\w-]+" failed/;

function refusal(error: string | undefined): string | undefined {
  if (error === undefined || hookFailure.test(error)) return undefined;
  if (ourRefusal.test(error)) return "refused";
  return engineRefusal.test(error) ? "refused by Pulumi" : "not possible";
}

/** What happened to it, without the error. */
function change({ before, after, renamed, imported, isThere, isDeletedOutside, isForgotten }: Facts): string {
  const now = renamed ?? after;
  if (before === undefined) {
    if (now === undefined) return "not created";
    return now.id === imported ? "imported" : "created";
  }
  if (now === undefined) {
    if (isThere) return "kept on the service, out of the state";
    return isDeletedOutside ? "taken out of the state" : "deleted";
  }
  if (renamed !== undefined) {
    if (renamed.id === before.id)
      return renamed.created === before.created ? "moved to the new name" : "given to the new name";
    return isThere ? "created again under the new name, original kept" : "deleted, created again under the new name";
  }
  const hasSame = before.machines.length > 0 && before.machines.every((id) => now.machines.includes(id));
  if (hasSame && now.created !== before.created) return "created again with its Machines";
  if (now.id === imported)
    return isThere ? "other one imported, original kept" : "other one imported, original deleted";
  if (now.id === before.id && now.created === before.created)
    return now.modified === before.modified ? "unchanged" : "updated in place";
  if (isDeletedOutside) return "created again";
  if (isForgotten && now.id === before.id) return "written again";
  return isThere && now.id !== before.id ? "created again, original kept on the service" : "replaced";
}

/** The text of a cell. */
export function word(facts: Facts): string {
  const refused = refusal(facts.error);
  const what = change(facts);
  if (hookFailure.test(facts.error ?? "")) return `${what}; the run fails`;
  if (refused === undefined) return what;
  if (facts.before === undefined) return "not possible";
  const now = facts.renamed ?? facts.after;
  if (facts.isThere && now !== undefined && now.id !== facts.before.id)
    return `${refused}: original kept, another one beside it`;
  return facts.isThere && what === "unchanged" ? `${refused}: original kept` : `${what} (${refused})`;
}

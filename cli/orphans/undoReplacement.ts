// `pulumi-machines undo-replacement`: makes an original that still exists the resource's current object again. It changes
// only the state; the next `pulumi up` deletes the replacement.
import { rmSync, writeFileSync } from "node:fs";
import { orUndefined } from "../../provider/client/existence.ts";
import type { Api } from "../../provider/client/api.ts";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import type { Streams } from "./orphans.ts";
import { clientOf } from "../targets.ts";
import { exportStack, pulumi, stackConfig } from "../pulumi.ts";
import {
  changedBack,
  chosen,
  createdIn,
  replacementsIn,
  undone,
  type DeploymentEntry,
  type Replacement,
} from "./replacements.ts";
import { deploymentIn, listIn, readState, type StackState } from "../stackState.ts";
import { agreed, requireInteractiveTerminal, untilItEnds, type Asking } from "../terminal.ts";
import { processJournal } from "../../provider/core/journal.ts";
import { Run } from "../../provider/core/run.ts";

/** Options of the command. */
export interface UndoOptions extends Asking {
  readonly stack?: string;
}

const source = "the output of `pulumi stack export`";

/** The timeout in milliseconds for reading the originals. */
const longestLook = 120_000;

/**
 * Shows the replacements, checks that the originals exist, asks, and writes the state. Returns the exit code: 0 if it
 * is done or nothing is to do, 1 if the user refused or an original is gone.
 * @throws MachinesError `invalid-input` or `configuration` for invalid arguments
 */
export async function undoReplacement(
  names: readonly string[],
  options: UndoOptions,
  { out, err }: Streams,
): Promise<0 | 1> {
  const text = await exportStack(options.stack);
  const state = readState(text, source);
  const all = replacementsIn(deploymentIn(text, source));
  const asked = chosen(all, names);
  out(`Stack ${state.stack ?? ""} of ${state.project ?? ""}\n\n`);
  if (asked.length === 0) {
    out(
      `There is nothing to undo: no resource that holds data has an original that waits for its deletion.\n${leftText(all)}`,
    );
    return 0;
  }
  const { there, gone } = await checkOriginals(asked, options, err);
  for (const why of gone) err(why);
  const missing = gone.length > 0 ? 1 : 0;
  if (there.length === 0) {
    err("Not undone. Nothing has changed.");
    return 1;
  }
  out(there.map(planText).join("\n"));
  if (names.length === 0) out(leftText(all.filter((one) => !asked.includes(one))));
  if (options.dryRun) {
    out("This was a dry run: nothing has changed.\n");
    return missing;
  }
  requireInteractiveTerminal(options);
  if (!(await agreed(options, questionFor(state, there)))) {
    out("Not undone. Nothing has changed.\n");
    return 1;
  }
  const copy = await write(text, state, there, options);
  out(doneText(copy, options));
  return missing;
}

/** The originals that the service still has, and a sentence for each of the others. */
async function checkOriginals(
  asked: readonly Replacement[],
  { stack }: UndoOptions,
  err: Streams["err"],
): Promise<{ there: Replacement[]; gone: string[] }> {
  const own = await stackConfig(stack);
  // The token of an explicit provider may be only in the state.
  const isElsewhere = asked.some(({ original }) => original.provider !== undefined);
  const providers = isElsewhere ? readState(await exportStack(stack, "clear"), source).providers : [];
  const clients = new Set<Api>();
  const [there, gone]: [Replacement[], string[]] = [[], []];
  try {
    for (const one of asked) {
      const api = clientOf(one.original.provider, own, providers, err);
      clients.add(api);
      if (await isThere(api, one, err)) there.push(one);
      else gone.push(goneText(one, api.config.endpoint));
    }
  } finally {
    await Promise.all([...clients].map((api) => api.close()));
  }
  return { there, gone };
}

/** Whether the original exists and stays: an object that is being deleted counts as gone. */
async function isThere(api: Api, { resource, original }: Replacement, warn: Streams["err"]): Promise<boolean> {
  const at = api.clock.now() + longestLook;
  const id = resource.id.parse(original.id);
  const run = new Run(() => processJournal(warn));
  const call = { api: api.within({ at, allowed: "2m" }), run, progress: () => undefined, warn };
  return (await orUndefined(() => resource.read({ ...call, id, state: undefined }))) !== undefined;
}

/** Writes the state, unless another client changed it meanwhile. Returns the file with the previous state. */
async function write(
  text: string,
  { stack = "stack" }: StackState,
  undoing: readonly Replacement[],
  options: UndoOptions,
): Promise<string> {
  const entries = (of: string): string => JSON.stringify(listIn(deploymentIn(of, source), "resources"));
  if (entries(await exportStack(options.stack)) !== entries(text))
    throw new MachinesError(
      "refused",
      `the state of ${stack} has changed since it was read: another run is at work. Nothing has changed here; run this again`,
    );
  const exported = JSON.parse(text) as { readonly deployment: { readonly resources: readonly DeploymentEntry[] } };
  const { deployment } = exported;
  // The ids of the new text, not of the one that was read.
  const fresh = new Set(undoing.map(({ original: { urn, id } }) => `${urn}#${id}`));
  const found = replacementsIn(deployment).filter(({ original: { urn, id } }) => fresh.has(`${urn}#${id}`));
  const next = { ...exported, deployment: { ...deployment, resources: undone(deployment.resources, found) } };
  const copy = copyOf(text, stack);
  try {
    await untilItEnds(() => pulumi(["stack", "import"], options.stack, JSON.stringify(next)));
  } catch (error) {
    rmSync(copy, { force: true });
    throw new MachinesError("refused", `${messageOf(error)}\nNothing has changed.`, { cause: error });
  }
  return copy;
}

/** Saves the previous state in a file for only the user: its secrets are encrypted, names and ids are not. */
function copyOf(text: string, stack: string): string {
  const time = new Date().toISOString().replace(/\.\d+/, "").replaceAll(/[-:]/g, "");
  const file = `${stack}-before-undo-${time}.json`;
  try {
    writeFileSync(file, text, { flag: "wx", mode: 0o600 });
  } catch (error) {
    throw new MachinesError(
      "invalid-input",
      `the copy of the state, ${file}, cannot be written: ${messageOf(error)}. Nothing has changed`,
      { cause: error },
    );
  }
  return file;
}

const idsOf = ({ others }: Replacement): string[] => others.flatMap(({ id }) => (id ? [id] : []));

function planText(one: Replacement): string {
  const { original, others, createdAt } = one;
  const since = (time: string | undefined): string => (time === undefined ? "" : `, in the state since ${time}`);
  return [
    `${original.type} ${original.name}  ${original.urn}`,
    `  keeps    ${original.id}${since(createdAt)}`,
    ...others.map(
      (entry) => `  deletes  ${entry.id ?? ""}${since(createdIn(entry))}, with all it holds, at the next up`,
    ),
    ...changedBack(one).map(
      ({ input, before }) => `  set ${input} back to ${before} in the program, or the next up replaces it again`,
    ),
    "",
  ].join("\n");
}

const questionFor = ({ stack = "" }: StackState, undoing: readonly Replacement[]): string =>
  `\nData written to ${undoing.flatMap(idsOf).join(", ")} since its creation is lost: the next up deletes it.\nUndo the replacement in ${stack}?`;

function leftText(left: readonly Replacement[]): string {
  const open = left.filter(({ isGivenUp }) => !isGivenUp);
  const givenUp = left.filter(({ isGivenUp }) => isGivenUp);
  const names = (all: readonly Replacement[]): string =>
    all.map(({ original }) => `${original.type} ${original.name} (${original.id})`).join(", ");
  return [
    ...(open.length > 0 ? [`\nReplaced too, and left so unless you name it: ${names(open)}.\n`] : []),
    ...(givenUp.length > 0 ? [`\nGiven up before, for the next up to delete: ${names(givenUp)}.\n`] : []),
  ].join("");
}

const goneText = ({ resource, original }: Replacement, endpoint: string): string =>
  `The ${original.type} ${original.id} is gone, or on its way out, as ${endpoint} has it: there is no original to go back to. ` +
  `${resource.losesData === undefined ? "The next up" : "`pulumi refresh`"} takes it out of the state.`;

const doneText = (copy: string, { stack }: UndoOptions): string =>
  [
    "",
    "Undone. `pulumi up`, without --replace, goes on with the original and deletes the replacement; `pulumi preview` shows it.",
    `The state of before is in ${copy}. Until the next up, this brings it back: pulumi stack import${stack === undefined ? "" : ` --stack ${stack}`} --file ${copy}`,
    "",
  ].join("\n");

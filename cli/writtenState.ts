// Writes a changed state into a stack, and saves the previous one.
import { rmSync, writeFileSync } from "node:fs";
import { MachinesError, messageOf } from "../provider/client/errors.ts";
import type { Values } from "../provider/core/resource.ts";
import { exportStack, pulumi } from "./pulumi.ts";
import { deploymentIn, listIn } from "./stackState.ts";
import { untilItEnds } from "./terminal.ts";

const source = "the output of `pulumi stack export`";

/** The stack whose state is written, and why. */
export interface Writing {
  /** Name of the stack. */
  readonly stack: string | undefined;
  /** The stack that the user named; undefined for the selected one. */
  readonly given: string | undefined;
  /** What is done, as a part of the file's name. */
  readonly before: string;
}

/**
 * Writes other resources into the state, unless another client has changed it since it was read. Returns the file with the previous
 * state.
 * @param text the export of the state that was read, with its secrets sealed
 * @throws MachinesError `refused` if the state has changed, or the CLI fails; it says whether the state may have been written
 */
export async function writeState(
  text: string,
  resources: readonly Values[],
  { stack = "stack", given, before }: Writing,
): Promise<string> {
  if (entriesOf(await exportStack(given)) !== entriesOf(text))
    throw new MachinesError(
      "refused",
      `the state of ${stack} has changed since it was read: another run is at work. Nothing has changed here; run this again`,
    );
  const exported = JSON.parse(text) as { readonly deployment: Values };
  const next = { ...exported, deployment: { ...exported.deployment, resources } };
  const copy = copyOf(text, stack, before);
  try {
    await importState(JSON.stringify(next), given);
  } catch (error) {
    const mayBeWritten = await differs(text, given);
    if (!mayBeWritten) rmSync(copy, { force: true });
    const now = mayBeWritten ? `The state may have been written. ${earlierText(copy, given)}` : "Nothing has changed.";
    throw new MachinesError("refused", `${messageOf(error)}\n${now}\n${lockedText(given)}`, { cause: error });
  }
  return copy;
}

/**
 * Writes an earlier state again, unless another run has changed the one that replaced it.
 * @param text the export of the earlier state
 * @param written the export of the state that replaced it
 * @throws MachinesError if it has changed, or the CLI fails
 */
export async function restoreState(text: string, written: string, stack: string | undefined): Promise<void> {
  if (entriesOf(await exportStack(stack)) !== entriesOf(written))
    throw new MachinesError("refused", "another run has changed the state since");
  await importState(text, stack);
}

/** What a run changes in a state, as a text to compare: an interrupted one leaves operations, and maybe no resource. */
function entriesOf(text: string): string {
  const deployment = deploymentIn(text, source);
  return JSON.stringify([listIn(deployment, "resources"), listIn(deployment, "pending_operations")]);
}

/** Whether a state has other entries than an export of it. One that cannot be read may have. */
async function differs(text: string, stack: string | undefined): Promise<boolean> {
  try {
    return entriesOf(await exportStack(stack)) !== entriesOf(text);
  } catch {
    return true;
  }
}

/** Makes a text the state of a stack. ^C does not reach the CLI, which would stop at once and leave the stack locked. */
const importState = (text: string, stack: string | undefined): Promise<string> =>
  untilItEnds(() => pulumi(["stack", "import"], stack, { input: text, isOutOfReach: true }));

const optionFor = (stack: string | undefined): string => (stack === undefined ? "" : ` --stack ${stack}`);

/** The command that makes the previous state of a stack its state again. */
export const restoring = (copy: string, stack: string | undefined): string =>
  `pulumi stack import${optionFor(stack)} --file ${copy}`;

/** What to do with the previous state of a stack where it is not known what the stack has now. */
export const earlierText = (copy: string, stack: string | undefined): string =>
  `The earlier state is in ${copy}. If no other run has changed the state since, this restores it: ${restoring(copy, stack)}`;

const lockedText = (stack: string | undefined): string =>
  `If the stack is locked and no run is at work: pulumi cancel${optionFor(stack)}`;

/** Saves the previous state in a file for only the user: its secrets are encrypted, names and ids are not. */
function copyOf(text: string, stack: string, before: string): string {
  const time = new Date().toISOString().replace(/\.\d+/, "").replaceAll(/[-:]/g, "");
  const file = `${stack}-before-${before}-${time}.json`;
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

// `pulumi-machines undo-replacement`: makes an original that still exists the resource's current object again. It changes
// only the state; the next `pulumi up` deletes the replacement.
import { orUndefined } from "../../provider/client/existence.ts";
import type { Api } from "../../provider/client/api.ts";
import { clientOf, readingCall } from "../targets.ts";
import { exportStack, stackConfig } from "../pulumi.ts";
import { changedBack, chosen, createdIn, replacementsIn, undone, type Replacement } from "./replacements.ts";
import type { DeploymentEntry } from "../entries.ts";
import { deploymentIn, heldIn, idsOfState, readState, type StackState } from "../stackState.ts";
import { heldKeys } from "../stateIds.ts";
import { readOtherStacks, stackText, type OtherStacks } from "./otherStacks.ts";
import { doubtAbout, proofFacts, type ProofFacts } from "./proof.ts";
import { agreed, requireInteractiveTerminal, typed, type Asking, type Streams } from "../terminal.ts";
import { restoring, writeState } from "../writtenState.ts";

/** Options of the command. */
export interface UndoOptions extends Asking {
  readonly stack?: string;
}

const source = "the output of `pulumi stack export`";

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
  const checked = await checkAll(asked, options, err);
  const toType = names.length > 0 ? [] : checked.there.filter(({ doubt }) => doubt !== undefined);
  // Without a name, --yes agrees only to what is proved to be this stack's.
  const refused = options.yes ? toType : [];
  const there = checked.there.filter((one) => !refused.includes(one));
  for (const why of [...checked.gone, ...refused.map(notCoveredText)]) err(why);
  const missing = checked.gone.length + refused.length > 0 ? 1 : 0;
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
  if (!(await isAgreed(options, state, there, toType))) {
    out("Not undone. Nothing has changed.\n");
    return 1;
  }
  // Another stack may have got one of them while the user was asked.
  const again = await checkAll(there, options, () => undefined);
  for (const why of again.gone) err(why);
  if (again.gone.length > 0 || again.there.some(({ doubt }, i) => doubt !== there[i]?.doubt)) {
    err("The stacks have changed meanwhile. Not undone. Nothing has changed here; run this again.");
    return 1;
  }
  const copy = await write(text, state, there, options);
  out(doneText(copy, options));
  return missing;
}

/** A replacement that can be undone. */
interface Checked extends Replacement {
  /** Why nothing proves that this stack owns what the next `up` deletes, as a sentence without its end. */
  readonly doubt: string | undefined;
}

/** Those whose originals the service still has and that no other stack holds, and a sentence for each of the others. */
async function checkAll(
  asked: readonly Replacement[],
  options: UndoOptions,
  err: Streams["err"],
): Promise<{ there: Checked[]; gone: string[] }> {
  const others = await readOtherStacks(options.stack);
  for (const failure of others.failures) err(`Not compared: ${failure}`);
  const facts = proofFacts([], others);
  const { there, gone } = await checkOriginals(asked, options, err);
  const held = there.map((one) => heldElsewhere(one, others));
  return {
    there: there.filter((_, i) => held[i] === undefined).map((one) => ({ ...one, doubt: doubtOf(one, facts) })),
    gone: [...gone, ...held.flatMap((why) => why ?? [])],
  };
}

/** Why a replacement cannot be undone here: another stack has one of its objects, and the next `up` would delete one of them. */
function heldElsewhere(one: Replacement, { stacks }: OtherStacks): string | undefined {
  const { type } = one.original;
  for (const id of [one.original.id, ...idsOf(one)])
    for (const { stack, resources } of stacks)
      if (heldKeys(resources).get(type)?.has(id) === true)
        return `${type} ${id}: ${stackText(stack)} holds it, too, and the next up here would delete an object of ${one.original.urn}. Remove it from one of the two states first, with \`pulumi state delete\`.`;
  return undefined;
}

/** Why nothing proves that this stack owns the objects that the next `up` deletes. */
function doubtOf({ others }: Replacement, facts: ProofFacts): string | undefined {
  for (const entry of others) {
    const held = heldIn(entry);
    const ids = held ? [...idsOfState([held])] : [];
    const doubts = (ids.length === 0 ? [undefined] : ids).map((id) => doubtAbout(facts, id));
    const [doubt] = doubts.filter((one) => one !== undefined);
    if (doubt !== undefined) return doubt;
  }
  return undefined;
}

const notCoveredText = ({ original: { type, name }, doubt = "" }: Checked): string =>
  `Not undone: ${type} ${name}: nothing proves that this stack owns what the next up deletes (${doubt}), and --yes alone does not cover that. If no one needs it, name the resource: npx pulumi-machines undo-replacement ${name} --yes`;

/** Asks for the name of each resource whose owner is not proved, and then once for all. */
async function isAgreed(
  options: UndoOptions,
  state: StackState,
  there: readonly Checked[],
  toType: readonly Checked[],
): Promise<boolean> {
  if (options.yes) return true;
  for (const { original } of toType)
    if (!(await typed(`Type ${original.name} to undo the replacement of this ${original.type}: `, original.name)))
      return false;
  return agreed(options, questionFor(state, there));
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
  const call = readingCall(api, warn);
  const id = resource.id.parse(original.id);
  return (await orUndefined(() => resource.read({ ...call, id, state: undefined }))) !== undefined;
}

/** Writes the state, unless another client changed it meanwhile. Returns the file with the previous state. */
function write(
  text: string,
  { stack }: StackState,
  undoing: readonly Replacement[],
  options: UndoOptions,
): Promise<string> {
  const { resources, ...others } = deploymentIn(text, source) as { readonly resources: readonly DeploymentEntry[] };
  // The ids of the new text, not of the one that was read.
  const fresh = new Set(undoing.map(({ original: { urn, id } }) => `${urn}#${id}`));
  const found = replacementsIn({ ...others, resources }).filter(({ original: { urn, id } }) =>
    fresh.has(`${urn}#${id}`),
  );
  return writeState(text, undone(resources, found), { stack, given: options.stack, before: "undo" });
}

const idsOf = ({ others }: Replacement): string[] => others.flatMap(({ id }) => (id ? [id] : []));

function planText(one: Checked): string {
  const { original, others, createdAt, doubt } = one;
  const since = (time: string | undefined): string => (time === undefined ? "" : `, in the state since ${time}`);
  return [
    `${original.type} ${original.name}  ${original.urn}`,
    `  keeps    ${original.id}${since(createdAt)}`,
    ...others.map(
      (entry) => `  deletes  ${entry.id ?? ""}${since(createdIn(entry))}, with all it holds, at the next up`,
    ),
    ...(doubt === undefined ? [] : [`  nothing proves that this stack owns what is deleted: ${doubt}`]),
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
    ...(open.length > 0 ? [`\nAlso replaced, and kept that way unless you name it: ${names(open)}.\n`] : []),
    ...(givenUp.length > 0 ? [`\nAlready given up; the next up deletes: ${names(givenUp)}.\n`] : []),
  ].join("");
}

const goneText = ({ resource, original }: Replacement, endpoint: string): string =>
  `The ${original.type} ${original.id} is deleted or being deleted at ${endpoint}: there is no original to restore. ` +
  `${resource.losesData === undefined ? "The next up" : "`pulumi refresh`"} takes it out of the state.`;

const doneText = (copy: string, { stack }: UndoOptions): string =>
  [
    "",
    "Undone. `pulumi up`, without --replace, continues with the original and deletes the replacement; `pulumi preview` shows it.",
    `The previous state is in ${copy}. Until the next up, this restores it: ${restoring(copy, stack)}`,
    "",
  ].join("\n");

// `pulumi-machines promote`: promotes a release from one stack to the next, or rolls a stack back to the previous one.
import { userInfo } from "node:os";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { bareId } from "../../api/names.ts";
import { quoted } from "../orphans/importFile.ts";
import { agreed, requireInteractiveTerminal, type Asking, type Streams } from "../terminal.ts";
import { configKeys } from "../../provider/client/config.ts";
import { setupProblem, SetupError, stackConfig } from "../pulumi.ts";
import { paint } from "../style.ts";
import { noWayBack, wrongDirection } from "./direction.ts";
import { countsText, errorsIn, runEngine, stepText, violationsIn, type Ran } from "./engine.ts";
import { healthOf } from "./health.ts";
import { costsOf, destructive, runsMachines, stepsOf, usesImage } from "./plan.ts";
import { unknownPolicies } from "./policyFiles.ts";
import {
  asIfPinned,
  begin,
  end,
  isSame,
  openProject,
  pin,
  reasonOf,
  runsNow,
  standingOf,
  type ReleaseRecord,
  type Stack,
} from "./stacks.ts";
import { failureOf } from "./status.ts";

/** Options of the command. */
export interface PromoteOptions extends Asking {
  /** Packs that check the stack, with a file of configuration for each or for none; `{stack}` is replaced by its name. */
  readonly policyPack?: readonly string[];
  readonly policyPackConfig?: readonly string[];
  /** The user who promotes; by default the user of this computer. */
  readonly by?: string;
  /** Folder that the user named, for commands to copy. */
  readonly cwd?: string | undefined;
  /** Whether to print all output of the engine. */
  readonly verbose?: true;
}

/** A promotion or a rollback to perform. */
interface Move {
  readonly to: Stack;
  /** Name of the stack that it is promoted from; undefined for a rollback. */
  readonly from?: string;
  /** The stack's current release. */
  readonly current: ReleaseRecord | undefined;
  /** The release that the stack runs afterwards. */
  readonly wanted: ReleaseRecord;
  /** Releases that stay pinned after `wanted` while the promotion or rollback is in progress. */
  readonly meanwhile: readonly ReleaseRecord[];
  /** Releases that stay pinned after `wanted` once the promotion or rollback is complete. */
  readonly after: readonly ReleaseRecord[];
  readonly title: string;
  /** How to undo it once it is done. */
  readonly undo: string;
}

/**
 * Promotes the release of one stack to another.
 * @returns 0 if it is complete, if nothing had to be done, or after a dry run; 1 if the user declined or a check failed
 */
export async function promote(from: string, to: string, options: PromoteOptions, streams: Streams): Promise<0 | 1> {
  const project = await openProject();
  const [source, target] = await Promise.all([project.stack(from), project.stack(to)]);
  const [offered, { current, pinned, history, isUnderWay }] = await Promise.all([runsNow(source), standingOf(target)]);
  if (offered === undefined)
    throw new MachinesError("invalid-input", `stack ${from} runs no release: it has no output release yet`);
  if (isSame(offered, current) && isSame(offered, pinned) && !isUnderWay) {
    const failed = await failureOf(source, offered);
    streams.out(
      `${to} runs the release of ${from} already: ${offered.image}\n${failed === undefined ? "" : `${failed}\n`}`,
    );
    return 0;
  }
  const wrongWay = await wrongDirection(project, source, target, rollbackCommand(from, options));
  if (wrongWay !== undefined) {
    for (const line of wrongWay) streams.err(line);
    return 1;
  }
  // An interrupted promotion has pinned its release. If this is the same release, the command continues that promotion.
  const goesOn = pinned?.pending === true && isSame(pinned, offered);
  const wanted = {
    ...offered,
    promotedBy: goesOn ? pinned.promotedBy : byOf(options),
    promotedAt: goesOn ? pinned.promotedAt : new Date().toISOString(),
    pending: true,
  };
  requireInteractiveTerminal(options);
  const problems = await problemsOf(source, target, offered);
  if (problems.length > 0) {
    for (const problem of problems) streams.err(problem);
    streams.err(
      `Not promoted: ${from} does not run its release in a healthy state. ${repairOf(problems, from)} Then promote again. Nothing has changed.`,
    );
    return 1;
  }
  const before = isSame(history[0], wanted) ? history.slice(1) : history;
  const title = `${goesOn ? "Continuing the promotion" : "Promotion"} from ${from} to ${to}`;
  const [last] = before;
  const undo =
    last === undefined
      ? `${to} has no previous release to roll back to.`
      : `To roll back to ${last.image}: ${rollbackCommand(to, options)}`;
  return carryOut(
    { to: target, from, current, wanted, meanwhile: before, after: before, title, undo },
    options,
    streams,
  );
}

/**
 * Why the Machines of the release to promote are not healthy. Machines that this computer may not look at are left to the
 * preview, which has the token that the program gives for them.
 */
async function problemsOf(source: Stack, target: Stack, release: ReleaseRecord): Promise<readonly string[]> {
  try {
    const [from, to] = await Promise.all([stackConfig(source.name), stackConfig(target.name)]);
    const isSamePlace = ["endpoint", "organization"].every((key) => from.get(key) === to.get(key));
    // The token of the environment is meant for the target, and goes nowhere else.
    const { [configKeys.token.environment]: token, ...others } = process.env;
    const env = isSamePlace ? { ...others, [configKeys.token.environment]: token } : others;
    return (await healthOf(source, release, env)).problems;
  } catch (error) {
    if (error instanceof SetupError || !(error instanceof MachinesError)) throw error;
    return [];
  }
}

/**
 * Whether a Machine is switched off: an update of the stack leaves its power as it is, unless the program sets it. A fleet
 * starts its own.
 */
const isOff = (problems: readonly string[]): boolean =>
  problems.some((problem) => /^Machine \S+ is (stopped|suspended|created)$/.test(problem));

const repairOf = (problems: readonly string[], stack: string): string =>
  isOff(problems)
    ? `\`pulumi up\` alone does not start a Machine: set \`state: "started"\` in the program and run \`pulumi up --refresh --stack ${quoted(stack)}\`, or start it through the service.`
    : `Repair it, for example with \`pulumi up --refresh --stack ${quoted(stack)}\`.`;

/** The command that rolls a stack back, to be copied: it works in the same folder, and checks the same policies. */
function rollbackCommand(stack: string, { cwd, policyPack = [], policyPackConfig = [] }: PromoteOptions): string {
  const around = [
    ...(cwd === undefined ? [] : ["--cwd", cwd]),
    ...policyPack.flatMap((path) => ["--policy-pack", path]),
    ...policyPackConfig.flatMap((file) => ["--policy-pack-config", file]),
  ];
  return ["npx", "pulumi-machines", "promote", stack, "--rollback", ...around].map(quoted).join(" ");
}

/** Rolls a stack back to its previous release. Exit codes as of {@link promote}. */
export async function rollback(to: string, options: PromoteOptions, streams: Streams): Promise<0 | 1> {
  const target = await (await openProject()).stack(to);
  const { current, pinned, history, change } = await standingOf(target);
  // If a promotion was interrupted, the rollback restores the release before it, however far the promotion came. An interrupted
  // rollback is continued. If another computer started it, only the tag of the stack says which of them it is.
  const left = pinned?.pending === true ? pinned : change?.goingBack === false ? change : (current ?? pinned);
  const goesOn =
    pinned?.goingBack === true ? pinned : history.find((one) => change?.goingBack === true && isSame(one, change));
  const wanted = goesOn ?? history.find((one) => !isSame(one, left));
  if (wanted === undefined)
    throw new MachinesError(
      "invalid-input",
      `stack ${to} has no previous release to roll back to${pinned === undefined ? "" : `. After \`pulumi config rm releases --stack ${to}\`, its next up takes the release of the previous stack`}`,
    );
  const { pending: _, ...rest } = wanted;
  const again = { ...rest, promotedBy: byOf(options), promotedAt: new Date().toISOString(), goingBack: true };
  const undo = `To undo the rollback, promote to ${to} again.`;
  const after = history.slice(history.findIndex((one) => isSame(one, wanted)) + 1);
  return carryOut(
    { to: target, current, wanted: again, meanwhile: history, after, title: `${to} goes back`, undo },
    options,
    streams,
  );
}

function byOf({ by }: PromoteOptions): string {
  try {
    return by ?? process.env["GITHUB_ACTOR"] ?? userInfo().username;
  } catch {
    throw new MachinesError("invalid-input", "the name of the user who promotes cannot be determined: add --by NAME");
  }
}

/** Shows, previews, asks, applies, checks the health, and records the result. */
async function carryOut(move: Move, options: PromoteOptions, { out, err }: Streams): Promise<0 | 1> {
  const { to, current, wanted, meanwhile, after, title, undo } = move;
  requireInteractiveTerminal(options);
  out(`${paint("head", title)}\n${changesOf(current, wanted)}\n`);
  const forStack = (paths: readonly string[]) => paths.map((path) => path.replaceAll("{stack}", bareId(to.name)));
  const packs = {
    ...(options.policyPack && { policyPacks: forStack(options.policyPack) }),
    ...(options.policyPackConfig && { policyPackConfigs: forStack(options.policyPackConfig) }),
  };
  const print = options.verbose ? out : undefined;
  const previewed = await asIfPinned(to, wanted, (configFile) =>
    runEngine((progress) => to.preview({ ...packs, configFile, ...progress }), print),
  );
  const refusal = previewRefusal(previewed, move, options, packs.policyPackConfigs);
  if (refusal) {
    for (const line of refusal) err(line);
    return 1;
  }
  out(summaryOf(previewed, options));
  if (options.dryRun || !(await agreed(options, `Change ${to.name}?`))) {
    out(options.dryRun ? "This was a dry run: nothing has changed.\n" : "Not promoted. Nothing has changed.\n");
    return options.dryRun ? 0 : 1;
  }
  // From here on, the promotion is in progress: the next `promote` or `up` continues with this release.
  await pin(to, [wanted, ...meanwhile]);
  try {
    await begin(to, wanted);
    const updated = await runEngine(
      (progress) => to.up({ ...packs, ...progress }),
      print,
      (event) => {
        const step = options.verbose ? undefined : stepText(event);
        if (step !== undefined) out(`${step}\n`);
      },
    );
    const ran = await checked(to, wanted, updated);
    const { pending: _, goingBack, ...done } = wanted;
    await end(to);
    await pin(to, [{ ...done, ...(goingBack && { rolledBack: true }) }, ...after]);
    const count = `${ran.machines.length} healthy Machine${ran.machines.length === 1 ? "" : "s"}`;
    out(`  result    ${countsText(updated.events)}\n`);
    out(`${paint("good", `${to.name} runs ${ran.image} on ${count}.`)}\n${undo}\n`);
    return 0;
  } catch (error) {
    const other = wanted.goingBack
      ? "; a promotion undoes the rollback"
      : meanwhile.length > 0
        ? "; --rollback restores the previous release"
        : "";
    err(`${messageOf(error)}\nRun the same command again to continue${other}.`);
    return 1;
  }
}

/** Why a preview does not permit the promotion, in lines; undefined if it does. */
function previewRefusal(
  { events, error }: Ran,
  { to, from, current, wanted }: Move,
  options: PromoteOptions,
  policyFiles: readonly string[] = [],
): readonly string[] | undefined {
  const violated = violationsIn(events).filter(({ isMandatory }) => isMandatory);
  if (error !== undefined && violated.length > 0) {
    // The engine ends the other policies, and mentions each of them.
    const others = errorsIn(events).filter((line) => !line.includes("context canceled"));
    return [
      ...violated.map(({ text }) => text),
      ...others,
      `Not promoted: a policy is violated${others.length > 0 ? ", and the preview failed" : ""}. Nothing has changed.`,
    ];
  }
  if (error !== undefined) {
    const setup = setupProblem(messageOf(error));
    if (setup) throw setup;
    const errors = errorsIn(events);
    return [
      ...(errors.length > 0 ? errors : [unknownPolicies(messageOf(error), policyFiles) ?? reasonOf(error, to)]),
      "Not promoted: the preview failed, for the reason above. Nothing has changed.",
    ];
  }
  const steps = stepsOf(events);
  if (!usesImage(steps, wanted.image)) {
    if (from !== undefined && current !== undefined && !readsOtherStack(events))
      return noWayBack(to.name, rollbackCommand(from, options));
    return [
      `Not promoted: no Machine of ${to.name} would run ${wanted.image}. Its program must hand the first of the configuration ` +
        "releases to its Release, as pinned, and the image of that to its Machines. Nothing has changed.",
    ];
  }
  const lost = destructive(steps);
  if (lost.length > 0)
    return [
      `Not promoted: it would delete or replace ${lost.map(({ type, name }) => `the ${type} ${name}`).join(", ")}. ` +
        "Do that in a change of its own, without a promotion. Nothing has changed.",
    ];
  return undefined;
}

/** Whether a program reads the outputs of another stack, as one does that takes its release from there. */
const readsOtherStack = (events: Ran["events"]): boolean =>
  events.some(({ resourcePreEvent }) => resourcePreEvent?.metadata.type === "pulumi:pulumi:StackReference");

/** The release of an updated stack. @throws MachinesError if that is not the wanted one, or not healthy */
async function checked(to: Stack, wanted: ReleaseRecord, { events, error }: Ran): Promise<ReleaseRecord> {
  const unfinished = (message: string): never => {
    throw new MachinesError("refused", message);
  };
  if (error !== undefined) {
    const errors = [
      ...violationsIn(events).flatMap(({ isMandatory, text }) => (isMandatory ? [text] : [])),
      ...errorsIn(events),
    ];
    const reason = errors.length > 0 ? errors.join("\n") : reasonOf(error, to);
    unfinished(`The update failed: ${reason}`);
  }
  const ran = await runsNow(to);
  if (ran === undefined || !isSame(ran, wanted))
    return unfinished(
      `${to.name} does not report the wanted release: its program must use the first entry of the configuration key releases.`,
    );
  const { problems, unseen } = await healthOf(to, ran);
  if (problems.length + unseen.length === 0) return ran;
  if (problems.length === 0)
    return unfinished(`${to.name} is updated, and it is unknown whether it is healthy: ${unseen.join("; ")}.`);
  const advice = isOff(problems) ? '. Start it, or set `state: "started"` in the program' : "";
  return unfinished(`${to.name} is updated and not healthy: ${[...problems, ...unseen].join("; ")}${advice}.`);
}

function changesOf(current: ReleaseRecord | undefined, wanted: ReleaseRecord): string {
  const names = [...new Set([...Object.keys(current?.settings ?? {}), ...Object.keys(wanted.settings)])].sort();
  // Only names, because a value may be a secret of the program.
  const changed = names.filter((name) => current?.settings[name] !== wanted.settings[name]);
  return [
    `  image     ${current?.image ?? "none"}`,
    `        ->  ${wanted.image}`,
    `  settings  ${changed.length === 0 ? "the same" : changed.join(", ")}`,
  ].join("\n");
}

function summaryOf({ events }: Ran, options: PromoteOptions): string {
  const steps = stepsOf(events);
  const changed = steps.filter(({ op, type }) => op !== "same" && runsMachines(type));
  const gone = steps.filter(({ op, type }) => op === "delete" && !runsMachines(type));
  const { before, after, currency } = costsOf(steps);
  return [
    `  Machines  ${changed.length === 0 ? "no change" : changed.map(({ op, name }) => `${name} (${op})`).join(", ")}`,
    ...(gone.length === 0 ? [] : [`  deletes   ${gone.map(({ type, name }) => `${type} ${name}`).join(", ")}`]),
    `  cost      about ${before.toFixed(2)} -> ${after.toFixed(2)} ${currency} a month`,
    `  policy    ${policyText(events, options)}\n`,
  ].join("\n");
}

/** The judgement of the policies: what they only advise is shown, and does not stop the promotion. */
function policyText(events: Ran["events"], { policyPack = [] }: PromoteOptions): string {
  const advice = violationsIn(events);
  if (policyPack.length === 0 && advice.length === 0) return "none checked; --policy-pack names a pack";
  if (advice.length === 0) return "passed";
  const warnings = `${advice.length} warning${advice.length === 1 ? "" : "s"}`;
  const lines = advice.map(({ text }) => text.replaceAll("\n", "\n            "));
  return [`passed, with ${warnings}:`, ...lines].join("\n            ");
}

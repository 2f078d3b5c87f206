// `pulumi-machines promote`: a release goes from one stack to the next, or a stack goes back to the one before.
import { userInfo } from "node:os";
import type * as automation from "@pulumi/pulumi/automation/index.js";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { bareId } from "../../api/names.ts";
import type { Streams } from "../orphans/orphans.ts";
import { agreed, requireSomebody, untilItEnds, type Asking } from "../terminal.ts";
import { unhealthy } from "./health.ts";
import { costsOf, destructive, stepsOf, usesImage, type PreviewStep } from "./plan.ts";
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
  telling,
  type ReleaseRecord,
  type Stack,
} from "./stacks.ts";

/** Options of the command. */
export interface PromoteOptions extends Asking {
  /** Packs that check the stack, with a file of configuration for each or none at all; `{stack}` stands for its name. */
  readonly policyPack?: readonly string[];
  readonly policyPackConfig?: readonly string[];
  /** The user who promotes; the user of this computer when left out. */
  readonly by?: string;
}

/** A promotion or a rollback to carry out. */
interface Move {
  readonly to: Stack;
  /** The stack's present release. */
  readonly current: ReleaseRecord | undefined;
  /** The stack's next release. */
  readonly wanted: ReleaseRecord;
  /** Additional pins while this is in progress. */
  readonly meanwhile: readonly ReleaseRecord[];
  /** Additional pins once this is done. */
  readonly after: readonly ReleaseRecord[];
  readonly title: string;
}

/**
 * Promotes the release of one stack to another.
 * @returns 0 if it is done or nothing is to do, 1 if the user or a check refused it
 */
export async function promote(from: string, to: string, options: PromoteOptions, streams: Streams): Promise<0 | 1> {
  const project = await openProject();
  const [source, target] = await Promise.all([project.stack(from), project.stack(to)]);
  const [offered, { current, pinned, history, isUnderWay }] = await Promise.all([runsNow(source), standingOf(target)]);
  if (offered === undefined)
    throw new MachinesError("invalid-input", `stack ${from} runs no release: it has no output release yet`);
  if (isSame(offered, current) && isSame(offered, pinned) && !isUnderWay) {
    streams.out(`${to} runs the release of ${from} already: ${offered.image}\n`);
    return 0;
  }
  // An interrupted promotion has pinned its release, so it continues with that one.
  const goesOn = pinned?.pending === true && isSame(pinned, offered);
  const wanted = {
    ...offered,
    promotedBy: goesOn ? pinned.promotedBy : byOf(options),
    promotedAt: goesOn ? pinned.promotedAt : new Date().toISOString(),
    pending: true,
  };
  const before = isSame(history[0], wanted) ? history.slice(1) : history;
  const title = `${goesOn ? "Going on with the promotion" : "Promotion"} from ${from} to ${to}`;
  return carryOut({ to: target, current, wanted, meanwhile: before, after: before, title }, options, streams);
}

/** Takes a stack back to the release it ran before. Exit codes as of {@link promote}. */
export async function rollback(to: string, options: PromoteOptions, streams: Streams): Promise<0 | 1> {
  const target = await (await openProject()).stack(to);
  const { current, pinned, history, isUnderWay } = await standingOf(target);
  // After an interrupted promotion, a rollback returns to the previous release, however far the promotion came. Only
  // the tag shows that another computer started it.
  const previous = pinned?.pending === true ? pinned : isUnderWay ? undefined : (current ?? pinned);
  const wanted = pinned?.goingBack === true ? pinned : history.find((one) => !isSame(one, previous));
  if (wanted === undefined)
    throw new MachinesError(
      "invalid-input",
      `stack ${to} has no release to go back to${pinned === undefined ? "" : `; \`pulumi config rm releases --stack ${to}\` has it adopt the release of the previous stack`}`,
    );
  const { pending: _, ...rest } = wanted;
  const again = { ...rest, promotedBy: byOf(options), promotedAt: new Date().toISOString(), goingBack: true };
  const after = history.slice(history.findIndex((one) => isSame(one, wanted)) + 1);
  return carryOut(
    { to: target, current, wanted: again, meanwhile: history, after, title: `${to} goes back` },
    options,
    streams,
  );
}

function byOf({ by }: PromoteOptions): string {
  try {
    return by ?? process.env["GITHUB_ACTOR"] ?? userInfo().username;
  } catch {
    throw new MachinesError("invalid-input", "this computer does not know who you are: say --by NAME");
  }
}

/** Shows, previews, asks, applies, looks whether it is healthy, and writes down. */
async function carryOut(move: Move, options: PromoteOptions, { out, err }: Streams): Promise<0 | 1> {
  const { to, current, wanted, meanwhile, after, title } = move;
  requireSomebody(options);
  out(`${title}\n${changesOf(current, wanted)}\n`);
  const forStack = (paths: readonly string[]) => paths.map((path) => path.replaceAll("{stack}", bareId(to.name)));
  const packs = {
    ...(options.policyPack && { policyPacks: forStack(options.policyPack) }),
    ...(options.policyPackConfig && { policyPackConfigs: forStack(options.policyPackConfig) }),
  };
  const steps = await asIfPinned(to, wanted, (configFile) => previewed(to, { ...packs, configFile }, out));
  if (steps === undefined) {
    err("Not promoted: the preview failed, for the reason above. Nothing has changed.");
    return 1;
  }
  out(summaryOf(steps));
  if (!usesImage(steps, wanted.image)) {
    err(
      `Not promoted: no Machine of ${to.name} would run ${wanted.image}. Its program must hand the first of the configuration ` +
        "releases to its Release, as pinned, and the image of that to its Machines. Nothing has changed.",
    );
    return 1;
  }
  const lost = destructive(steps);
  if (lost.length > 0) {
    err(
      `Not promoted: it would delete or replace ${lost.map(({ type, name }) => `the ${type} ${name}`).join(", ")}. ` +
        "Do that in a change of its own, without a promotion. Nothing has changed.",
    );
    return 1;
  }
  if (options.dryRun || !(await agreed(options, `Change ${to.name}?`))) {
    out(options.dryRun ? "This was a dry run: nothing has changed.\n" : "Not promoted. Nothing has changed.\n");
    return options.dryRun ? 0 : 1;
  }
  // The promotion is in progress from here on: the next run of the command or of `up` continues with this release.
  await pin(to, [wanted, ...meanwhile]);
  try {
    await begin(to, wanted);
    const ran = await applied(to, wanted, { ...packs, ...telling(out) });
    const { pending: _, goingBack: __, ...done } = wanted;
    await end(to);
    await pin(to, [done, ...after]);
    const count = `${ran.machines.length} healthy Machine${ran.machines.length === 1 ? "" : "s"}`;
    out(`${to.name} runs ${ran.image} on ${count}.\n`);
    return 0;
  } catch (error) {
    const other = wanted.goingBack
      ? "; a promotion goes forward again"
      : meanwhile.length > 0
        ? "; --rollback goes back"
        : "";
    err(`${messageOf(error)}\nRunning the same command again goes on${other}.`);
    return 1;
  }
}

/** Updates a stack, and returns its release. @throws MachinesError if that is not the wanted one, or not healthy */
async function applied(to: Stack, wanted: ReleaseRecord, options: automation.UpOptions): Promise<ReleaseRecord> {
  const unfinished = (message: string): never => {
    throw new MachinesError("refused", message);
  };
  try {
    await untilItEnds(() => to.up(options));
  } catch (error) {
    unfinished(`The update failed: ${reasonOf(error, to)}`);
  }
  const ran = await runsNow(to);
  if (ran === undefined || !isSame(ran, wanted))
    return unfinished(
      `${to.name} does not report the wanted release: its program must use the first of the configuration releases.`,
    );
  const problems = await unhealthy(to, ran);
  return problems.length === 0 ? ran : unfinished(`${to.name} is updated and not healthy: ${problems.join("; ")}`);
}

/** The steps of a preview; undefined if it fails, which the CLI has reported then. */
async function previewed(
  stack: Stack,
  options: automation.PreviewOptions,
  out: (text: string) => void,
): Promise<PreviewStep[] | undefined> {
  const events: automation.EngineEvent[] = [];
  try {
    const onEvent = (event: automation.EngineEvent): void => void events.push(event);
    await untilItEnds(() => stack.preview({ ...options, ...telling(out), onEvent }));
    return stepsOf(events);
  } catch {
    return undefined;
  }
}

function changesOf(current: ReleaseRecord | undefined, wanted: ReleaseRecord): string {
  const names = [...new Set([...Object.keys(current?.settings ?? {}), ...Object.keys(wanted.settings)])].sort();
  // Names alone: a value may be a secret of the program.
  const changed = names.filter((name) => current?.settings[name] !== wanted.settings[name]);
  return [
    `  image     ${current?.image ?? "none"}`,
    `        ->  ${wanted.image}`,
    `  settings  ${changed.length === 0 ? "the same" : changed.join(", ")}`,
  ].join("\n");
}

function summaryOf(steps: readonly PreviewStep[]): string {
  const changed = steps.filter(({ op, type }) => op !== "same" && type === "Machine");
  const gone = steps.filter(({ op, type }) => op === "delete" && type !== "Machine");
  const { before, after, currency } = costsOf(steps);
  return [
    `  Machines  ${changed.length === 0 ? "no change" : changed.map(({ op, name }) => `${name} (${op})`).join(", ")}`,
    ...(gone.length === 0 ? [] : [`  deletes   ${gone.map(({ type, name }) => `${type} ${name}`).join(", ")}`]),
    `  cost      about ${before.toFixed(2)} -> ${after.toFixed(2)} ${currency} a month\n`,
  ].join("\n");
}

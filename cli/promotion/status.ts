// `pulumi-machines status`: shows the releases of a project's stacks side by side.
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { docsUrl } from "../../api/docsUrl.ts";
import { bareId } from "../../api/names.ts";
import type { Streams } from "../terminal.ts";
import { SetupError, stackConfig } from "../pulumi.ts";
import { failedRollouts } from "../rollouts.ts";
import { tableOf, type Cell } from "../style.ts";
import { ago } from "../time.ts";
import { healthOf, type Health } from "./health.ts";
import { lastUpdate, type Update } from "./history.ts";
import {
  isSame,
  markIn,
  openProject,
  standingOf,
  tagsOf,
  type ReleaseRecord,
  type Stack,
  type Tags,
} from "./stacks.ts";

/** Options of the command. */
export interface StatusOptions {
  /** Whether to compare the service with the stacks, which takes as long as a refresh. */
  readonly drift?: true;
  readonly json?: true;
}

/** The reported status of a stack. */
interface StackReport {
  readonly stack: string;
  readonly image?: string;
  readonly digest?: string;
  readonly settings?: string;
  readonly promotedBy?: string | undefined;
  readonly promotedAt?: string | undefined;
  /** Whether it is there by a rollback. */
  readonly isRollback?: boolean;
  /** The stack it was promoted from, `project/stack`. */
  readonly promotedFrom?: string | undefined;
  /** When the stack was last deployed. */
  readonly updatedAt?: string | undefined;
  /** Whether a promotion to it was interrupted. */
  readonly pending?: boolean;
  /** Why it has no release: it was never deployed, it was destroyed, or its program reports none. */
  readonly withoutRelease?: "undeployed" | "destroyed" | "unreported";
  readonly machines?: number;
  /** Why its Machines are not healthy; empty if they are. */
  readonly problems?: readonly string[];
  /** Why it, or some of its Machines, could not be read. */
  readonly unseen?: readonly string[];
  /** Its last update, if that failed. */
  readonly failedUpdate?: Update | undefined;
  /** The rollouts of this update that did not succeed, as sentences. */
  readonly failedRollouts?: readonly string[];
  /** Machines that this update changed, and that run the previous release again. */
  readonly rolledBack?: readonly string[];
  /** How many of its resources are not as the stack knows them. */
  readonly drifted?: number;
}

/** An environment, which is shown in a line of its own. */
interface EnvironmentReport {
  readonly name: string;
  readonly expiresAt: string;
}

/**
 * Reports the status of stacks; of all but the environments when none are named.
 * @returns 1 if a Machine is not healthy or cannot be read, a resource has drifted, or a promotion or the last update has failed, else 0
 */
export async function status(
  names: readonly string[],
  options: StatusOptions,
  { out }: Streams,
  now: Date = new Date(),
): Promise<0 | 1> {
  const project = await openProject();
  const there = await project.stacks();
  const isAsked = names.length > 0;
  const found: StackReport[] = [];
  const environments: EnvironmentReport[] = [];
  for (const name of isAsked ? names : there.keys()) {
    const updatedAt = there.get(name) ?? there.get(bareId(name));
    try {
      const stack = await project.stack(name);
      const tags = await tagsOf(stack);
      const mark = isAsked ? undefined : markIn(tags);
      if (mark) environments.push({ name, expiresAt: mark.expires });
      else found.push(await lookAt(stack, tags, updatedAt, options, project.name));
    } catch (error) {
      // No stack can be read without it.
      if (error instanceof SetupError) throw error;
      // One stack that cannot be read does not hide the others.
      found.push({ stack: name, unseen: [messageOf(error)] });
    }
  }
  const reports = isAsked ? found : inOrder(found, project.name);
  if (options.json) out(`${JSON.stringify({ stacks: reports, environments }, null, 2)}\n`);
  else out(`${textOf(reports, environments, now)}\n`);
  const isBad = ({ problems = [], unseen = [], drifted = 0, pending, failedUpdate }: StackReport): boolean =>
    problems.length + unseen.length > 0 || drifted > 0 || pending === true || failedUpdate !== undefined;
  return reports.some((one) => isBad(one)) ? 1 : 0;
}

/** Stacks in the order of promotion. */
function inOrder(reports: readonly StackReport[], project: string): StackReport[] {
  const depthOf = ({ promotedFrom }: StackReport, seen: readonly StackReport[] = []): number => {
    const from = reports.find(({ stack }) => `${project}/${bareId(stack)}` === promotedFrom);
    return from === undefined || seen.includes(from) ? 0 : 1 + depthOf(from, [...seen, from]);
  };
  return reports.toSorted((a, b) => depthOf(a) - depthOf(b));
}

async function lookAt(
  stack: Stack,
  tags: Tags,
  updatedAt: string | undefined,
  { drift }: StatusOptions,
  project: string,
): Promise<StackReport> {
  const [{ current: release, pinned, isUnderWay }, last] = await Promise.all([
    standingOf(stack, tags),
    lastUpdate(stack.name),
  ]);
  const failedUpdate = last?.hasFailed ? last : undefined;
  const drifted = drift ? { drifted: await driftOf(stack) } : {};
  const failures = failedUpdate ? { failedRollouts: await rolloutsIfKnown(stack.name, project) } : {};
  const common = { stack: stack.name, pending: isUnderWay, updatedAt, failedUpdate, ...failures, ...drifted };
  if (release === undefined) {
    // The backend also gives a time to a stack that was only created.
    if (last === undefined) return { ...common, updatedAt: undefined, withoutRelease: "undeployed" };
    return { ...common, withoutRelease: last.kind === "destroy" && !last.hasFailed ? "destroyed" : "unreported" };
  }
  const { problems, unseen, otherVersion } = await healthIfReadable(stack, release);
  return {
    ...common,
    image: release.image,
    digest: release.digest,
    settings: release.hash,
    promotedBy: release.promotedBy,
    promotedAt: release.promotedAt,
    isRollback: pinned?.rolledBack === true && isSame(pinned, release),
    promotedFrom: pinned?.stack,
    machines: release.machines.length,
    problems,
    unseen,
    // A failed update leaves the state as it was, and a Machine that went back has another version than that.
    ...(failedUpdate && { rolledBack: otherVersion }),
  };
}

/** What the service says about rollouts that failed; nothing if it keeps none, or does not answer. */
async function rolloutsIfKnown(stack: string, project: string): Promise<readonly string[]> {
  try {
    return await failedRollouts(`${project}/${bareId(stack)}`, await stackConfig(stack));
  } catch (error) {
    if (error instanceof SetupError || !(error instanceof MachinesError)) throw error;
    return [];
  }
}

/** The health of a stack; its release is shown even if its configuration cannot be used. */
async function healthIfReadable(stack: Stack, release: ReleaseRecord): Promise<Health> {
  try {
    return await healthOf(stack, release);
  } catch (error) {
    if (error instanceof SetupError || !(error instanceof MachinesError)) throw error;
    return { problems: [], unseen: [error.message], otherVersion: [] };
  }
}

/** The number of resources that a refresh would change or miss; the state is not changed. */
async function driftOf(stack: Stack): Promise<number> {
  const changed = new Set<string>();
  await stack.previewRefresh({
    // Outputs of other stacks are also read again, and are no drift.
    onEvent: ({ resOutputsEvent }) => {
      const { op = "same", type = "pulumi:", urn = "" } = resOutputsEvent?.metadata ?? {};
      if (!type.startsWith("pulumi:") && !["same", "refresh", "read"].includes(op)) changed.add(urn);
    },
  });
  return changed.size;
}

function textOf(reports: readonly StackReport[], environments: readonly EnvironmentReport[], now: Date): string {
  const hasDrift = reports.some(({ drifted }) => drifted !== undefined);
  const heads = ["STACK", "IMAGE", "DIGEST", "SETTINGS", "PROMOTED", "MACHINES", ...(hasDrift ? ["DRIFT"] : [])];
  const rows = reports.map((one): Cell[] => [
    one.stack,
    one.image === undefined ? (one.unseen === undefined ? "none" : "unknown") : one.image.replace(/^.*\/|@.*$/g, ""),
    one.digest?.slice("sha256:".length, "sha256:".length + 12) ?? "",
    one.settings?.slice(0, 12) ?? "",
    one.promotedAt !== undefined
      ? `${one.isRollback ? "rolled back " : ""}${ago(one.promotedAt, now)}${one.promotedBy ? ` by ${one.promotedBy}` : ""}`
      : one.updatedAt !== undefined
        ? `(updated ${ago(one.updatedAt, now)})`
        : "",
    machinesCell(one),
    ...(hasDrift ? [one.drifted === 0 ? "none" : `${one.drifted ?? ""}`] : []),
  ]);
  const notes = reports.flatMap(
    ({
      stack,
      withoutRelease,
      problems = [],
      unseen = [],
      pending,
      failedUpdate,
      failedRollouts: failed = [],
      rolledBack = [],
    }) => [
      ...(withoutRelease && !pending ? [`${stack}: ${withoutReleaseText(withoutRelease, stack)}`] : []),
      ...problems.map((problem) => `${stack}: ${problem}`),
      // The others have mostly the same reason.
      ...unseen.slice(0, 1).map((reason) => `${stack}: ${reason}`),
      ...(unseen.length > 1 ? [`${stack}: ${unseen.length - 1} more cannot be read`] : []),
      ...(pending ? [`${stack}: a promotion to it was interrupted; run the same command again to continue`] : []),
      ...(failedUpdate ? [failureText(stack, failedUpdate, rolledBack, now)] : []),
      ...failed.map((sentence) => `${stack}: ${sentence}`),
    ],
  );
  return [
    reports.length > 0
      ? tableOf(heads, rows)
      : environments.length > 0
        ? "The project has no stacks but environments."
        : `The project has no stacks. \`pulumi stack init <name>\` creates the first one; ${docsUrl("promotion.md#from-one-stack-to-three")} has the next steps.`,
    ...notes,
    ...environmentsText(environments, now),
  ].join("\n");
}

/** Why a stack has no release, and what to do. */
function withoutReleaseText(reason: NonNullable<StackReport["withoutRelease"]>, stack: string): string {
  const start = `\`npx pulumi-machines promote <other stack> ${stack}\` deploys the release of another stack to it; \`pulumi up --stack ${stack}\` deploys it if its releases begin there`;
  if (reason === "undeployed") return `it was never deployed. ${start}`;
  if (reason === "destroyed") return `it was destroyed. ${start}`;
  return `it is deployed, and reports no release: its program has no output "release" (${docsUrl("promotion.md#a-release")})`;
}

function machinesCell({ problems, unseen = [], machines }: StackReport): Cell {
  if (problems !== undefined && problems.length > 0) return { text: "not healthy", style: "bad" };
  // A service that does not answer says nothing about the Machines.
  if (unseen.length > 0) return { text: "unknown", style: "unsure" };
  return problems === undefined ? "" : { text: `${machines} healthy`, style: "good" };
}

/** The line for a stack whose last update has failed; undefined if it has not. */
export async function failureOf(stack: Stack, release: ReleaseRecord, now = new Date()): Promise<string | undefined> {
  const last = await lastUpdate(stack.name);
  if (!last?.hasFailed) return undefined;
  return failureText(stack.name, last, (await healthOf(stack, release)).otherVersion, now);
}

function failureText(stack: string, { kind, endedAt }: Update, rolledBack: readonly string[], now: Date): string {
  const when = endedAt === undefined ? "" : ` ${ago(endedAt, now)}`;
  const back =
    rolledBack.length === 0
      ? ""
      : ` and was rolled back: ${rolledBack.map((id) => `Machine ${id}`).join(", ")} ${rolledBack.length === 1 ? "runs" : "run"} the previous release again`;
  return `${stack}: the last ${kind} failed${when}${back}. \`pulumi preview\` shows what is left to do`;
}

function environmentsText(environments: readonly EnvironmentReport[], now: Date): string[] {
  if (environments.length === 0) return [];
  const isOver = ({ expiresAt }: EnvironmentReport): boolean => Date.parse(expiresAt) <= now.getTime();
  const names = environments.map((one) => `${one.name}${isOver(one) ? " (expired)" : ""}`);
  return [`Environments: ${names.join(", ")}; \`npx pulumi-machines environment list\` shows more`];
}

// `pulumi-machines status`: shows the releases of a project's stacks side by side.
import { messageOf } from "../../provider/client/errors.ts";
import { bareId } from "../../api/names.ts";
import type { Streams } from "../orphans/orphans.ts";
import { unhealthy } from "./health.ts";
import { environmentTag, openProject, standingOf, tagsOf, type Stack, type Tags } from "./stacks.ts";

/** Options of the command. */
export interface StatusOptions {
  /** Whether to compare the service with the stacks, which takes a refresh's time. */
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
  /** Stack it was promoted from, `project/stack`. */
  readonly promotedFrom?: string | undefined;
  /** When the stack was last deployed. */
  readonly updatedAt?: string | undefined;
  /** Whether a promotion to it was interrupted. */
  readonly pending?: boolean;
  readonly machines?: number;
  /** Why its Machines are not healthy; nothing where they are. */
  readonly problems?: readonly string[];
  /** How many of its resources are not as the stack knows them. */
  readonly drifted?: number;
}

/**
 * Reports the status of stacks; of all but the environments when none are named.
 * @returns 1 if a Machine is not healthy, a resource has drifted or a promotion was interrupted, else 0
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
  for (const name of isAsked ? names : there.keys()) {
    const updatedAt = there.get(name) ?? there.get(bareId(name));
    const reports = await project
      .stack(name)
      .then(async (stack) => {
        const tags = await tagsOf(stack);
        const isPassing = !isAsked && tags[environmentTag] !== undefined;
        return isPassing ? undefined : lookAt(stack, tags, updatedAt, options);
      })
      // One stack that cannot be read does not hide the others.
      .catch((error: unknown) => ({ stack: name, problems: [messageOf(error)] }));
    if (reports !== undefined) found.push(reports);
  }
  const reports = isAsked ? found : inOrder(found, project.name);
  out(options.json ? `${JSON.stringify({ stacks: reports }, null, 2)}\n` : tableOf(reports, now));
  const isBad = ({ problems = [], drifted = 0, pending }: StackReport): boolean =>
    problems.length > 0 || drifted > 0 || pending === true;
  return reports.some((one) => isBad(one)) ? 1 : 0;
}

/** Stacks in the order in which releases go from one to the next. */
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
): Promise<StackReport> {
  const { current: release, pinned, isUnderWay } = await standingOf(stack, tags);
  const drifted = drift ? { drifted: await driftOf(stack) } : {};
  const common = { stack: stack.name, pending: isUnderWay, updatedAt, ...drifted };
  if (release === undefined) return common;
  return {
    ...common,
    image: release.image,
    digest: release.digest,
    settings: release.hash,
    promotedBy: release.promotedBy,
    promotedAt: release.promotedAt,
    promotedFrom: pinned?.stack,
    machines: release.machines.length,
    problems: await unhealthy(stack, release),
  };
}

/** How many resources a refresh would change or miss; the state is left as it is. */
async function driftOf(stack: Stack): Promise<number> {
  const changed = new Set<string>();
  await stack.previewRefresh({
    // Outputs of other stacks are read again too, and are no drift.
    onEvent: ({ resOutputsEvent }) => {
      const { op = "same", type = "pulumi:", urn = "" } = resOutputsEvent?.metadata ?? {};
      if (!type.startsWith("pulumi:") && !["same", "refresh", "read"].includes(op)) changed.add(urn);
    },
  });
  return changed.size;
}

function tableOf(reports: readonly StackReport[], now: Date): string {
  const rows = reports.map((one) => [
    one.stack,
    one.image === undefined ? "none" : one.image.replace(/^.*\/|@.*$/g, ""),
    one.digest?.slice("sha256:".length, "sha256:".length + 12) ?? "",
    one.settings?.slice(0, 12) ?? "",
    one.promotedAt !== undefined
      ? `${age(one.promotedAt, now)} ago${one.promotedBy ? ` by ${one.promotedBy}` : ""}`
      : one.updatedAt !== undefined
        ? `(updated ${age(one.updatedAt, now)} ago)`
        : "",
    one.problems === undefined ? "" : one.problems.length === 0 ? `${one.machines} healthy` : "not healthy",
    ...(reports.some(({ drifted }) => drifted !== undefined)
      ? [one.drifted === 0 ? "none" : `${one.drifted ?? ""}`]
      : []),
  ]);
  const heads = ["STACK", "IMAGE", "DIGEST", "SETTINGS", "PROMOTED", "MACHINES", "DRIFT"].slice(
    0,
    rows[0]?.length ?? 6,
  );
  const widths = heads.map((head, i) => Math.max(head.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const lines = [heads, ...rows].map((row) =>
    row
      .map((text, i) => text.padEnd(widths[i] ?? 0))
      .join("   ")
      .trimEnd(),
  );
  const notes = reports.flatMap(({ stack, problems = [], pending }) => [
    ...problems.map((problem) => `${stack}: ${problem}`),
    ...(pending ? [`${stack}: a promotion to it was interrupted; the same command again goes on`] : []),
  ]);
  return `${[...lines, ...notes].join("\n")}\n`;
}

/** Time since a moment, in its largest unit: `3 days`. */
function age(since: string, now: Date): string {
  const minutes = Math.max(0, Math.floor((now.getTime() - Date.parse(since)) / 60_000));
  const [count, unit] =
    minutes < 60
      ? [minutes, "minute"]
      : minutes < 2880
        ? [Math.floor(minutes / 60), "hour"]
        : [Math.floor(minutes / 1440), "day"];
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

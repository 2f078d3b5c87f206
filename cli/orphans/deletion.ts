// `pulumi-machines orphans --delete`: deletes orphans by their ids, as the definitions delete their resources.
import type { Api } from "../../provider/client/api.ts";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { docsUrl } from "../../api/docsUrl.ts";
import { didYouMean } from "../../api/didYouMean.ts";
import { processJournal } from "../../provider/core/journal.ts";
import { read, remove, type Caller } from "../../provider/core/lifecycle.ts";
import { isParent, type Values } from "../../provider/core/resource.ts";
import { Run } from "../../provider/core/run.ts";
import { orUndefined } from "../../provider/client/existence.ts";
import { resources } from "../../provider/registry.ts";
import { exportStack } from "../pulumi.ts";
import { readState, type StackState, type StateResource } from "../stackState.ts";
import { heldKeys, keysOf } from "../stateIds.ts";
import { agreed, typed, untilItEnds } from "../terminal.ts";
import type { HeldElsewhere, Orphan } from "./compare.ts";
import { isDeletable } from "./listing.ts";
import type { Options, Streams } from "./orphans.ts";
import { orphanTable, type PlaceReport } from "./report.ts";

/** What a comparison found. */
export interface Comparison {
  readonly state: StackState;
  /** Resources of stacks that the user gave. */
  readonly besides: readonly StateResource[];
  readonly findings: readonly PlaceReport[];
  /** Names of other stacks of the project that could not be read. */
  readonly unread: readonly string[];
}

/** An orphan to delete, and where. */
interface Target {
  readonly api: Api;
  readonly orphan: Orphan;
}

/**
 * Shows the orphans, asks, and deletes them. Nothing is deleted if one of the ids is refused.
 * @returns 0 if all of them are deleted, 1 if an id or the user refused it, or a deletion failed
 */
export async function deleteOrphans(
  ids: readonly string[],
  comparison: Comparison,
  options: Options,
  { out, err }: Streams,
): Promise<0 | 1> {
  const targets: Target[] = [];
  const reasons: string[] = [];
  for (const id of new Set(ids)) {
    const found = chosen(id, comparison);
    if (typeof found === "string") reasons.push(`${id}: ${found}`);
    else targets.push(found);
  }
  const precious = targets.filter(({ orphan }) => losses(orphan) !== undefined);
  if (options.yes && !options.allowDataLoss)
    reasons.push(
      ...precious.map(({ orphan }) => `${orphan.id}: ${lossText(orphan)}; add --allow-data-loss to allow that.`),
    );
  if (reasons.length > 0) {
    for (const reason of reasons) err(`Not deleted: ${reason}`);
    err("Nothing was changed.");
    return 1;
  }
  out(`${orphanTable(targets.map(({ orphan }) => orphan))}\n\n`);
  for (const { orphan } of precious) out(`${orphan.kind.type} ${orphan.id}: ${lossText(orphan)}.\n`);
  if (!(await isAgreed(targets, options)) || !(await isStillFree(targets, options, err))) {
    out("Nothing was changed.\n");
    return 1;
  }
  return deleteAll(targets, { out, err });
}

/** The orphan of an id, or the reason why it cannot be deleted. */
function chosen(id: string, { state, besides, findings, unread }: Comparison): Target | string {
  const all = findings.flatMap(({ api, orphans }) => orphans.map(({ orphan }) => ({ api, orphan })));
  const [found, ...more] = all.filter(({ orphan }) => orphan.id === id);
  if (found && more.length > 0)
    return "several orphans have this ID; name the type with --only, or the provider with --provider.";
  if (found) return refusalOf(found.orphan, unread) ?? found;
  const elsewhere = findings.flatMap(({ heldElsewhere }) => heldElsewhere).find((one) => one.id === id);
  if (elsewhere) return ofStack(elsewhere);
  const [held] = state.resources.filter((one) => holds(one, id));
  if (held) {
    const { urn, isProtected } = held;
    const how = isProtected ? ", which is protected" : "; remove it from the program, and run `pulumi up`";
    return `stack ${state.stack ?? ""} holds it as ${urn}${how}.`;
  }
  const other = besides.find((one) => holds(one, id));
  if (other) return `a stack given with --also holds it as ${other.urn}.`;
  const meant = didYouMean(
    id,
    all.map(({ orphan }) => orphan.id),
  );
  return `no orphan that was found has this ID; ${meant === undefined ? "--app and --all-apps look further." : `did you mean ${meant}?`}`;
}

const holds = ({ type, id: held }: StateResource, id: string): boolean =>
  held === id || keysOf(type, held).includes(id);

const ofStack = ({ stack }: Pick<HeldElsewhere, "stack">): string =>
  `it belongs to stack ${stack} of this project; delete it there, with its program.`;

/** Why an orphan is not deleted. */
function refusalOf({ kind, createdBy, belongsTo, remark }: Orphan, unread: readonly string[]): string | undefined {
  if (belongsTo !== undefined) return ofStack({ stack: belongsTo });
  if (!isDeletable(kind)) return "the service cannot delete it; it expires by itself.";
  if (createdBy === "namesake" || createdBy === "pulumi")
    return `${remark === undefined ? "its tags are those of another stack" : remark.replace(/\.$/, "")}; delete it with its program, or with the client (${docsUrl("client.md")}).`;
  if (unread.length > 0 && createdBy !== "stack")
    return `it may belong to stack ${unread.join(" or ")} of this project, which could not be read; make that possible, and run this again.`;
  return undefined;
}

/** What is destroyed with an orphan: its data, or the objects in it. */
function losses({ kind: { type } }: Orphan): string | undefined {
  const resource = resources[type];
  return resource && (resource.losesData ?? (isParent(resource) ? "everything in it" : undefined));
}

const lossText = (orphan: Orphan): string => `deleting it destroys ${losses(orphan) ?? ""}`;

/** Asks for the id of each object with data, and once for all others. */
async function isAgreed(targets: readonly Target[], options: Options): Promise<boolean> {
  const asking = options.yes ? { yes: true as const } : {};
  const toType = options.allowDataLoss ? [] : targets.filter(({ orphan }) => losses(orphan) !== undefined);
  for (const { orphan } of toType)
    if (!(await typed(`Type ${orphan.id} to delete this ${orphan.kind.type} and ${losses(orphan) ?? ""}: `, orphan.id)))
      return false;
  const rest = targets.length - toType.length;
  if (rest === 0) return true;
  return agreed(asking, targets.length === 1 ? "Delete it?" : `Delete these ${targets.length}?`);
}

/** Whether the stack holds none of them by now: an `up` may have adopted one while the user was asked. */
async function isStillFree(targets: readonly Target[], { stack }: Options, err: Streams["err"]): Promise<boolean> {
  const { resources: now } = readState(await exportStack(stack), "the output of `pulumi stack export`");
  const keys = heldKeys(now);
  const taken = targets.filter(({ orphan: { kind, id } }) =>
    keysOf(kind.type, id).some((key) => keys.get(kind.type)?.has(key)),
  );
  for (const { orphan } of taken) err(`Not deleted: ${orphan.id}: the stack holds it by now.`);
  return taken.length === 0;
}

/** Types in the order of deletion: a volume after the Machine that mounts it, and Apps and clusters after what is in them. */
const rankOf = ({ orphan: { kind } }: Target): number => {
  const resource = resources[kind.type];
  if (kind.isTagged) return 0;
  return resource && isParent(resource) ? 3 : resource?.losesData === undefined ? 1 : 2;
};

async function deleteAll(targets: readonly Target[], { out, err }: Streams): Promise<0 | 1> {
  const run = new Run(() => processJournal(err));
  let failed = 0;
  for (const target of targets.toSorted((a, b) => rankOf(a) - rankOf(b))) {
    const { kind, id } = target.orphan;
    try {
      const isThere = await untilItEnds(() => deleteOne(target, run, err));
      out(`${isThere ? "deleted" : "gone already:"} ${kind.type} ${id}\n`);
    } catch (error) {
      if (!(error instanceof MachinesError)) throw error;
      failed += 1;
      err(`Not deleted: ${kind.type} ${id}: ${messageOf(error)}`);
    }
  }
  return failed > 0 ? 1 : 0;
}

/** Deletes one as its resource would. Returns whether it was still there. */
async function deleteOne({ api, orphan: { kind, id } }: Target, run: Run, warn: Streams["err"]): Promise<boolean> {
  const resource = resources[kind.type];
  const caller: Caller = { api, run, warn, progress: () => undefined };
  if (!resource) {
    const { app: appName = "", hostname = "" } = kind.id.parse(id);
    return (await orUndefined(() => api.certificates.delete({ appName, hostname }).then(() => true))) ?? false;
  }
  const found = await read(resource, id, undefined, caller);
  if (!found) return false;
  await remove(resource, id, { ...found.state, ...permission }, caller);
  return true;
}

/** The inputs that permit the deletion of data (R9). The user has agreed to it. */
const permission: Values = { allowDataLoss: true, deletionProtection: false };

// `pulumi-machines orphans --delete`: deletes orphans by their ids, as the definitions delete their resources.
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { docsUrl } from "../../api/docsUrl.ts";
import { didYouMean } from "../../api/didYouMean.ts";
import { processJournal } from "../../provider/core/journal.ts";
import { read, remove, type Caller } from "../../provider/core/verbs/index.ts";
import { isParent, type Values } from "../../provider/core/resource.ts";
import { Run } from "../../provider/core/run/run.ts";
import { orUndefined } from "../../provider/client/existence.ts";
import { resources } from "../../provider/registry.ts";
import type { StackState, StateResource } from "../stackState.ts";
import { keysOf } from "../stateIds.ts";
import { agreed, typed, untilItEnds, type Streams } from "../terminal.ts";
import type { Now, Orphan } from "./compare.ts";
import { guarded } from "./guarded.ts";
import { isDeletable } from "./listing.ts";
import { stackText } from "./otherStacks.ts";
import { orphanTable, type PlaceReport } from "./report.ts";

/** Looks at one orphan again. */
type Look = (finding: PlaceReport, orphan: Orphan) => Promise<Now>;

/** Options by which the user agrees to deletions before a question. */
export interface Consent {
  /** Ids of those to delete although nothing proves that they are this stack's. `yes` does not cover them. */
  readonly confirm?: readonly string[];
  /** Whether objects with data are deleted without asking for their ids. */
  readonly allowDataLoss?: true;
  readonly yes?: true;
}

/** What a comparison found. */
export interface Comparison {
  readonly state: StackState;
  /** Resources of stacks that the user gave. */
  readonly besides: readonly StateResource[];
  readonly findings: readonly PlaceReport[];
  /** Reads all stacks again. */
  readonly readAgain: () => Promise<Look>;
}

/** An orphan to delete, and where. */
interface Target {
  readonly finding: PlaceReport;
  readonly orphan: Orphan;
}

/**
 * Shows the orphans, asks, and deletes them. Nothing is deleted if one of the ids is refused.
 * @returns 0 if all of them are deleted, 1 if an id or the user refused it, or a deletion failed
 */
export async function deleteOrphans(
  ids: readonly string[],
  comparison: Comparison,
  options: Consent,
  { out, err }: Streams,
): Promise<0 | 1> {
  const targets: Target[] = [];
  const reasons: string[] = [];
  for (const id of new Set(ids)) {
    const found = chosen(id, comparison, ids);
    if (typeof found === "string") reasons.push(`${id}: ${found}`);
    else targets.push(found);
  }
  const precious = targets.filter(({ orphan }) => losses(orphan) !== undefined);
  if (options.yes) reasons.push(...notCovered(targets, options));
  if (reasons.length > 0) {
    for (const reason of reasons) err(`Not deleted: ${reason}`);
    err("Nothing was changed.");
    return 1;
  }
  out(`${orphanTable(targets.map(({ orphan }) => orphan))}\n\n`);
  for (const { orphan } of precious) out(`${orphan.kind.type} ${orphan.id}: ${lossText(orphan)}.\n`);
  for (const { orphan } of targets.filter((one) => !isProved(one)))
    out(`${orphan.kind.type} ${orphan.id}: ${doubtText(orphan)}.\n`);
  if (!(await isAgreed(targets, options)) || !(await areStillOrphans(targets, comparison, err))) {
    out("Nothing was changed.\n");
    return 1;
  }
  return deleteAll(targets, comparison, { out, err });
}

/** The orphan of an id, or the reason why it cannot be deleted. */
function chosen(id: string, { state, besides, findings }: Comparison, ids: readonly string[]): Target | string {
  const all = findings.flatMap((finding) => finding.orphans.map(({ orphan }) => ({ finding, orphan })));
  const [found, ...more] = all.filter(({ orphan }) => orphan.id === id);
  if (found && more.length > 0)
    return "several orphans have this ID; name the type with --only, or the provider with --provider.";
  if (found) return refusalOf(found.orphan) ?? mountProblem(found, { state, besides, findings }, ids) ?? found;
  const elsewhere = findings.flatMap(({ heldElsewhere }) => heldElsewhere).find((one) => one.id === id);
  if (elsewhere) return ofStack(elsewhere.stack);
  const held = heldBy(id, { state, besides });
  if (held !== undefined) return held;
  const meant = didYouMean(
    id,
    all.map(({ orphan }) => orphan.id),
  );
  return `no orphan that was found has this ID; ${meant === undefined ? "--app and --all-apps look further." : `did you mean ${meant}?`}`;
}

/** How the stack itself, or one that the user gave, holds an object. */
function heldBy(id: string, { state, besides }: Pick<Comparison, "state" | "besides">): string | undefined {
  const [held] = state.resources.filter((one) => holds(one, id));
  if (held) {
    const { urn, isProtected } = held;
    const how = isProtected ? ", which is protected" : "; remove it from the program, and run `pulumi up`";
    return `stack ${state.stack ?? ""} holds it as ${urn}${how}.`;
  }
  const other = besides.find((one) => holds(one, id));
  return other && `a stack given with --also holds it as ${other.urn}.`;
}

const holds = ({ type, id: held }: StateResource, id: string): boolean =>
  held === id || keysOf(type, held).includes(id);

const ofStack = (stack: string): string => `it belongs to ${stackText(stack)}; delete it there, with its program.`;

/** Why an orphan is not deleted. */
function refusalOf({ kind, createdBy, belongsTo, remark }: Orphan): string | undefined {
  if (belongsTo !== undefined) return ofStack(belongsTo);
  if (!isDeletable(kind)) return "the service cannot delete it; it expires by itself.";
  if (createdBy === "namesake" || createdBy === "pulumi")
    return `${remark === undefined ? "its tags are those of another stack" : remark.replace(/\.$/, "")}; delete it with its program, or with the client (${docsUrl("client.md")}).`;
  return undefined;
}

/** Why a volume is not deleted: a Machine that stays mounts it. */
function mountProblem(
  { orphan: { id, mountedBy } }: Target,
  { state, besides, findings }: Omit<Comparison, "readAgain">,
  ids: readonly string[],
): string | undefined {
  if (mountedBy === undefined || ids.includes(mountedBy)) return undefined;
  const elsewhere = findings.flatMap(({ heldElsewhere }) => heldElsewhere).find((one) => one.id === mountedBy);
  const isOrphan = findings.some(({ orphans }) =>
    orphans.some(({ orphan }) => orphan.id === mountedBy && refusalOf(orphan) === undefined),
  );
  const isHeld = heldBy(mountedBy, { state, besides }) !== undefined;
  const whose = elsewhere
    ? `, which belongs to ${stackText(elsewhere.stack)},`
    : isHeld
      ? `, which a stack holds,`
      : "";
  const wayOut = isOrphan
    ? `If no one needs that Machine, name it, too: --delete ${mountedBy} ${id}.`
    : "Remove the mount with the program of that Machine first.";
  return `Machine ${mountedBy}${whose} mounts it. ${wayOut}`;
}

/** What is destroyed with an orphan: its data, or the objects in it. */
function losses({ kind: { type } }: Orphan): string | undefined {
  const resource = resources[type];
  return resource && (resource.losesData ?? (isParent(resource) ? "everything in it" : undefined));
}

const lossText = (orphan: Orphan): string => `deleting it destroys ${losses(orphan) ?? ""}`;

/** Whether tags prove that this stack owns it. */
const isProved = ({ orphan: { createdBy } }: Target): boolean => createdBy === "stack";

const doubtText = ({ remark, createdBy }: Orphan): string =>
  `nothing proves that this stack owns it${createdBy === "perhaps" && remark !== undefined ? ` (${remark.replace(/\.$/, "")})` : ""}`;

/** What `--yes` does not agree to. */
const notCovered = (targets: readonly Target[], { allowDataLoss, confirm = [] }: Consent): string[] =>
  targets.flatMap((target) => {
    const { orphan } = target;
    const { id } = orphan;
    return [
      ...(allowDataLoss || losses(orphan) === undefined
        ? []
        : [`${id}: ${lossText(orphan)}; add --allow-data-loss to allow that.`]),
      ...(isProved(target) || confirm.includes(id)
        ? []
        : [`${id}: ${doubtText(orphan)}, and --yes does not cover that. If no one needs it, add --confirm ${id}.`]),
    ];
  });

/** Asks for the id of each object that has data or whose owner is not proved, and once for all others. */
async function isAgreed(targets: readonly Target[], options: Consent): Promise<boolean> {
  const asking = options.yes ? { yes: true as const } : {};
  const { allowDataLoss, confirm = [] } = options;
  const toType = options.yes
    ? []
    : targets.filter(
        (one) =>
          (!allowDataLoss && losses(one.orphan) !== undefined) || (!isProved(one) && !confirm.includes(one.orphan.id)),
      );
  for (const { orphan } of toType) {
    const { id, kind } = orphan;
    const also = losses(orphan) === undefined ? "" : ` and ${losses(orphan) ?? ""}`;
    if (!(await typed(`Type ${id} to delete this ${kind.type}${also}: `, id))) return false;
  }
  const rest = targets.length - toType.length;
  if (rest === 0) return true;
  return agreed(asking, targets.length === 1 ? "Delete it?" : `Delete these ${targets.length}?`);
}

/** Whether all of them still are what was shown: a run may have adopted one while the user was asked. */
async function areStillOrphans(
  targets: readonly Target[],
  { readAgain }: Comparison,
  err: Streams["err"],
): Promise<boolean> {
  const look = await readAgain();
  const named = targets.map(({ orphan }) => orphan.id);
  const problems: string[] = [];
  for (const { finding, orphan } of targets) {
    const problem = changeOf(orphan, await look(finding, orphan), named);
    if (problem !== undefined) problems.push(`Not deleted: ${orphan.id}: ${problem}`);
  }
  for (const problem of problems) err(problem);
  return problems.length === 0;
}

/**
 * Why an orphan is no longer what was shown; undefined if it is, or is gone.
 * @param leaving Machines that are deleted, too: one still mounts its volume for a moment
 */
function changeOf(before: Orphan, now: Now, leaving: readonly string[]): string | undefined {
  if (now === "gone") return undefined;
  if ("taken" in now) return now.taken;
  if (!("createdBy" in now)) return `it belongs to ${stackText(now.stack)} by now.`;
  if (now.identity !== before.identity) return "another object has its ID by now, or its tags have changed.";
  const { createdBy, belongsTo, mountedBy, remark = "its owner has changed." } = now;
  if (mountedBy !== undefined && !leaving.includes(mountedBy)) return `Machine ${mountedBy} mounts it by now.`;
  return createdBy === before.createdBy && belongsTo === before.belongsTo ? undefined : remark;
}

/** Types in the order of deletion: a volume after the Machine that mounts it, and Apps and clusters after what is in them. */
const rankOf = ({ orphan: { kind } }: Target): number => {
  const resource = resources[kind.type];
  if (kind.isTagged) return 0;
  return resource && isParent(resource) ? 3 : resource?.losesData === undefined ? 1 : 2;
};

const deleteAll = (targets: readonly Target[], { readAgain }: Comparison, { out, err }: Streams): Promise<0 | 1> =>
  untilItEnds(async (interrupt) => {
    const run = new Run(() => processJournal(err));
    const deleted: string[] = [];
    let failed = 0;
    for (const target of targets.toSorted((a, b) => rankOf(a) - rankOf(b))) {
      const { kind, id } = target.orphan;
      const beginning = new Beginning(interrupt);
      try {
        beginning.signal.throwIfAborted();
        const check = checkBefore(target, {
          readAgain: undisturbed(readAgain, { interrupt, cancelled: beginning.signal }),
          deleted,
          beginning,
        });
        const isThere = await deleteOne(target, { check, run, warn: err, signal: beginning.signal });
        deleted.push(id);
        out(`${isThere ? "deleted" : "gone already:"} ${kind.type} ${id}\n`);
      } catch (error) {
        if (!(error instanceof MachinesError)) throw error;
        failed += 1;
        err(`Not deleted: ${kind.type} ${id}: ${beginning.signal.aborted ? interrupted : messageOf(error)}`);
      }
    }
    return failed > 0 ? 1 : 0;
  });

const interrupted = "interrupted.";

/** The beginning of one deletion. ^C cancels what has not begun. What has is finished: a Machine would stay cordoned and stopped. */
class Beginning {
  #hasBegun = false;
  readonly #cancelled = new AbortController();

  constructor(interrupt: AbortSignal) {
    const cancel = (): void => {
      if (!this.#hasBegun) this.#cancelled.abort(new MachinesError("cancelled", interrupted));
    };
    if (interrupt.aborted) cancel();
    else interrupt.addEventListener("abort", cancel);
  }

  get signal(): AbortSignal {
    return this.#cancelled.signal;
  }

  /** To be called before each request that changes the object. @throws MachinesError `cancelled` before the first, after ^C */
  begin(): void {
    this.signal.throwIfAborted();
    this.#hasBegun = true;
  }
}

/** Reads all stacks again. ^C also ends the CLI that reads them: then they are read once more. */
const undisturbed =
  (
    readAgain: Comparison["readAgain"],
    { interrupt, cancelled }: { readonly interrupt: AbortSignal; readonly cancelled: AbortSignal },
  ): Comparison["readAgain"] =>
  async () => {
    const isOver = interrupt.aborted;
    const isUndisturbed = (): boolean => interrupt.aborted === isOver;
    try {
      const look = await readAgain();
      if (isUndisturbed()) return look;
    } catch (error) {
      if (isUndisturbed()) throw error;
    }
    cancelled.throwIfAborted();
    return readAgain();
  };

/** Milliseconds for which the states that were read count as current. A fleet is deleted with hundreds of requests. */
const statesAreCurrent = 2000;

/**
 * Checks again all that was checked before, immediately before each request that changes the object: also before one that had
 * to wait for a lease, or until a volume is released. Meanwhile, it can have become someone's.
 */
function checkBefore({ finding, orphan }: Target, { readAgain, deleted, beginning }: Checking): () => Promise<void> {
  const { clock } = finding.api;
  let states: { readonly look: Look; readonly at: number } | undefined;
  return async () => {
    if (states === undefined || clock.now() - states.at > statesAreCurrent)
      states = { look: await readAgain(), at: clock.now() };
    const problem = changeOf(orphan, await states.look(finding, orphan), deleted);
    if (problem !== undefined) throw new MachinesError("refused", problem);
    beginning.begin();
  };
}

interface Checking {
  readonly readAgain: Comparison["readAgain"];
  /** Ids of what this command has deleted. */
  readonly deleted: readonly string[];
  readonly beginning: Beginning;
}

/** Deletes one as its resource would. Returns whether it was still there. */
async function deleteOne(
  { finding, orphan: { kind, id } }: Target,
  { check, run, warn, signal }: Deleting,
): Promise<boolean> {
  const resource = resources[kind.type];
  const api = guarded(finding.api, check);
  const said = new Set<string>();
  const progress = (message: string): void => {
    if (!said.has(message)) warn(`${kind.type} ${id}: ${message}`);
    said.add(message);
  };
  const caller: Caller = { api, run, warn, progress, signal };
  if (!resource) {
    const { app: appName = "", hostname = "" } = kind.id.parse(id);
    return (await orUndefined(() => api.certificates.delete({ appName, hostname }).then(() => true))) ?? false;
  }
  const found = await read(resource, id, undefined, caller);
  if (!found) return false;
  await remove(resource, id, { ...found.state, ...permission }, caller);
  return true;
}

interface Deleting {
  readonly check: () => Promise<void>;
  readonly run: Run;
  readonly warn: Streams["err"];
  readonly signal: AbortSignal;
}

/** The inputs that permit the deletion of data (R9). The user has agreed to it. */
const permission: Values = { allowDataLoss: true, deletionProtection: false };

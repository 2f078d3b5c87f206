// `pulumi-machines forget-views`: takes the Machines and volumes that a state lists below its fleets out of it. The engine cannot
// rename or move these views with their fleet; the next update lists them again.
import { isObject } from "../../api/schema.ts";
import { CONTEXT, contextOf, type Values } from "../../provider/core/resource.ts";
import type { DeploymentEntry } from "../entries.ts";
import { exportStack } from "../pulumi.ts";
import { selectedStack } from "../savedPlan.ts";
import { deploymentIn, listIn, nameIn } from "../stackState.ts";
import { agreed, requireInteractiveTerminal, type Asking, type Streams } from "../terminal.ts";
import { restoring, writeState } from "../writtenState.ts";

/** Options of the command. */
export interface ForgetOptions extends Asking {
  readonly stack?: string;
}

const source = "the output of `pulumi stack export`";

/** Whether an entry of a state is a view of one of our resources. */
const isView = ({ viewOf, type }: DeploymentEntry): boolean =>
  typeof viewOf === "string" && viewOf !== "" && typeof type === "string" && type.startsWith("machines:index:");

/** Values without the mark that the state has the views of their resource. */
function unmarked(values: unknown): unknown {
  if (!isObject(values) || contextOf(values).viewsOf === undefined) return values;
  const { viewsOf: _, ...context } = contextOf(values);
  return { ...values, [CONTEXT]: context };
}

/** A state without views, and how many each of its fleets had. No I/O. */
export function withoutViews(entries: readonly DeploymentEntry[]): {
  readonly entries: readonly DeploymentEntry[];
  readonly counts: ReadonlyMap<string, number>;
} {
  const counts = new Map<string, number>();
  for (const entry of entries) {
    const { urn, outputs, parent } = entry;
    // After `state rename` and `state move`, only the parent is the fleet as it is named now.
    const fleet = isView(entry) ? String(parent) : urn;
    const isMarked = isObject(outputs) && contextOf(outputs).viewsOf !== undefined;
    if (isView(entry) || isMarked) counts.set(fleet, (counts.get(fleet) ?? 0) + (isView(entry) ? 1 : 0));
  }
  const kept = entries.filter((entry) => !isView(entry));
  return {
    counts,
    entries: kept.map((entry): DeploymentEntry => {
      const { inputs, outputs }: Values = entry;
      return {
        ...entry,
        ...(inputs === undefined ? {} : { inputs: unmarked(inputs) }),
        ...(outputs === undefined ? {} : { outputs: unmarked(outputs) }),
      };
    }),
  };
}

/**
 * Shows what the state lists, asks, and writes the state without it. Returns the exit code: 0 if it is done or nothing is to do, 1 if
 * the user refused.
 * @throws MachinesError `refused` if the state has changed meanwhile
 */
export async function forgetViews(given: ForgetOptions, { out }: Streams): Promise<0 | 1> {
  const stack = given.stack ?? (await selectedStack());
  const text = await exportStack(stack);
  const { entries, counts } = withoutViews(listIn(deploymentIn(text, source), "resources") as DeploymentEntry[]);
  if (counts.size === 0) {
    out("There is nothing to forget: the state lists no Machines and volumes below its fleets.\n");
    return 0;
  }
  for (const [urn, count] of counts) out(`Fleet ${nameIn(urn)}: ${count} ${count === 1 ? "view" : "views"}  ${urn}\n`);
  if (given.dryRun) {
    out("This was a dry run: nothing has changed.\n");
    return 0;
  }
  requireInteractiveTerminal(given);
  if (!(await agreed(given, `\nTake these out of the state of ${stack}? Their fleets and Machines stay.`))) {
    out("Nothing has changed.\n");
    return 1;
  }
  const copy = await writeState(text, entries, { stack, given: given.stack, before: "forget-views" });
  out(`The state has no views any more, and nothing else has changed. With machines:fleetViews, the next up lists them again.
The previous state is in ${copy}. Until the next up, this restores it: ${restoring(copy, stack)}
`);
  return 0;
}

// Plans of the engine: what `pulumi preview --save-plan` writes. Their secrets are sealed.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isObject } from "../api/schema.ts";
import { MachinesError } from "../provider/client/errors.ts";
import { planVariables } from "../provider/core/observations/planFile.ts";
import type { Values } from "../provider/core/resource.ts";
import { errorsIn, runEngine, type Ran } from "./promotion/engine.ts";
import { openProject, reasonOf, type Stack } from "./promotion/stacks.ts";
import { listStacks, SetupError, stackOfEnvironment } from "./pulumi.ts";

/** A former URN of a resource, or what is different in it; other parts are empty. */
export interface Alias {
  readonly URN?: string;
  readonly Name?: string;
  readonly Type?: string;
  readonly Project?: string;
  readonly Stack?: string;
  readonly Parent?: string;
  readonly NoParent?: boolean;
}

/** What a plan does with one resource. */
export interface ResourcePlan {
  /** What the program declares; undefined for a resource that it does not declare any more. */
  readonly goal?: Values & {
    readonly inputDiff?: { readonly adds?: Values; readonly updates?: Values; readonly deletes?: readonly string[] };
    readonly parent?: string;
    readonly structuredAliases?: readonly Alias[];
    readonly propertyDependencies?: Readonly<Record<string, readonly string[] | null>>;
  };
  readonly steps?: readonly string[];
  /** Its state after the update, as far as a preview knows it. */
  readonly state?: Values | null;
}

/** The resources of a plan by URN. */
export type Plans = Readonly<Record<string, ResourcePlan>>;

/** The plans in the text of a file. @throws MachinesError `invalid-input` for any other text */
export function readPlan(text: string, source: string): Plans {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // Reported below: a parser's message quotes the text, which may hold secrets.
  }
  const plans = isObject(json)
    ? (json["resourcePlans"] ?? (isObject(json["plan"]) && json["plan"]["resourcePlans"]))
    : undefined;
  if (!isObject(plans))
    throw new MachinesError(
      "invalid-input",
      `${source} is no plan of Pulumi; \`pulumi preview --save-plan plan.json\` writes one`,
    );
  return plans as Plans;
}

/** The inputs that a plan makes of those in the state. */
export function inputsAfter(before: Values, { goal }: ResourcePlan): Values {
  const { adds = {}, updates = {}, deletes = [] } = goal?.inputDiff ?? {};
  const kept = Object.entries(before).filter(([name]) => !deletes.includes(name));
  return { ...Object.fromEntries(kept), ...adds, ...updates };
}

/** The name of the stack that commands without `--stack` use. @throws SetupError if there is none */
export async function selectedStack(): Promise<string> {
  const selected = stackOfEnvironment() ?? (await listStacks()).find(({ isSelected }) => isSelected)?.name;
  if (selected !== undefined) return selected;
  throw new SetupError("no stack is selected: name one with --stack, or select it with `pulumi stack select`");
}

/** Previews a stack, and returns the plan. @throws MachinesError `refused` with the errors of the preview */
export async function previewed(name: string): Promise<Plans> {
  const folder = newPlanFolder();
  try {
    return (await previewInto(folder, name)).plans;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A new folder for the files of a plan, for only the user. */
export const newPlanFolder = (): string => mkdtempSync(join(tmpdir(), "pulumi-machines-plan-"));

/** The files of a plan in its folder: that of Pulumi, and that of the provider (docs/plans.md). */
export const planFiles = (folder: string) =>
  ({ plan: join(folder, "plan.json"), seen: join(folder, "plan.machines.json") }) as const;

/** A preview with its plan. */
export interface Preview {
  readonly plans: Plans;
  readonly events: Ran["events"];
}

/** How a plan is made. */
export interface Planning {
  /** Whether an update will run exactly this plan: then the provider notes what it has seen, too. */
  readonly isToRun?: boolean;
  /** Cancels the preview. */
  readonly signal?: AbortSignal;
}

/**
 * Previews a stack, and saves the plan in a folder.
 * @throws MachinesError `refused` with the errors of the preview
 */
export async function previewInto(folder: string, name: string, { isToRun, signal }: Planning = {}): Promise<Preview> {
  const stack: Stack = await (await openProject()).stack(name);
  const { plan, seen } = planFiles(folder);
  if (isToRun) stack.workspace.envVars = { ...stack.workspace.envVars, [planVariables.save]: seen };
  const { events, error } = await runEngine(
    (progress) => stack.preview({ plan, ...progress, ...(signal && { signal }) }),
    undefined,
  );
  if (error !== undefined) {
    const errors = errorsIn(events);
    throw new MachinesError(
      "refused",
      `the preview of ${name} failed: ${errors.length > 0 ? errors.join("\n") : reasonOf(error, stack)}`,
    );
  }
  return { plans: readPlan(readFileSync(plan, "utf8"), "the plan of the preview"), events };
}

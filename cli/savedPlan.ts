// Plans of the engine: what `pulumi preview --save-plan` writes. Their secrets are sealed.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isObject } from "../api/schema.ts";
import { MachinesError } from "../provider/client/errors.ts";
import type { Values } from "../provider/core/resource.ts";
import { errorsIn, runEngine } from "./promotion/engine.ts";
import { openProject, reasonOf, type Stack } from "./promotion/stacks.ts";
import { listStacks, SetupError } from "./pulumi.ts";

/** What a plan does with one resource. */
export interface ResourcePlan {
  /** What the program declares; undefined for a resource that it does not declare any more. */
  readonly goal?: Values & {
    readonly inputDiff?: { readonly adds?: Values; readonly updates?: Values; readonly deletes?: readonly string[] };
    readonly aliases?: readonly unknown[];
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

/** The name of the selected stack. @throws SetupError if none is selected */
export async function selectedStack(): Promise<string> {
  const selected = (await listStacks()).find(({ isSelected }) => isSelected)?.name;
  if (selected !== undefined) return selected;
  throw new SetupError("no stack is selected: name one with --stack, or select it with `pulumi stack select`");
}

/** Previews a stack, and returns the plan. @throws MachinesError `refused` with the errors of the preview */
export async function previewed(name: string): Promise<Plans> {
  const stack: Stack = await (await openProject()).stack(name);
  const folder = mkdtempSync(join(tmpdir(), "pulumi-machines-plan-"));
  try {
    const plan = join(folder, "plan.json");
    const { events, error } = await runEngine((progress) => stack.preview({ plan, ...progress }), undefined);
    if (error !== undefined) {
      const errors = errorsIn(events);
      throw new MachinesError(
        "refused",
        `the preview of ${name} failed: ${errors.length > 0 ? errors.join("\n") : reasonOf(error, stack)}`,
      );
    }
    return readPlan(readFileSync(plan, "utf8"), "the plan of the preview");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

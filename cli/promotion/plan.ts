// The steps of a preview, and those that a promotion must refuse.
import type * as automation from "@pulumi/pulumi/automation/index.js";
import { prices } from "../../api/prices.ts";
import { resourceName } from "../../policy/core/validate.ts";
import { estimateOf } from "../../provider/cost/estimate.ts";
import { isParent } from "../../provider/core/resource.ts";
import { resources } from "../../provider/registry.ts";

/** A step of a preview. */
export interface PreviewStep {
  readonly op: string;
  /** Name of our type, as `Machine`; the engine's name for others. */
  readonly type: string;
  readonly name: string;
  readonly before: Inputs | undefined;
  readonly after: Inputs | undefined;
}

type Inputs = Readonly<Record<string, unknown>>;

/** The steps of our and other resources, from the events of a preview. */
export function stepsOf(events: readonly automation.EngineEvent[]): PreviewStep[] {
  return events.flatMap(({ resourcePreEvent }) => {
    const step = resourcePreEvent?.metadata;
    // A read before the update changes nothing; the engine reads fleets without being asked.
    if (step === undefined || step.type.startsWith("pulumi:") || step.op === "refresh") return [];
    return [
      {
        op: step.op,
        type: resourceName(step.type) ?? step.type,
        name: step.urn.slice(step.urn.lastIndexOf("::") + 2),
        before: step.old?.inputs as Inputs | undefined,
        after: step.new?.inputs as Inputs | undefined,
      },
    ];
  });
}

/** Whether data is lost with an object, its own or that of the objects in it. */
const holdsData = ({ type, before }: PreviewStep): boolean => {
  const resource = resources[type];
  // Otherwise the volumes of a fleet outlive it.
  if (type === "Fleet") return before?.["volume"] !== undefined && before["deleteVolumes"] === true;
  return resource !== undefined && (resource.losesData !== undefined || isParent(resource));
};
const destroys = new Set([
  ...["delete", "delete-replaced", "replace", "create-replacement", "import-replacement"],
  ...["discard", "discard-replaced"],
]);

/** Steps that would delete data: a promotion refuses these. */
export const destructive = (steps: readonly PreviewStep[]): PreviewStep[] => {
  const found = steps.filter((step) => destroys.has(step.op) && holdsData(step));
  return found.filter(({ type, name }, at) => found.findIndex((one) => one.type === type && one.name === name) === at);
};

/** Whether a resource of the type is a Machine, or consists of them. */
export const runsMachines = (type: string): boolean => type === "Machine" || type === "Fleet";

/**
 * Whether a Machine would run an image. If the inputs of Machines are secret, a preview does not show it, so it may.
 */
export const usesImage = (steps: readonly PreviewStep[], image: string): boolean =>
  steps.some(({ type, after }) => {
    const inputs = runsMachines(type) ? JSON.stringify(after ?? {}) : "";
    return inputs.includes(JSON.stringify(image)) || inputs.includes("[secret]");
  });

/** Steps whose resource is in the stack before, and after; a replacement is counted once. */
const counted = {
  before: new Set(["same", "update", "delete", "replace"]),
  after: new Set(["same", "update", "create", "import", "replace"]),
};

/** The stack's cost per month, by the estimate of the policy `budget`, before and after. */
export function costsOf(steps: readonly PreviewStep[]): {
  readonly before: number;
  readonly after: number;
  readonly currency: string;
} {
  const sum = (side: "before" | "after"): number =>
    steps
      .filter(({ op }) => counted[side].has(op))
      .reduce((total, { type, [side]: inputs }) => total + (inputs ? estimateOf(type, inputs, prices).monthly : 0), 0);
  return { before: sum("before"), after: sum("after"), currency: prices.currency };
}

// What an update would do, as `pulumi preview --save-plan` writes it. Secrets stay sealed.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isObject } from "../../api/schema.ts";
import { MachinesError } from "../../provider/client/errors.ts";
import type { Values } from "../../provider/core/resource.ts";
import { pulumi } from "../pulumi.ts";

/** What the engine plans for a resource. */
export interface Planned {
  readonly urn: string;
  readonly steps: readonly string[];
  /** What the program declares; undefined for a resource that it does not declare any more. */
  readonly goal: Values | undefined;
  /** How its inputs change. */
  readonly inputDiff: { readonly adds: Values; readonly updates: Values; readonly deletes: readonly string[] };
  /** Its state after the update, as far as a preview knows it. */
  readonly state: Values;
}

/** The resources of an update by URN. */
export type Plan = ReadonlyMap<string, Planned>;

const objectIn = (values: unknown): Values => (isObject(values) ? values : {});

/** Previews the program with the state of the stack. */
export async function previewed(stack: string | undefined): Promise<Plan> {
  const folder = mkdtempSync(join(tmpdir(), "machines-plan-"));
  const file = join(folder, "plan.json");
  try {
    await pulumi(["preview", "--suppress-progress", "--suppress-outputs", "--save-plan", file], stack);
    return planIn(readFileSync(file, "utf8"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Reads a plan. */
export function planIn(text: string): Plan {
  const { resourcePlans } = objectIn(JSON.parse(text));
  if (!isObject(resourcePlans))
    throw new MachinesError("configuration", "`pulumi preview --save-plan` wrote no plan; Pulumi 3.200 or newer does");
  return new Map(
    Object.entries(resourcePlans).map(([urn, found]) => {
      const { steps, goal, state } = objectIn(found);
      const { adds, updates, deletes } = objectIn(objectIn(goal)["inputDiff"]);
      const inputDiff = {
        ...{ adds: objectIn(adds), updates: objectIn(updates) },
        deletes: (Array.isArray(deletes) ? deletes : []).filter((name) => typeof name === "string"),
      };
      return [
        urn,
        {
          ...{ urn, inputDiff, state: objectIn(state), goal: isObject(goal) ? goal : undefined },
          steps: (Array.isArray(steps) ? steps : []).filter((step) => typeof step === "string"),
        },
      ];
    }),
  );
}

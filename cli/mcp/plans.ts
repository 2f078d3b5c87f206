// The plans that a session has shown. Only these can be applied, each once.
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import type { Plans as ResourcePlans } from "../savedPlan.ts";

/** A plan of a session. */
export interface SessionPlan {
  readonly id: string;
  /** The folder of the project, and the stack. */
  readonly project: string;
  readonly stack: string;
  /** What it does with each resource. */
  readonly resources: ResourcePlans;
  /** The folder of its files; undefined if the session may not apply it. */
  readonly files: string | undefined;
  /** Whether it changes nothing. */
  readonly isEmpty: boolean;
  /** Its update, once that has begun: an update is never run twice. */
  update?: Promise<unknown>;
}

// ASSUMED: an assistant that has shown ten newer plans does not come back to an older one.
const mostKept = 10;

/** The plans, the oldest first. */
export class Plans {
  /** Whether plans are kept so that they can be applied. */
  readonly areToRun: boolean;
  readonly #all = new Map<string, SessionPlan>();

  constructor(areToRun: boolean) {
    this.areToRun = areToRun;
  }

  /** Keeps a plan. */
  add(plan: Omit<SessionPlan, "id" | "update">): SessionPlan {
    const added = { ...plan, id: `plan-${randomBytes(6).toString("hex")}` };
    this.#all.set(added.id, added);
    for (const old of [...this.#all.values()].slice(0, -mostKept)) this.#forget(old);
    return added;
  }

  /** The plan with an id. */
  find(id: string): SessionPlan | undefined {
    return this.#all.get(id);
  }

  /** Removes all plans and their files. */
  forgetAll(): void {
    for (const plan of this.#all.values()) this.#forget(plan);
  }

  /** The files of an update under way stay until it ends. */
  #forget(plan: SessionPlan): void {
    this.#all.delete(plan.id);
    const remove = (): void => {
      if (plan.files !== undefined) rmSync(plan.files, { recursive: true, force: true });
    };
    if (plan.update === undefined) remove();
    else plan.update.then(remove, remove);
  }
}

// The tools `plan` and `cost`: what the next update of a stack changes, by a real preview.
import { rmSync } from "node:fs";
import { z } from "zod";
import { isObject } from "../../api/schema.ts";
import { MachinesError } from "../../provider/client/errors.ts";
import { pricesOf } from "../../provider/cost/prices.ts";
import { costReport } from "../../provider/cost/report.ts";
import { pathText } from "../../provider/core/values.ts";
import { parsePath } from "../../provider/plugin/propertyPath.ts";
import { resources } from "../../provider/registry.ts";
import { pricedIn } from "../cost/plan.ts";
import { isSecretAt, valueAt } from "../drift/comparison.ts";
import { violationsIn } from "../promotion/engine.ts";
import { destructive, stepsOf, type PreviewStep } from "../promotion/plan.ts";
import { exportStack } from "../pulumi.ts";
import { newPlanFolder, previewInto, selectedStack, type Plans as ResourcePlans, type Preview } from "../savedPlan.ts";
import type { Plans, SessionPlan } from "./plans.ts";
import { addTool, bounded, place, type Session } from "./tool.ts";
import type { Workspace } from "./workspace.ts";

const costs = {
  before: z.number(),
  after: z.number(),
  change: z.number().nullable().describe("Null if it cannot be said."),
};

const cost = z
  .object({
    ...costs,
    currency: z.string(),
    isLeast: z.boolean().describe("Whether `after` is at least this, because some values are not known yet."),
    apps: z.array(z.object({ place: z.string(), ...costs })),
    unknown: z.array(z.string()).describe("Resources whose prices depend on values that only the update knows."),
  })
  .nullable()
  .describe("Estimate for a month; null if nothing costs anything.");

const change = z.object({
  path: z.string().describe("As `config.image`."),
  from: z.unknown().optional(),
  to: z.unknown().optional(),
  isSecret: z.literal(true).optional().describe("The values are or may be secret, so they are left out."),
});

const step = z.object({
  action: z.enum(["create", "update", "replace", "delete", "import", "other"]),
  type: z.string().describe("As `Machine`."),
  name: z.string().describe("Name in the program."),
  changes: z.array(change),
});

const planned = z.object({
  plan: z.string().describe("Id of this plan, for `cost`, and for `apply_plan` if this server has that tool."),
  stack: z.string(),
  folder: z.string(),
  summary: z.string().describe("As `1 to create, 2 to update, 5 unchanged`."),
  steps: z.array(step).describe("Resources that the update changes."),
  losesData: z.array(z.string()).describe("Resources with data that the update deletes or replaces."),
  advice: z.array(z.string()).describe("What policies advise."),
  cost,
});

/** The most changes and steps in an answer, and the longest value. */
const [mostSteps, mostChanges, longestValue] = [100, 15, 200];

/** Adds the tools. */
export function addStackTools(session: Session, workspace: Workspace, plans: Plans): void {
  addTool(session, {
    name: "plan",
    title: "Plan an update of a stack",
    description:
      "Runs `pulumi preview` and shows what the next `pulumi up` of a stack would create, change, replace and delete, and what that costs. Runs the " +
      "program of the project, and changes nothing. Takes from a few seconds to a minute.",
    input: z.strictObject(place),
    output: planned,
    narrow: "preview a smaller change, or use `pulumi preview` in a terminal",
    run: ({ stack: given, folder }, { signal }) =>
      workspace.inFolder({ folder }, async (project) => {
        const { stack, plan, preview, steps } = await previewOf(workspace, plans, { project, given, signal });
        const summary = summaryOf(preview, steps);
        return {
          ...{ plan: plan.id, stack, folder: project, summary, steps: steps.slice(0, mostSteps) },
          losesData: destructive(stepsOf(preview.events)).map(({ type, name }) => `${type} ${name}`),
          advice: violationsIn(preview.events).map(({ text }) => bounded(text, 1000)),
          cost: await costOf(stack, plan.resources),
        };
      }),
  });
  addTool(session, {
    name: "cost",
    title: "Show what a stack costs",
    description:
      "What a stack costs a month by estimate, and what its next update changes of that, by App. With the id of a plan that `plan` showed, no second " +
      "preview is needed.",
    input: z.strictObject({ plan: z.string().max(100).optional().describe("Id of a plan of this session."), ...place }),
    output: z.object({ stack: z.string(), cost }),
    narrow: "use `npx pulumi-machines cost` in a terminal",
    async run({ plan: id, stack: given, folder }, { signal }) {
      const known = id === undefined ? undefined : knownPlan(plans, id);
      return workspace.inFolder({ folder: known?.project ?? folder }, async (project) => {
        const { stack, resources: planned } =
          known ?? (await previewOf(workspace, plans, { project, given, signal })).plan;
        return { stack, cost: await costOf(stack, planned) };
      });
    },
  });
}

/** A plan that the session has shown. @throws MachinesError `invalid-input` for any other id */
export function knownPlan(plans: Plans, id: string): SessionPlan {
  const found = plans.find(id);
  if (found) return found;
  throw new MachinesError(
    "invalid-input",
    `plan: got ${JSON.stringify(id)}, which is no plan of this session; call \`plan\` again, and use the id that it answers`,
  );
}

/** What is previewed, for whom. */
interface Previewing {
  readonly project: string;
  readonly given: string | undefined;
  readonly signal: AbortSignal;
}

async function previewOf(workspace: Workspace, plans: Plans, { project, given, signal }: Previewing) {
  const stack = given ?? (await selectedStack());
  // Also before a failure: its message may quote a secret.
  await workspace.learn(project, stack);
  const files = newPlanFolder();
  const isKept = plans.areToRun;
  try {
    const preview = await previewInto(files, stack, { isToRun: isKept, signal });
    const steps = stepsIn(preview);
    const isEmpty = steps.length === 0;
    const plan = plans.add({ project, stack, resources: preview.plans, isEmpty, files: isKept ? files : undefined });
    if (!isKept) rmSync(files, { recursive: true, force: true });
    return { stack, plan, preview, steps };
  } catch (error) {
    rmSync(files, { recursive: true, force: true });
    throw error;
  }
}

const costOf = async (stack: string, planned: ResourcePlans): Promise<z.output<typeof cost>> => {
  const report = costReport(pricedIn(planned, await exportStack(stack), `the state of ${stack}`), pricesOf({}));
  if (report === undefined) return null;
  const { before, after, change: difference, currency, isLeast, apps, unknown } = report;
  return {
    ...{ before, after, change: difference, currency, isLeast, unknown: [...unknown] },
    apps: apps.map(({ place: at, before: was, after: is, change: by }) => ({
      place: at,
      before: was,
      after: is,
      change: by,
    })),
  };
};

type Step = z.output<typeof step>;
type Action = Step["action"];

/** The actions of the engine's steps. A replacement is counted once, and what is not here changes nothing. */
const actions: Readonly<Record<string, Action>> = {
  ...{ create: "create", update: "update", replace: "replace", delete: "delete", import: "import" },
  ...{ "import-replacement": "replace", "remove-pending-replace": "delete" },
};

/** Steps of the engine that change no resource of their own. */
const quiet = /^(same|read.*|refresh|create-replacement|delete-replaced|discard.*)$/;

const actionOf = (op: string): Action | undefined => actions[op] ?? (quiet.test(op) ? undefined : "other");

function stepsIn({ events }: Preview): Step[] {
  return events.flatMap((event) => {
    const [found] = stepsOf([event]);
    const action = found && actionOf(found.op);
    if (!found || !action) return [];
    const details = event.resourcePreEvent?.metadata;
    const paths = Object.keys(details?.detailedDiff ?? {});
    const all = paths.length > 0 ? paths : (details?.diffs ?? []);
    const changes =
      action === "update" || action === "replace" ? all.slice(0, mostChanges).map((path) => changeAt(found, path)) : [];
    return [{ action, type: found.type, name: found.name, changes }];
  });
}

/** A change of a property, with its values where these are short and cannot be secret. */
function changeAt({ type, before = {}, after = {} }: PreviewStep, text: string): z.output<typeof change> {
  const path = parsePath(text);
  const values = [valueAt(before, path), valueAt(after, path)] as const;
  const resource = Object.hasOwn(resources, type) ? resources[type] : undefined;
  const shown = pathText(path);
  // The fields of other providers are not known here, so they may hold anything.
  if (resource === undefined || values.some(holdsMask) || isSecretAt(resource.inputFields, [], path, values))
    return { path: shown, isSecret: true };
  const [from, to] = values.map(shortened);
  return { path: shown, ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
}

/** Whether the engine has masked a part of a value. */
function holdsMask(value: unknown): boolean {
  if (typeof value === "string") return value.includes("[secret]");
  if (Array.isArray(value)) return value.some(holdsMask);
  return isObject(value) && Object.values(value).some(holdsMask);
}

function shortened(value: unknown): unknown {
  if (value === undefined || typeof value === "number" || typeof value === "boolean") return value;
  return bounded(typeof value === "string" ? value : JSON.stringify(value), longestValue);
}

/** `1 to create, 2 to update, 5 unchanged`. */
function summaryOf({ events }: Preview, steps: readonly Step[]): string {
  const counts = new Map<string, number>();
  const count = (word: string): void => void counts.set(word, (counts.get(word) ?? 0) + 1);
  for (const { action } of steps) count(`to ${action}`);
  for (const { op } of stepsOf(events)) if (op === "same") count("unchanged");
  return [...counts].map(([word, n]) => `${n} ${word}`).join(", ") || "nothing to do";
}

// The tools that change something. They exist only with --allow-changes, and each shows what it will do first.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type * as automation from "@pulumi/pulumi/automation/index.js";
import { z } from "zod";
import type { Machine } from "../../provider/client/machine.ts";
import { versionOf } from "../../provider/client/machine.ts";
import { MachinesError } from "../../provider/client/errors.ts";
import { planVariables } from "../../provider/core/observations/planFile.ts";
import { countsText, errorsIn, stepText } from "../promotion/engine.ts";
import { environment, noPulumi, setupProblem, SetupError } from "../pulumi.ts";
import { planFiles } from "../savedPlan.ts";
import type { Plans, SessionPlan } from "./plans.ts";
import { findMachine } from "./reading.ts";
import { knownPlan } from "./stackTools.ts";
import { addTool, bounded, place, type Call, type Session } from "./tool.ts";
import type { Workspace } from "./workspace.ts";

/** Adds the tools. */
export function addChangingTools(session: Session, workspace: Workspace, plans: Plans): void {
  addApply(session, workspace, plans);
  addPower(session, workspace);
}

const applied = z.object({
  stack: z.string(),
  succeeded: z.boolean(),
  summary: z.string().describe("As `1 created, 2 updated, 5 unchanged`."),
  steps: z.array(z.string()).describe("What was done, in order; the last ones."),
  errors: z.array(z.string()),
});

/** The most steps and errors of an update in an answer. */
const [mostSteps, mostErrors] = [100, 20];

function addApply(session: Session, workspace: Workspace, plans: Plans): void {
  addTool(session, {
    name: "apply_plan",
    title: "Apply a plan",
    description:
      "Runs `pulumi up` with exactly the plan that `plan` showed in this session, and stops before it changes what others have changed since. Show the " +
      "plan to the user, and call this only if they agree. A plan is applied once; a second call with its id waits for the same update and " +
      "answers its result, so repeat the call if the client gave up waiting.",
    input: z.strictObject({ plan: z.string().max(100).describe("Id that `plan` answered.") }),
    output: applied,
    narrow: "look at the stack with `plan`",
    changes: { destructive: true },
    async run({ plan: id }, { progress }) {
      const plan = knownPlan(plans, id);
      if (plan.isEmpty)
        throw new MachinesError("invalid-input", `plan: ${id} changes nothing, so there is nothing to apply`);
      plan.update ??= workspace.inFolder({ folder: plan.project }, async () => {
        const result = await update(plan, progress);
        await workspace.learn(plan.project, plan.stack);
        return result;
      });
      return (await plan.update) as z.output<typeof applied>;
    },
  });
}

type Event = automation.EngineEvent;

/**
 * Updates the stack with the plan. The process is in a group of its own, and writes to files: it ends its work also when the client, and
 * this server with it, are ended meanwhile.
 */
async function update({ stack, files }: SessionPlan, progress: Call["progress"]): Promise<z.output<typeof applied>> {
  if (files === undefined) throw new MachinesError("refused", "this server was started without --allow-changes");
  const { plan, seen } = planFiles(files);
  const [log, output] = [join(files, "events.json"), join(files, "output.txt")];
  const words = [
    "up",
    "--yes",
    "--plan",
    plan,
    "--event-log",
    log,
    "--stack",
    stack,
    "--non-interactive",
    "--color",
    "never",
  ];
  const { [planVariables.save]: _, ...env } = environment();
  const file = openSync(output, "w", 0o600);
  let reported = 0;
  const report = (): void => {
    const done = textsOf(eventsIn(log));
    for (const step of done.slice(reported)) progress(step);
    reported = done.length;
  };
  const timer = setInterval(report, 1000);
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      const child = spawn("pulumi", words, {
        // As Pulumi's Automation API does it: the log of events is an option for programs.
        env: { ...env, PULUMI_DEBUG_COMMANDS: "true", [planVariables.use]: seen },
        stdio: ["ignore", file, file],
        detached: true,
      });
      child.once("error", (error) =>
        reject((error as NodeJS.ErrnoException).code === "ENOENT" ? new SetupError(noPulumi, error) : error),
      );
      child.once("exit", resolve);
    });
    report();
    const text = readFileSync(output, "utf8");
    const setup = code === 0 ? undefined : setupProblem(text);
    if (setup) throw setup;
    const events = updateIn(eventsIn(log));
    const errors = errorsIn(events);
    // An error of the CLI itself is no event.
    const unnamed = `the update of ${stack} failed: ${text.trim().split("\n").slice(-10).join("\n")}`;
    return {
      ...{ stack, succeeded: code === 0, summary: countsText(events) },
      steps: textsOf(events).slice(-mostSteps),
      errors:
        code === 0
          ? []
          : (errors.length > 0 ? errors : [unnamed]).slice(0, mostErrors).map((one) => bounded(one, 2000)),
    };
  } finally {
    clearInterval(timer);
    closeSync(file);
  }
}

/** The steps among some events, as text. */
const textsOf = (events: readonly Event[]): string[] => events.flatMap((event) => stepText(event)?.trim() ?? []);

/** The events that the engine has logged so far: one in each line, and the last line may be incomplete. */
function eventsIn(log: string): readonly Event[] {
  let text = "";
  try {
    text = readFileSync(log, "utf8");
  } catch {
    return []; // It has not begun.
  }
  return text.split("\n").flatMap((line) => {
    try {
      return [JSON.parse(line) as Event];
    } catch {
      return [];
    }
  });
}

/** The events after the preview, which the CLI runs before the update: that one ends with a summary, too. */
function updateIn(events: readonly Event[]): readonly Event[] {
  const preview = events.findIndex(({ summaryEvent }) => summaryEvent !== undefined);
  return preview >= 0 &&
    preview < events.length - 1 &&
    events.slice(preview + 1).some(({ summaryEvent, preludeEvent }) => summaryEvent ?? preludeEvent)
    ? events.slice(preview + 1)
    : events;
}

const powers = {
  start: { from: ["stopped", "suspended", "created"], text: "It starts with its present configuration." },
  stop: {
    from: ["started", "starting"],
    text: "Its program gets a signal and ends; the Machine stays stopped until something starts it.",
  },
  restart: { from: ["started", "starting"], text: "Its program ends and starts again; it answers nothing meanwhile." },
} as const;

type Power = keyof typeof powers;

/** What a confirmation is for: it is good for nothing else. */
interface Shown {
  readonly action: Power;
  readonly app: string;
  readonly machine: string;
  readonly version: string | undefined;
  readonly state: string;
  readonly endpoint: string;
  readonly until: number;
}

/** Milliseconds that a confirmation is valid. ASSUMED: a user who needs longer should see the state of the Machine again. */
const valid = 300_000;

function addPower(session: Session, workspace: Workspace): void {
  const shown = new Map<string, Shown>();
  addTool(session, {
    name: "change_machine",
    title: "Start, stop or restart a Machine",
    description:
      "Starts, stops or restarts one Machine, in two calls. The first call changes nothing: it answers what will happen, and a confirmation. Show that " +
      "to the user; if they agree, call again with the same values and the confirmation. It is valid once, for five minutes, while " +
      "the Machine stays as it was shown. Other changes belong into the program of the stack: `plan` and `apply_plan`.",
    input: z.strictObject({
      action: z.enum(["start", "stop", "restart"]),
      app: z.string().min(1).max(100).describe("App of the Machine."),
      machine: z.string().min(1).max(100).describe("Its id or name."),
      confirmation: z
        .string()
        .max(100)
        .optional()
        .describe("What the first call answered; left out in the first call."),
      ...place,
    }),
    output: z.object({
      done: z.boolean(),
      machine: z.string().describe("App, name and id."),
      state: z.string().describe("State before the change."),
      plan: z.string().describe("What the second call does, or has done."),
      confirmation: z.string().optional(),
    }),
    narrow: "name one Machine",
    changes: { destructive: true },
    async run({ action, app, machine: named, confirmation, stack, folder }) {
      const api = await workspace.service({ stack, folder });
      const { appName, machine } = await findMachine(api, named, app);
      const now = { ...stateOf(machine), action, app: appName, endpoint: api.config.endpoint };
      const title = `${appName}/${machine.name ?? machine.id} (${machine.id})`;
      const { from, text } = powers[action];
      if (!(from as readonly string[]).includes(now.state))
        throw new MachinesError(
          "refused",
          `action: Machine ${title} is ${now.state}, and ${action} needs ${from.join(" or ")}; nothing was changed`,
        );
      const plan = `${action} Machine ${title}, which is ${now.state}. ${text}`;
      if (confirmation === undefined) {
        const value = randomBytes(9).toString("base64url");
        shown.set(value, { ...now, until: performance.now() + valid });
        return { done: false, machine: title, state: now.state, plan, confirmation: value };
      }
      const was = shown.get(confirmation);
      shown.delete(confirmation);
      const why = differenceOf(was, now);
      if (why !== undefined)
        throw new MachinesError(
          "refused",
          `confirmation: ${why}; nothing was changed. Call without a confirmation, show the plan to the user, and confirm that`,
        );
      const key = { appName, machineId: machine.id };
      await api.machines[action](key);
      return { done: true, machine: title, state: now.state, plan };
    },
  });
}

const stateOf = (machine: Machine) => ({ machine: machine.id, version: versionOf(machine), state: machine.state });

function differenceOf(was: Shown | undefined, now: Omit<Shown, "until">): string | undefined {
  if (was === undefined) return "it was never given, or was used before";
  if (was.until < performance.now()) return "it has expired";
  const names = ["action", "app", "machine", "endpoint", "version", "state"] as const;
  const differs = names.find((name) => was[name] !== now[name]);
  return differs && `it is for another ${differs}: ${was[differs] ?? "none"}, not ${now[differs] ?? "none"}`;
}

// `pulumi-machines environment`: stacks for a while, one for each pull request: made like another one, and gone in time.
import { writeFileSync } from "node:fs";
import type * as automation from "@pulumi/pulumi/automation/index.js";
import { parseDuration } from "../../../api/schema.ts";
import { MachinesError, messageOf } from "../../core/errors.ts";
import type { Streams } from "../orphans.ts";
import { costsOf, stepsOf, type Step } from "./plan.ts";
import { openProject, type Project, type Stack } from "./stacks.ts";

/** What the command is told when it makes an environment. */
export interface CreateOptions {
  /** Stack whose configuration it takes over. */
  readonly template: string;
  /** How long it may live, for example `48h`. */
  readonly expires: string;
  /** Configuration that is not the template's, `key=value`. */
  readonly set?: readonly string[];
  /** File for a summary in Markdown, for example for a comment. */
  readonly summary?: string;
}

/** Key of the project's configuration with the time an environment is good for. Only stacks that have it are ever swept. */
const expiry = "expires";

/** Makes an environment, or brings it up to date and makes it live longer. */
export async function create(
  name: string,
  options: CreateOptions,
  { out }: Streams,
  now: Date = new Date(),
): Promise<void> {
  const nanoseconds = parseDuration(options.expires);
  if (nanoseconds === undefined || nanoseconds <= 0)
    throw new MachinesError("invalid-input", `--expires ${options.expires}: must be a time such as 48h`);
  const project = await openProject(process.cwd());
  if (name === options.template)
    throw new MachinesError("invalid-input", `${name} is the template: an environment needs a name of its own`);
  const template = await project.stack(options.template);
  const isThere = (await project.stacks()).includes(name);
  const stack = isThere ? await environment(project, name) : await project.newStack(name);
  const until = new Date(now.getTime() + nanoseconds / 1e6).toISOString();
  await stack.setAllConfig({
    ...(await template.getAllConfig()),
    ...Object.fromEntries((options.set ?? []).map((pair) => setting(project, pair))),
    [`${project.name}:${expiry}`]: { value: until },
  });
  const events: automation.EngineEvent[] = [];
  await stack.up({ onOutput: out, color: "never", onEvent: (event) => void events.push(event) });
  const text = summaryOf(name, until, stepsOf(events), await stack.outputs());
  if (options.summary === undefined) out(`\n${text}`);
  else writeFileSync(options.summary, text);
}

/** Destroys an environment with everything it made, and forgets its stack. */
export async function destroy(name: string, { out }: Streams): Promise<void> {
  const project = await openProject(process.cwd());
  if (!(await project.stacks()).includes(name)) {
    out(`There is no environment ${name}.\n`);
    return;
  }
  const stack = await environment(project, name);
  await stack.destroy({ onOutput: out, color: "never" });
  await stack.workspace.removeStack(name);
  out(`Environment ${name} is gone, with everything it made.\n`);
}

/**
 * Destroys the environments whose time is over.
 * @returns 1 where one of them could not be destroyed: the others are all the same
 */
export async function sweep(streams: Streams, now: Date = new Date()): Promise<0 | 1> {
  const project = await openProject(process.cwd());
  let failed = false;
  for (const name of await project.stacks()) {
    const until = await expiryOf(project, await project.stack(name));
    if (until === undefined || Date.parse(until) > now.getTime()) continue;
    try {
      await destroy(name, streams);
    } catch (error) {
      failed = true;
      streams.err(`Environment ${name} could not be destroyed: ${messageOf(error)}`);
    }
  }
  return failed ? 1 : 0;
}

/** A stack that is an environment. @throws MachinesError where it is another one, which is not ours to change or destroy */
async function environment(project: Project, name: string): Promise<Stack> {
  const stack = await project.stack(name);
  if ((await expiryOf(project, stack)) === undefined)
    throw new MachinesError("refused", `stack ${name} is no environment: it was not made by this command`);
  return stack;
}

const expiryOf = async (project: Project, stack: Stack): Promise<string | undefined> =>
  (await stack.getAllConfig())[`${project.name}:${expiry}`]?.value;

function setting(project: Project, pair: string): [string, automation.ConfigValue] {
  const at = pair.indexOf("=");
  if (at < 1) throw new MachinesError("invalid-input", `--set takes key=value, not ${JSON.stringify(pair)}`);
  const key = pair.slice(0, at);
  return [key.includes(":") ? key : `${project.name}:${key}`, { value: pair.slice(at + 1) }];
}

function summaryOf(name: string, until: string, steps: readonly Step[], outputs: automation.OutputMap): string {
  const changed = steps.filter(({ op }) => op !== "same");
  const { after, currency } = costsOf(steps);
  const told = Object.entries(outputs).map(([key, { value, secret }]) => {
    const text = secret ? "[secret]" : typeof value === "string" ? value : JSON.stringify(value);
    return `| ${key} | \`${text}\` |`;
  });
  const lines = changed.map(({ op, type, name }) => `- ${op} ${type} \`${name}\``);
  return [
    `### Environment ${name}`,
    "",
    `Until ${until}, about ${after.toFixed(2)} ${currency} a month.`,
    "",
    ...(told.length > 0 ? ["| output | |", "|---|---|", ...told, ""] : []),
    ...(lines.length > 0 ? ["What changed:", "", ...lines] : ["Nothing changed."]),
    "",
  ].join("\n");
}

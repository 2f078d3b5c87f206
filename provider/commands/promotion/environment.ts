// `pulumi-machines environment`: stacks for a while, one for each pull request: made like another one, and gone in time.
import { writeFileSync } from "node:fs";
import type * as automation from "@pulumi/pulumi/automation/index.js";
import { z } from "zod";
import { parseDuration } from "../../../api/schema.ts";
import { MachinesError, messageOf } from "../../core/errors.ts";
import type { Streams } from "../orphans.ts";
import { pulumi } from "../pulumi.ts";
import { costsOf, stepsOf, type Step } from "./plan.ts";
import { openProject, outputsOf, settingsOf, type Project, type Stack } from "./stacks.ts";

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

/**
 * Key of the configuration that makes a stack an environment: with its own name, so that a copy of its configuration makes
 * none, and the time it is good for. Only stacks that have it are ever changed or destroyed.
 */
const marker = "pulumi-machines:environment";

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
  const given = (options.set ?? []).map((pair) => setting(pair));
  const project = await openProject();
  if (name === options.template)
    throw new MachinesError("invalid-input", `${name} is the template: an environment needs a name of its own`);
  const template = await project.stack(options.template);
  const secret = await secretKeys(options.template);
  const until = new Date(now.getTime() + nanoseconds / 1e6).toISOString();
  const mark = { value: JSON.stringify({ stack: name, expires: until }) };
  const isThere = (await project.stacks()).includes(name);
  const stack = isThere
    ? await environment(project, name)
    : await project.newStack(name, { secretsProvider: (await settingsOf(template)).secretsProvider });
  // First of all: a stack that could not be finished is one that can be destroyed.
  await stack.setConfig(marker, mark);
  // Not by way of arguments: there are secrets in it, which an error would quote.
  await pulumi(["config", "cp", "--dest", name], options.template);
  for (const [key, value] of given) {
    const whole = key.includes(":") ? key : `${project.name}:${key}`;
    try {
      await stack.setConfig(whole, { value, secret: secret.has(whole) });
    } catch {
      // What the API says of it quotes the value.
      throw new MachinesError("invalid-input", `--set: ${key} could not be set`);
    }
  }
  await stack.setConfig(marker, mark);
  const events: automation.EngineEvent[] = [];
  await stack.up({ onOutput: out, onError: out, color: "never", onEvent: (event) => void events.push(event) });
  const text = summaryOf(name, until, stepsOf(events), await outputsOf(stack));
  if (options.summary === undefined) out(`\n${text}`);
  else writeFileSync(options.summary, text);
}

/** Destroys an environment with everything it made, and forgets its stack. */
export async function destroy(name: string, { out }: Streams): Promise<void> {
  const project = await openProject();
  if (!(await project.stacks()).includes(name)) {
    out(`There is no environment ${name}.\n`);
    return;
  }
  await remove(await environment(project, name), out);
}

async function remove(stack: Stack, out: Streams["out"]): Promise<void> {
  await stack.destroy({ onOutput: out, onError: out, color: "never" });
  await stack.workspace.removeStack(stack.name);
  out(`Environment ${stack.name} is gone, with everything it made.\n`);
}

/**
 * Destroys the environments whose time is over.
 * @returns 1 where one of them could not be destroyed: the others are all the same
 */
export async function sweep(streams: Streams, now: Date = new Date()): Promise<0 | 1> {
  const project = await openProject();
  let failed = false;
  for (const name of await project.stacks()) {
    try {
      const stack = await project.stack(name);
      const until = await expiryOf(stack);
      if (until !== undefined && Date.parse(until) <= now.getTime()) await remove(stack, streams.out);
    } catch (error) {
      failed = true;
      streams.err(`Stack ${name} could not be looked at, or not be destroyed: ${messageOf(error)}`);
    }
  }
  return failed ? 1 : 0;
}

/** A stack that is an environment. @throws MachinesError where it is another one, which is not ours to change or destroy */
async function environment(project: Project, name: string): Promise<Stack> {
  const stack = await project.stack(name);
  if ((await expiryOf(stack)) === undefined)
    throw new MachinesError("refused", `stack ${name} is no environment: it was not made by this command`);
  return stack;
}

/** Until when a stack may live; undefined where it is no environment. */
async function expiryOf(stack: Stack): Promise<string | undefined> {
  let settings = await settingsOf(stack);
  if (settings.config === undefined) {
    // Another computer made it, as in CI: what it was last deployed with is known all the same.
    await pulumi(["config", "refresh", "--force"], stack.name);
    settings = await settingsOf(stack);
  }
  const mark = settings.config?.[marker] as unknown;
  if (typeof mark !== "string") return undefined;
  const found = z.object({ stack: z.string(), expires: z.iso.datetime() }).safeParse(JSON.parse(mark));
  return found.success && found.data.stack === stack.name ? found.data.expires : undefined;
}

/** Keys of a stack's configuration whose values are secret. */
async function secretKeys(stack: string): Promise<ReadonlySet<string>> {
  const all = JSON.parse(await pulumi(["config", "--json"], stack)) as Record<string, { readonly secret?: boolean }>;
  return new Set(Object.entries(all).flatMap(([key, { secret }]) => (secret ? [key] : [])));
}

function setting(pair: string): [key: string, value: string] {
  const at = pair.indexOf("=");
  // Not quoted: it may be a secret.
  if (at < 1) throw new MachinesError("invalid-input", "--set takes key=value");
  return [pair.slice(0, at), pair.slice(at + 1)];
}

function summaryOf(
  name: string,
  until: string,
  steps: readonly Step[],
  outputs: Readonly<Record<string, unknown>>,
): string {
  const changed = steps.filter(({ op }) => op !== "same");
  const { after, currency } = costsOf(steps);
  const told = Object.entries(outputs).map(
    ([key, value]) => `| ${key} | \`${typeof value === "string" ? value : JSON.stringify(value)}\` |`,
  );
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

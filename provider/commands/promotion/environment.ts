// `pulumi-machines environment`: stacks for a while, one for each pull request: made like another one, and gone in time.
import { writeFileSync } from "node:fs";
import type * as automation from "@pulumi/pulumi/automation/index.js";
import { z } from "zod";
import { isObject, parseDuration } from "../../../api/schema.ts";
import { MachinesError, messageOf } from "../../core/errors.ts";
import type { Streams } from "../orphans.ts";
import { exportStack, pulumi } from "../pulumi.ts";
import { readState, type Held } from "../stackState.ts";
import { costsOf, stepsOf, type Step } from "./plan.ts";
import { bareName, openProject, outputsOf, settingsOf, type Project, type Stack } from "./stacks.ts";

/** What the command is told when it makes an environment. */
export interface CreateOptions {
  /** Stack whose configuration it takes over. */
  readonly template: string;
  /** How long it may live, for example `48h`. */
  readonly expires: string;
  /** Configuration that is not the template's, `key=value`; secret where the template's is. */
  readonly set?: readonly string[];
  /** The same, always secret. */
  readonly setSecret?: readonly string[];
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
  const { set = [], setSecret = [] } = options;
  const given = [...set.map((pair) => setting(pair, false)), ...setSecret.map((pair) => setting(pair, true))];
  const project = await openProject();
  if (name === options.template)
    throw new MachinesError("invalid-input", `${name} is the template: an environment needs a name of its own`);
  const template = await project.stack(options.template);
  const secret = await secretKeys(options.template);
  const until = new Date(now.getTime() + nanoseconds / 1e6).toISOString();
  const stack =
    (await environment(project, name)) ??
    (await project.newStack(name, { secretsProvider: (await settingsOf(template))?.secretsProvider }));
  const mark = { value: JSON.stringify({ stack: bareName(stack), expires: until }) };
  // First of all: a stack that could not be finished is one that can be destroyed.
  await stack.setConfig(marker, mark);
  // Not by way of arguments: there are secrets in it, which an error would quote.
  await pulumi(["config", "cp", "--dest", name], options.template);
  for (const { key, value, isSecret } of given) {
    const whole = key.includes(":") ? key : `${project.name}:${key}`;
    try {
      await stack.setConfig(whole, { value, secret: isSecret || secret.has(whole) });
    } catch {
      // What the API says of it quotes the value.
      throw new MachinesError(
        "invalid-input",
        `${key} could not be set: is it a key that \`pulumi config set\` takes?`,
      );
    }
  }
  await stack.setConfig(marker, mark);
  const events: automation.EngineEvent[] = [];
  await stack.up({ onOutput: out, onError: out, color: "never", onEvent: (event) => void events.push(event) });
  const { resources } = readState(await exportStack(stack.name), `the state of ${name}`);
  const text = summaryOf(name, until, { steps: stepsOf(events), outputs: await outputsOf(stack), resources });
  if (options.summary === undefined) out(`\n${text}`);
  else writeFileSync(options.summary, text);
}

/** Destroys an environment with everything it made, and forgets its stack. */
export async function destroy(name: string, { out }: Streams): Promise<void> {
  const project = await openProject();
  const stack = await environment(project, name);
  if (stack === undefined) out(`There is no environment ${name}.\n`);
  else await remove(stack, out);
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
  for (const name of (await project.stacks()).keys()) {
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

/** An environment, if it is there. @throws MachinesError where the stack is another one, which is not ours to change or destroy */
async function environment(project: Project, name: string): Promise<Stack | undefined> {
  const stack = await project.find(name);
  if (stack !== undefined && (await expiryOf(stack)) === undefined)
    throw new MachinesError("refused", `stack ${name} is no environment: it was not made by this command`);
  return stack;
}

/** Until when a stack may live; undefined where it is no environment. */
async function expiryOf(stack: Stack): Promise<string | undefined> {
  let settings = await settingsOf(stack);
  if (settings === undefined) {
    // Another computer made it, as in CI: what it was last deployed with is known all the same.
    await pulumi(["config", "refresh", "--force"], stack.name);
    settings = await settingsOf(stack);
  }
  const mark = settings?.config?.[marker] as unknown;
  if (typeof mark !== "string") return undefined;
  const found = z.object({ stack: z.string(), expires: z.iso.datetime() }).safeParse(JSON.parse(mark));
  return found.success && found.data.stack === bareName(stack) ? found.data.expires : undefined;
}

/** Keys of a stack's configuration whose values are secret. */
async function secretKeys(stack: string): Promise<ReadonlySet<string>> {
  const all = JSON.parse(await pulumi(["config", "--json"], stack)) as Record<string, { readonly secret?: boolean }>;
  return new Set(Object.entries(all).flatMap(([key, { secret }]) => (secret ? [key] : [])));
}

function setting(pair: string, isSecret: boolean): { key: string; value: string; isSecret: boolean } {
  const at = pair.indexOf("=");
  // Not quoted: it may be a secret.
  if (at < 1) throw new MachinesError("invalid-input", `--set${isSecret ? "-secret" : ""} takes key=value`);
  return { key: pair.slice(0, at), value: pair.slice(at + 1), isSecret };
}

/** What there is to say of an environment. */
interface Made {
  readonly steps: readonly Step[];
  readonly outputs: Readonly<Record<string, unknown>>;
  readonly resources: readonly Held[];
}

function summaryOf(name: string, until: string, { steps, outputs, resources }: Made): string {
  const changed = steps.filter(({ op }) => op !== "same");
  const { after, currency } = costsOf(steps);
  const addresses = resources.flatMap((held) => addressOf(held)).map((address) => `- ${address}`);
  const told = Object.entries(outputs).map(([key, value]) => {
    const image = key === "release" && isObject(value) ? value["image"] : undefined; // of a release, what reads well
    const shown = image ?? value;
    return `| ${key} | \`${typeof shown === "string" ? shown : JSON.stringify(shown)}\` |`;
  });
  const lines = changed.map(({ op, type, name }) => `- ${op} ${type} \`${name}\``);
  return [
    `### Environment ${name}`,
    "",
    `Until ${until}, about ${after.toFixed(2)} ${currency} a month.`,
    "",
    ...(addresses.length > 0 ? ["Addresses:", "", ...addresses, ""] : []),
    ...(told.length > 0 ? ["| output | |", "|---|---|", ...told, ""] : []),
    ...(lines.length > 0 ? ["What changed:", "", ...lines] : ["Nothing changed."]),
    "",
  ].join("\n");
}

/** Where something is to be reached from outside: by an address of an App, or a name with a certificate. */
function addressOf({ type, id, outputs }: Held): string[] {
  const [app = "", last = ""] = id.split("/");
  if (type === "IpAssignment" && ["v4", "v6", "shared_v4"].includes(String(outputs["type"])))
    return [`\`${last}\`, which is the ${String(outputs["type"])} of ${app}`];
  return type === "AcmeCertificate" || type === "CustomCertificate" ? [`https://${last} of ${app}`] : [];
}

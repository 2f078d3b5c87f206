// `pulumi-machines environment`: temporary stacks, one for each pull request: created like another one, and deleted in
// time.
import { readFileSync, writeFileSync } from "node:fs";
import type * as automation from "@pulumi/pulumi/automation/index.js";
import { z } from "zod";
import { isObject, parseDuration } from "../../api/schema.ts";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import type { Streams } from "../orphans/orphans.ts";
import { exportStack, pulumi } from "../pulumi.ts";
import { readState, type StateResource } from "../stackState.ts";
import { untilItEnds } from "../terminal.ts";
import { costsOf, stepsOf, type PreviewStep } from "./plan.ts";
import {
  configOf,
  environmentTag,
  fileOf,
  openProject,
  outputsOf,
  reasonOf,
  setConfig,
  tagsOf,
  telling,
  type Project,
  type Stack,
  type StackConfig,
} from "./stacks.ts";

/** Options for the creation of an environment. */
export interface CreateOptions {
  /** Stack whose configuration it copies. */
  readonly template: string;
  /** How long it may live, for example `48h`. */
  readonly expires: string;
  /** Configuration that is not the template's, `key=value`. */
  readonly set?: readonly string[];
  /** Secret configuration that is not the template's, `key=VARIABLE`: the value is that of a variable of the environment. */
  readonly setSecret?: readonly string[];
  /** File for a summary in Markdown, for example for a comment. */
  readonly summary?: string;
}

/** The tag of an environment. Only stacks that have it are ever changed or destroyed, from whatever computer. */
const markOf = z.object({
  /** Stack that it is created like. */
  template: z.string(),
  /** Until when it may live, in RFC 3339. */
  expires: z.iso.datetime(),
});
type Mark = z.infer<typeof markOf>;

/** Creates an environment, or brings it up to date and extends its life. */
export async function create(
  name: string,
  options: CreateOptions,
  { out }: Streams,
  now: Date = new Date(),
): Promise<void> {
  const nanoseconds = parseDuration(options.expires);
  if (nanoseconds === undefined || nanoseconds <= 0)
    throw new MachinesError("invalid-input", `--expires ${options.expires}: must be a time such as 48h`);
  const project = await openProject();
  if (name === options.template)
    throw new MachinesError("invalid-input", `${name} is the template: an environment needs a name of its own`);
  const template = await project.stack(options.template);
  const given = settingsOf(options, await configOf(template), project.name);
  const until = new Date(now.getTime() + nanoseconds / 1e6).toISOString();
  const mark: Mark = { template: options.template, expires: until };
  const stack =
    (await environment(project, name))?.stack ??
    (await project.newStack(name, { secretsProvider: await secretsProviderOf(template) }));
  // First of all: a stack that could not be finished is one that can be destroyed.
  await pulumi(["stack", "tag", "set", environmentTag, JSON.stringify(mark)], name);
  await pulumi(["config", "cp", "--dest", name], options.template);
  for (const { key, ...setting } of given) await setConfig(stack, key, setting);
  const events: automation.EngineEvent[] = [];
  try {
    const onEvent = (event: automation.EngineEvent): void => void events.push(event);
    await untilItEnds(() => stack.up({ ...telling(out), onEvent }));
  } catch (error) {
    throw new MachinesError(
      "refused",
      `environment ${name} is not finished: ${reasonOf(error, stack)}\nRun the same command again to continue, or \`environment destroy ${name}\` to delete what it has created.`,
    );
  }
  const { resources } = readState(await exportStack(stack.name), `the state of ${name}`);
  const text = summaryOf(name, until, { steps: stepsOf(events), outputs: await outputsOf(stack), resources });
  if (options.summary === undefined) out(`\n${text}`);
  else writeFileSync(options.summary, text);
}

/** Destroys an environment with everything it created, and forgets its stack. */
export async function destroy(name: string, { out }: Streams): Promise<void> {
  const project = await openProject();
  const found = await environment(project, name);
  if (found === undefined) out(`There is no environment ${name}.\n`);
  else await remove(found, out);
}

async function remove({ stack, mark }: Environment, out: Streams["out"]): Promise<void> {
  if ((await fileOf(stack)) === undefined) await configure(stack, mark);
  try {
    await untilItEnds(() => stack.destroy(telling(out)));
  } catch (error) {
    throw new MachinesError("refused", `environment ${stack.name} still exists: ${reasonOf(error, stack)}`);
  }
  await stack.workspace.removeStack(stack.name);
  out(`Environment ${stack.name} is deleted, with everything it created.\n`);
}

/**
 * Destroys the expired environments.
 * @returns 1 if one of them could not be destroyed; the others are destroyed nevertheless
 */
export async function sweep(streams: Streams, now: Date = new Date()): Promise<0 | 1> {
  const project = await openProject();
  let failed = false;
  for (const name of (await project.stacks()).keys()) {
    try {
      const stack = await project.stack(name);
      const mark = await lookUp(stack);
      if (mark !== undefined && Date.parse(mark.expires) <= now.getTime()) await remove({ stack, mark }, streams.out);
    } catch (error) {
      failed = true;
      streams.err(`Stack ${name} could not be looked at, or not be destroyed: ${messageOf(error)}`);
    }
  }
  return failed ? 1 : 0;
}

/** A stack that is an environment. */
interface Environment {
  readonly stack: Stack;
  readonly mark: Mark;
}

/**
 * The environment, if it exists.
 * @throws MachinesError if the stack is not an environment, so that it must not be changed or destroyed
 */
async function environment(project: Project, name: string): Promise<Environment | undefined> {
  const stack = await project.find(name);
  if (stack === undefined) return undefined;
  const mark = await lookUp(stack);
  if (mark === undefined)
    throw new MachinesError(
      "refused",
      `stack ${name} is no environment: it was not created by this command (\`pulumi stack rm ${name}\` removes one that has nothing)`,
    );
  return { stack, mark };
}

async function lookUp(stack: Stack): Promise<Mark | undefined> {
  const { [environmentTag]: text } = await tagsOf(stack);
  return text === undefined ? undefined : markOf.parse(JSON.parse(text));
}

/** Another computer created it, as in CI. Its configuration is that of its last deployment, or of its template. */
async function configure(stack: Stack, { template }: Mark): Promise<void> {
  try {
    await pulumi(["config", "refresh"], stack.name);
  } catch {
    await pulumi(["config", "cp", "--dest", stack.name], template);
  }
}

async function secretsProviderOf(stack: Stack): Promise<string | undefined> {
  const file = await fileOf(stack);
  const text = file === undefined ? "" : readFileSync(file, "utf8");
  return /^\s*"?secretsprovider"?:\s*"?([^"\s,]+)/m.exec(text)?.[1];
}

/** Configuration that is not the template's. Values of secrets are not among the arguments, which CI and `ps` show. */
function settingsOf(
  { set = [], setSecret = [] }: CreateOptions,
  template: StackConfig,
  project: string,
): { key: string; value: string; isSecret: boolean }[] {
  const split = (option: string, pair: string, second: string): [key: string, value: string] => {
    const at = pair.indexOf("=");
    // Not quoted, because it may be a secret.
    if (at < 1) throw new MachinesError("invalid-input", `${option} takes key=${second}`);
    const key = pair.slice(0, at);
    return [key.includes(":") ? key : `${project}:${key}`, pair.slice(at + 1)];
  };
  const plain = set.map((pair) => {
    const [key, value] = split("--set", pair, "value");
    if (template[key]?.secret)
      throw new MachinesError(
        "invalid-input",
        `--set: ${key} is a secret of the template; --set-secret ${key}=VARIABLE takes it from the environment`,
      );
    return { key, value, isSecret: false };
  });
  const secret = setSecret.map((pair) => {
    const [key, variable] = split("--set-secret", pair, "VARIABLE");
    const value = process.env[variable];
    if (value === undefined || value === "")
      throw new MachinesError("invalid-input", `--set-secret: there is no variable for ${key} in the environment`);
    return { key, value, isSecret: true };
  });
  return [...plain, ...secret];
}

/** The summary of an environment. */
interface Summary {
  readonly steps: readonly PreviewStep[];
  readonly outputs: Readonly<Record<string, unknown>>;
  readonly resources: readonly StateResource[];
}

function summaryOf(name: string, until: string, { steps, outputs, resources }: Summary): string {
  const changed = steps.filter(({ op }) => op !== "same");
  const { after, currency } = costsOf(steps);
  const addresses = resources.flatMap((held) => addressOf(held)).map((address) => `- ${address}`);
  const rows = Object.entries(outputs).map(([key, value]) => {
    const image = key === "release" && isObject(value) ? value["image"] : undefined; // the readable part of a release
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
    ...(rows.length > 0 ? ["| output | |", "|---|---|", ...rows, ""] : []),
    ...(lines.length > 0 ? ["Changes:", "", ...lines] : ["Nothing changed."]),
    "",
  ].join("\n");
}

/** Addresses reachable from outside: of an App, or a name with a certificate. */
function addressOf({ type, id, outputs }: StateResource): string[] {
  const [app = "", last = ""] = id.split("/");
  if (type === "IpAssignment" && ["v4", "v6", "shared_v4"].includes(String(outputs["type"])))
    return [`\`${last}\`, which is the ${String(outputs["type"])} of ${app}`];
  return type === "AcmeCertificate" || type === "CustomCertificate" ? [`https://${last} of ${app}`] : [];
}

// `pulumi-machines environment`: temporary stacks, one for each pull request: created like another one, and deleted in
// time.
import { readFileSync, writeFileSync } from "node:fs";
import type * as automation from "@pulumi/pulumi/automation/index.js";
import { didYouMean } from "../../api/didYouMean.ts";
import { isObject, parseDuration } from "../../api/schema.ts";
import { bareId } from "../../api/names.ts";
import { configKeys } from "../../provider/client/config.ts";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { quoted } from "../orphans/importFile.ts";
import { exportStack, listStacks, pulumi } from "../pulumi.ts";
import { listIn, readState, type StateResource } from "../stackState.ts";
import { untilItEnds, type Streams } from "../terminal.ts";
import { lastUpdate } from "./history.ts";
import { costsOf, stepsOf, type PreviewStep } from "./plan.ts";
import {
  configOf,
  environmentTag,
  fileOf,
  markIn,
  openProject,
  outputsOf,
  projectKeys,
  reasonOf,
  setConfig,
  tagsOf,
  telling,
  withoutLines,
  type Mark,
  type Project,
  type Stack,
  type StackConfig,
} from "./stacks.ts";

/** Options for the creation of an environment. */
export interface CreateOptions {
  /** Stack whose configuration it copies. */
  readonly template: string;
  /** How long it may exist, for example `48h`. */
  readonly expires: string;
  /** Additional configuration, `key=value`. */
  readonly set?: readonly string[];
  /** Additional secret configuration, `key=VARIABLE`: the value is that of an environment variable. */
  readonly setSecret?: readonly string[];
  /** Whether it may set keys that neither the template nor the project has. */
  readonly allowNewKeys?: true;
  /** File for a summary in Markdown, for example for a comment. */
  readonly summary?: string;
}

/** Its name is checked before anything is asked or changed. @throws MachinesError `invalid-input` */
function requireName(name: string): void {
  const own = bareId(name);
  if (!/^[A-Za-z0-9._-]{1,100}$/.test(own))
    throw new MachinesError(
      "invalid-input",
      `${JSON.stringify(own)} cannot be the name of an environment: it takes up to 100 letters, digits, hyphens, underscores and periods, such as pr-7`,
    );
}

/** Creates an environment, or brings it up to date and extends its life. */
export async function create(
  name: string,
  options: CreateOptions,
  { out, err }: Streams,
  now: Date = new Date(),
): Promise<void> {
  requireName(name);
  const nanoseconds = parseDuration(options.expires);
  if (nanoseconds === undefined || nanoseconds <= 0)
    throw new MachinesError("invalid-input", `--expires ${options.expires}: must be a time such as 48h`);
  const project = await openProject();
  if (name === options.template)
    throw new MachinesError("invalid-input", `${name} is the template: an environment needs a name of its own`);
  const template = await project.stack(options.template);
  const copied = await configOf(template);
  const given = settingsOf(options, copied, project.name);
  if (!options.allowNewKeys) {
    const providers = Object.keys(configKeys).map((key) => `machines:${key}`);
    const known = [...Object.keys(copied), ...(await projectKeys(template)), ...providers];
    requireKnown(
      given.map(({ key }) => key),
      known,
      options.template,
    );
  }
  const until = new Date(now.getTime() + nanoseconds / 1e6).toISOString();
  const before = await environment(project, name, "choose another name");
  const created = before?.mark?.created ?? now.toISOString();
  const mark: Mark = { template: options.template, created, expires: until };
  const stack = before?.stack ?? (await project.newStack(name, { secretsProvider: await secretsProviderOf(template) }));
  try {
    // First of all: a stack that could not be finished is one that can be destroyed.
    await pulumi(["stack", "tag", "set", environmentTag, JSON.stringify(mark)], name);
  } catch (error) {
    // If it cannot be removed, the next creation takes it, because it is untouched.
    if (before === undefined) await removeStack(stack).catch(() => undefined);
    throw error;
  }
  // What an earlier run has set, and this one does not: the same command makes the same environment on every computer.
  const kept = new Set([...Object.keys(copied), ...given.map(({ key }) => key)]);
  const outdated = Object.keys(before === undefined ? {} : await configOf(stack)).filter((key) => !kept.has(key));
  if (outdated.length > 0) await pulumi(["config", "rm-all", ...outdated], name);
  await pulumi(["config", "cp", "--dest", name], options.template);
  for (const { key, ...setting } of given) await setConfig(stack, key, setting);
  const events: automation.EngineEvent[] = [];
  try {
    const onEvent = (event: automation.EngineEvent): void => void events.push(event);
    await untilItEnds(() => stack.up({ ...telling(out), onEvent }));
  } catch (error) {
    throw new MachinesError(
      "refused",
      `environment ${name} is not finished: ${reasonOf(error, stack)}\nRun the same command again to continue, or \`npx pulumi-machines environment destroy ${quoted(name)}\` to delete what it has created.`,
    );
  }
  const { resources } = readState(await exportStack(stack.name), `the state of ${name}`);
  const text = summaryOf(name, until, { steps: stepsOf(events), outputs: await outputsOf(stack), resources });
  if (options.summary === undefined) out(`\n${text}`);
  else writeFileSync(options.summary, text);
  const hindrance = hindranceIn(resources);
  if (hindrance !== undefined) err(`Environment ${name} cannot be destroyed: ${hindrance}`);
}

/** Why the environment cannot be destroyed, known before anything is deleted. */
function hindranceIn(resources: readonly StateResource[]): string | undefined {
  const clusters = resources
    .filter(({ type, inputs }) => type === "PostgresCluster" && inputs["deletionProtection"] !== false)
    .map(({ name }) => name);
  return clusters.length === 0
    ? undefined
    : `the PostgresCluster ${clusters.join(", ")} is protected. Let the program set deletionProtection: false in environments, for example by a setting, and run \`environment create\` again.`;
}

/** Destroys an environment with everything it created, and removes its stack. */
export async function destroy(name: string, { out }: Streams): Promise<void> {
  const project = await openProject();
  const found = await environment(project, name, "it is not destroyed");
  if (found === undefined) out(`There is no environment ${name}.\n`);
  else await remove(found, out);
}

async function remove({ stack, mark }: Environment, out: Streams["out"]): Promise<void> {
  if (mark !== undefined) await removeContent(stack, mark, out);
  await removeStack(stack);
  out(`Environment ${stack.name} is deleted, with everything it created.\n`);
}

async function removeContent(stack: Stack, mark: Mark, out: Streams["out"]): Promise<void> {
  if ((await fileOf(stack)) === undefined) await configure(stack, mark);
  const { resources } = readState(await exportStack(stack.name), `the state of ${stack.name}`);
  const hindrance = hindranceIn(resources);
  if (hindrance !== undefined)
    throw new MachinesError("refused", `environment ${stack.name} still exists, and nothing was deleted: ${hindrance}`);
  try {
    const lines = withoutLines(out, removalHint);
    await untilItEnds(() => stack.destroy(telling(lines.write)).finally(lines.end));
  } catch (error) {
    throw new MachinesError("refused", `environment ${stack.name} still exists: ${reasonOf(error, stack)}`);
  }
}

/** What the CLI says after `destroy`: to remove the stack by hand, which this command does. */
const removalHint = /^The resources in the stack have been deleted, but|^If you want to remove the stack completely/;

/** Removes a stack. The CLI then selects none, so the one that was selected is selected again. */
async function removeStack({ name }: Stack): Promise<void> {
  const selected = (await listStacks()).find(({ isSelected }) => isSelected)?.name;
  await pulumi(["stack", "rm", "--yes"], name);
  if (selected !== undefined && bareId(selected) !== bareId(name)) await pulumi(["stack", "select"], selected);
}

/**
 * Destroys the expired environments. ^C ends it after the one that is being destroyed.
 * @returns 1 if one of them could not be destroyed; the others are destroyed nevertheless
 */
export const sweep = (streams: Streams, now: Date = new Date()): Promise<0 | 1> =>
  untilItEnds((interrupt) => sweepUntil(interrupt, streams, now));

async function sweepUntil(interrupt: AbortSignal, streams: Streams, now: Date): Promise<0 | 1> {
  const project = await openProject();
  let failed = false;
  let swept = 0;
  for (const name of (await project.stacks()).keys()) {
    try {
      const stack = await project.stack(name);
      const mark = await lookUp(stack);
      if (interrupt.aborted) {
        streams.err(`Interrupted: stack ${name} and those after it are left as they are.`);
        return 1;
      }
      if (mark === undefined || Date.parse(mark.expires) > now.getTime()) continue;
      await remove({ stack, mark }, streams.out);
      swept += 1;
    } catch (error) {
      failed = true;
      streams.err(`Stack ${name} could not be read or destroyed: ${messageOf(error)}`);
    }
  }
  if (swept === 0 && !failed) streams.out(`No environment of the project ${project.name} has expired.\n`);
  return failed ? 1 : 0;
}

/** A stack that is an environment. */
interface Environment {
  readonly stack: Stack;
  /** Undefined if its creation ended before it was marked: then it contains nothing. */
  readonly mark: Mark | undefined;
}

/**
 * The environment, if it exists.
 * @param otherwise what follows for a stack that is none
 * @throws MachinesError if the stack is not an environment, so that it must not be changed or destroyed
 */
async function environment(project: Project, name: string, otherwise: string): Promise<Environment | undefined> {
  const stack = await project.find(name);
  if (stack === undefined) return undefined;
  const mark = await lookUp(stack);
  if (mark === undefined && !(await isUntouched(stack)))
    throw new MachinesError(
      "refused",
      `stack ${name} is no environment, because \`environment create\` did not create it: ${otherwise}`,
    );
  return { stack, mark };
}

/** Whether a stack was created, and nothing else: as a creation leaves it that was killed before it marked the stack. */
async function isUntouched(stack: Stack): Promise<boolean> {
  const file = await fileOf(stack);
  // The CLI itself writes how secrets are encrypted.
  if (file !== undefined && /^\s*"?(config|environment)"?\s*:/m.test(readFileSync(file, "utf8"))) return false;
  if ((await lastUpdate(stack.name)) !== undefined) return false;
  const { deployment } = JSON.parse(await exportStack(stack.name)) as { readonly deployment?: unknown };
  const has = (list: string): boolean => isObject(deployment) && listIn(deployment, list).length > 0;
  return !has("resources") && !has("pending_operations");
}

const lookUp = async (stack: Stack): Promise<Mark | undefined> => markIn(await tagsOf(stack));

/** If another computer created it, as in CI, its configuration is that of its last deployment, or of its template. */
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

/** Additional configuration. Values of secrets are not in the arguments, which CI and `ps` show. */
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
    if (value === undefined || value === "") throw new MachinesError("invalid-input", missingVariable(key, variable));
    return { key, value, isSecret: true };
  });
  return [...plain, ...secret];
}

/** A user may have written the secret itself, so only what looks like a name of a variable is repeated. */
const missingVariable = (key: string, variable: string): string =>
  /^[A-Z][A-Z0-9_]{0,63}$/.test(variable)
    ? `--set-secret: the environment has no variable ${variable}, from which ${key} takes its value; set it, for example with \`export ${variable}=…\``
    : `--set-secret: the environment has no such variable for ${key}; --set-secret ${key}=VARIABLE takes the name of one, not the value`;

/**
 * The program reads a misspelt key nowhere, so the environment would silently run with the value of the template.
 * @throws MachinesError `invalid-input`
 */
function requireKnown(keys: readonly string[], known: readonly string[], template: string): void {
  const problems = keys
    .filter((key) => !known.includes(key))
    .map((key) => {
      const meant = didYouMean(key, known);
      return `neither ${template} nor Pulumi.yaml has the configuration ${key}${meant === undefined ? "" : `; did you mean ${meant}?`}`;
    });
  if (problems.length > 0)
    throw new MachinesError(
      "invalid-input",
      `${problems.join("\n")}\nNothing was changed. If the program reads it, declare it in Pulumi.yaml, or add --allow-new-keys.`,
    );
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

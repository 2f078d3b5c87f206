// The stacks of a project, by Pulumi's Automation API, and the releases they run and are pinned to.
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type * as automation from "@pulumi/pulumi/automation/index.js";
import { z } from "zod";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { bareId } from "../../api/names.ts";
import { validated } from "../../api/validated.ts";
import { didYouMean } from "../../api/didYouMean.ts";
import { withoutCount } from "./engine.ts";
import { listStacks, noPulumi, pulumi, setupProblem, SetupError } from "../pulumi.ts";

/** A stack, as the Automation API describes it. */
export type Stack = automation.Stack;

const record = z.looseObject({
  image: z.string(),
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  settings: z.record(z.string(), z.string()),
  hash: z.string(),
  stack: z.string(),
  machines: z.array(z.string()).min(1),
  promotedBy: z.string().optional(),
  promotedAt: z.string().optional(),
  pending: z.boolean().optional(),
  goingBack: z.boolean().optional(),
  rolledBack: z.boolean().optional(),
});

/** The release of a stack, as `runBy()` of a Release reports it. */
export type ReleaseRecord = z.infer<typeof record>;

/** The number of releases that a stack remembers, including the pinned one. */
const remembered = 10;

/** A project. */
export interface Project {
  readonly name: string;
  /** Its stacks by name, with the time of the last deployment, in RFC 3339. */
  readonly stacks: () => Promise<ReadonlyMap<string, string | undefined>>;
  /** @throws MachinesError if no such stack exists */
  readonly stack: (name: string) => Promise<Stack>;
  /** The same; undefined if there is none. */
  readonly find: (name: string) => Promise<Stack | undefined>;
  /** Creates a stack that does not exist yet. */
  readonly newStack: (name: string, options?: { readonly secretsProvider?: string | undefined }) => Promise<Stack>;
}

/** The project in this folder. Stacks are read and changed without being selected. @throws MachinesError if there is none */
export async function openProject(): Promise<Project> {
  const folder = process.cwd();
  if (!["Pulumi.yaml", "Pulumi.yml", "Pulumi.json"].some((name) => existsSync(join(folder, name))))
    throw new SetupError(
      `there is no Pulumi project in ${folder}: run this in the folder of Pulumi.yaml, or name the folder with --cwd`,
    );
  // Loaded when it is needed: it takes as long as everything else together.
  const automation = await import("@pulumi/pulumi/automation/index.js");
  const workspace = await automation.LocalWorkspace.create({ workDir: folder }).catch((error: unknown) => {
    const text = messageOf(error);
    throw new SetupError(
      text.includes("ENOENT")
        ? noPulumi
        : `\`pulumi version\` failed, so the Pulumi CLI cannot be used: ${lastLine(text) ?? "it said nothing"}`,
      error,
    );
  });
  // The API selects the stack that it works with and leaves it selected, so the user's next `pulumi up` would use it.
  // Its outputs also show whether it exists.
  workspace.selectStack = async (name) => void (await pulumi(["stack", "output"], name));
  const { name } = await workspace.projectSettings();
  const stacks = async (): Promise<ReadonlyMap<string, string | undefined>> =>
    new Map((await listStacks()).map(({ name: found, updatedAt }) => [found, updatedAt]));
  const find = async (wanted: string): Promise<Stack | undefined> => {
    try {
      return await automation.Stack.select(wanted, workspace);
    } catch (error) {
      if (/no stack named/.test(messageOf(error))) return undefined;
      throw error;
    }
  };
  const stack = async (wanted: string): Promise<Stack> => {
    const found = await find(wanted);
    if (found !== undefined) return found;
    const names = [...(await stacks()).keys()];
    const near = didYouMean(wanted, names);
    const meant = near === undefined ? "" : `did you mean ${near}? `;
    const others = names.join(", ") || "none yet";
    throw new MachinesError("invalid-input", `there is no stack ${wanted}; ${meant}the project ${name} has ${others}`);
  };
  return {
    name,
    stacks,
    stack,
    find,
    async newStack(stackName, { secretsProvider } = {}) {
      const provider = secretsProvider === undefined ? [] : ["--secrets-provider", secretsProvider];
      await pulumi(["stack", "init", stackName, "--no-select", ...provider], undefined);
      return stack(stackName);
    },
  };
}

const lastLine = (text: string): string | undefined =>
  text
    .split("\n")
    .map((line) => line.replace(/^\s*err\?: Error: /, "").trim())
    .findLast((line) => line !== "");

/** The file of a stack's configuration; undefined where there is none. */
export async function fileOf(stack: Stack): Promise<string | undefined> {
  const { workspace } = stack;
  type Settings = automation.ProjectSettings & { readonly stackConfigDir?: string };
  const { stackConfigDir = "." }: Settings = await workspace.projectSettings();
  const files = ["yaml", "yml", "json"].map((ending) =>
    join(workspace.workDir, stackConfigDir, `Pulumi.${bareId(stack.name)}.${ending}`),
  );
  return files.find((file) => existsSync(file));
}

/** Sets a stack's configuration by its full key, in its own file or in another one. */
export async function setConfig(
  stack: Stack,
  key: string,
  { value, isSecret = false, file }: { readonly value: string; readonly isSecret?: boolean; readonly file?: string },
): Promise<void> {
  const where = file === undefined ? [] : ["--config-file", file];
  await pulumi(["config", "set", key, isSecret ? "--secret" : "--plaintext", ...where], stack.name, { input: value });
}

/** Outputs of a stack, secrets in them masked. */
export const outputsOf = async (stack: Stack): Promise<Readonly<Record<string, unknown>>> =>
  JSON.parse(await pulumi(["stack", "output", "--json"], stack.name)) as Record<string, unknown>;

/** The release that a stack reports; undefined if it was never deployed, or reports none. */
export async function runsNow(stack: Stack): Promise<ReleaseRecord | undefined> {
  const { release } = await outputsOf(stack);
  if (release === undefined) return undefined;
  // Otherwise it would be written into the next stack's configuration in plain text.
  if (JSON.stringify(release).includes("[secret]"))
    throw new MachinesError(
      "refused",
      `the release of stack ${stack.name} contains a secret: secrets are not promoted, set them in each stack with AppSecrets`,
    );
  const parsed = validated(record, release);
  if (!parsed.success)
    throw new MachinesError(
      "invalid-input",
      `the output release of stack ${stack.name} is not what runBy() of a Release returns: ${parsed.error.issues[0]?.path.join(".") ?? ""} ${parsed.error.issues[0]?.message ?? ""}`,
    );
  return parsed.data;
}

/** A stack's configuration by full keys; secrets have no value here. */
export type StackConfig = Readonly<Record<string, { readonly value?: string; readonly secret?: boolean }>>;

/** The configuration of a stack. */
export const configOf = async (stack: Stack): Promise<StackConfig> =>
  JSON.parse(await pulumi(["config", "--json"], stack.name)) as StackConfig;

/** Full keys of the configuration that Pulumi.yaml declares or sets for all stacks. */
export async function projectKeys({ workspace }: Stack): Promise<string[]> {
  const { name, config = {} } = await workspace.projectSettings();
  return Object.keys(config).map((key) => (key.includes(":") ? key : `${name}:${key}`));
}

/** The stack that a stack takes its releases from, where its configuration names it as in docs/promotion.md. */
export const stackBefore = async (stack: Stack): Promise<string | undefined> =>
  (await configOf(stack))[`${(await stack.workspace.projectSettings()).name}:before`]?.value;

/** Key of the configuration with the releases to which a stack was pinned, the current one first. */
const releasesKey = async ({ workspace }: Stack): Promise<string> =>
  `${(await workspace.projectSettings()).name}:releases`;

async function pinnedTo(stack: Stack): Promise<ReleaseRecord[]> {
  const text = (await configOf(stack))[await releasesKey(stack)]?.value;
  if (text === undefined) return [];
  try {
    return z.array(record).parse(JSON.parse(text));
  } catch {
    throw new MachinesError(
      "configuration",
      `the configuration releases of stack ${stack.name} cannot be read: restore the previous Pulumi.${bareId(stack.name)}.yaml`,
    );
  }
}

/** The promotion status of a stack. */
export interface Standing {
  /** Its release, as its last successful update reported it. */
  readonly current: ReleaseRecord | undefined;
  /** The release that its configuration pins. */
  readonly pinned: ReleaseRecord | undefined;
  /** Its releases so far, the newest first, including the current one. */
  readonly history: readonly ReleaseRecord[];
  /** Whether a promotion or a rollback was started and not finished, here or on another computer. */
  readonly isUnderWay: boolean;
  /** The promotion or rollback that the tag names, whichever computer started it. */
  readonly change: Change | undefined;
}

/** A promotion or a rollback, by the release that it changes to. */
type Change = Pick<ReleaseRecord, "digest" | "hash" | "goingBack">;

/** Tag that marks a stack as an environment, which is temporary. */
export const environmentTag = "pulumi-machines:environment";

/** Content of the tag of an environment. Only stacks that have it are ever changed or destroyed, from whatever computer. */
const markOf = z.object({
  /** Stack that it is created like. */
  template: z.string(),
  /** When it was created, in RFC 3339. */
  created: z.iso.datetime(),
  /** Until when it may live, in RFC 3339. */
  expires: z.iso.datetime(),
});

/** The facts about an environment. */
export type Mark = z.infer<typeof markOf>;

/** The facts about an environment from the tags of its stack; undefined for a stack that is none. */
export function markIn({ [environmentTag]: text }: Tags): Mark | undefined {
  return text === undefined ? undefined : markOf.parse(JSON.parse(text));
}

/** Tag of a stack during a promotion or a rollback. It informs computers whose files do not know of it. */
const underWay = "pulumi-machines:promotion";

const changeText = ({ digest, hash, goingBack }: Change): string =>
  `${goingBack ? "rollback" : "promotion"} ${digest} ${hash}`;

/** What the tag says. Earlier versions wrote only a digest there, which is read as the promotion of an unknown release. */
function changeIn(text: string): Change {
  const [kind, digest = "", hash = ""] = text.split(" ");
  return { digest, hash, goingBack: kind === "rollback" };
}

/** The promotion status of a stack, from its outputs, its configuration and its tags, which are read if not given. */
export async function standingOf(stack: Stack, given?: Tags): Promise<Standing> {
  const [current, releases, tags] = await Promise.all([runsNow(stack), pinnedTo(stack), given ?? tagsOf(stack)]);
  const [pinned] = releases;
  const done = releases.filter(({ pending, goingBack }) => !pending && !goingBack);
  const text = tags[underWay];
  const change = text === undefined ? undefined : changeIn(text);
  const at = done.findIndex((one) => isSame(one, current));
  // The file may be older than the release, which another computer promoted and which is not in this folder yet. It may also
  // have the release in an earlier place, if that is promoted again.
  const isNew = at < 0 || (at > 0 && change?.goingBack === false && isSame(change, current));
  const history = current !== undefined && isNew ? [current, ...done] : done.slice(Math.max(at, 0));
  const isUnderWay = pinned?.pending === true || pinned?.goingBack === true || change !== undefined;
  return { current, pinned, history, isUnderWay, change };
}

/** Pins a stack to the first of these releases, and records the others. */
export const pin = async (stack: Stack, releases: readonly ReleaseRecord[]): Promise<void> =>
  setConfig(stack, await releasesKey(stack), { value: JSON.stringify(releases.slice(0, remembered)) });

/**
 * Calls back with a file of the stack's configuration pinned to a release. The stack itself is not changed, even if this is
 * killed.
 */
export async function asIfPinned<T>(
  stack: Stack,
  release: ReleaseRecord,
  work: (configFile: string) => Promise<T>,
): Promise<T> {
  const own = await fileOf(stack);
  const folder = mkdtempSync(join(tmpdir(), "pulumi-machines-promote-"));
  try {
    const file = join(folder, own === undefined ? "Pulumi.yaml" : basename(own));
    if (own !== undefined) copyFileSync(own, file);
    await setConfig(stack, await releasesKey(stack), { value: JSON.stringify([release]), file });
    return await work(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Records in the backend that a stack is changing to a release. */
export const begin = async (stack: Stack, release: ReleaseRecord): Promise<void> =>
  void (await pulumi(["stack", "tag", "set", underWay, changeText(release)], stack.name));

/** Records that the change has ended. */
export const end = async (stack: Stack): Promise<void> =>
  void (await pulumi(["stack", "tag", "rm", underWay], stack.name));

/** Tags of a stack, stored in the backend, so that all its users see the same. */
export type Tags = Readonly<Record<string, string>>;

/** The tags of a stack. */
export const tagsOf = async (stack: Pick<Stack, "name">): Promise<Tags> =>
  JSON.parse(await pulumi(["stack", "tag", "ls", "--json"], stack.name)) as Tags;

/** Whether two releases are the same image with the same configuration. */
export const isSame = (a: Change | undefined, b: Change | undefined): boolean =>
  a !== undefined && b !== undefined && a.digest === b.digest && a.hash === b.hash;

/** A short reason why an operation on a stack failed: the CLI has already printed the details. */
export function reasonOf(error: unknown, { name }: Stack): string {
  const text = messageOf(error);
  if (text.includes("the stack is currently locked"))
    return `${name} is locked by another run, or by one that was killed. When none is running, \`pulumi cancel --stack ${name}\` unlocks it.`;
  const setup = setupProblem(text);
  if (setup) return setup.message;
  const wrongLevel = /parsing enforcement level for "[^\n]*/.exec(text)?.[0];
  if (wrongLevel !== undefined)
    return `--policy-pack-config: ${wrongLevel}; the levels are advisory, mandatory, remediate and disabled`;
  const errors = withoutCount(text)
    .split("\n")
    .filter((line) => line.includes("error: ") && !/ failed\s*$/.test(line));
  return errors.at(-1)?.trim() ?? "see above";
}

/** Makes the CLI print its progress. */
export const telling = (out: (text: string) => void) => ({ onOutput: out, onError: out, color: "never" }) as const;

/** Passes on text without some of its lines. It may come in any pieces, so the last line waits for its end. */
export function withoutLines(out: (text: string) => void, unwanted: RegExp) {
  let rest = "";
  const pass = (text: string): void => {
    const kept = text.split(/(?<=\n)/).filter((line) => !unwanted.test(line));
    if (kept.length > 0) out(kept.join(""));
  };
  return {
    write(this: void, text: string): void {
      const all = rest + text;
      const end = all.lastIndexOf("\n") + 1;
      rest = all.slice(end);
      pass(all.slice(0, end));
    },
    end(this: void): void {
      pass(rest);
      rest = "";
    },
  };
}

// The stacks of a project, by Pulumi's Automation API, and the releases they run and are pinned to.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type * as automation from "@pulumi/pulumi/automation/index.js";
import { z } from "zod";
import { MachinesError, messageOf } from "../../core/errors.ts";
import { pulumi } from "../pulumi.ts";

/** A stack, as the Automation API has it. */
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
});

/** What a stack runs, as `runBy()` of a Release tells it. */
export type ReleaseRecord = z.infer<typeof record>;

/** How many releases a stack remembers, the one it is pinned to included. */
const remembered = 10;

/** A project. */
export interface Project {
  readonly name: string;
  /** Its stacks by name, with when each was last deployed, in RFC 3339. */
  readonly stacks: () => Promise<ReadonlyMap<string, string | undefined>>;
  /** @throws MachinesError where there is no such stack */
  readonly stack: (name: string) => Promise<Stack>;
  /** The same; undefined where there is none. */
  readonly find: (name: string) => Promise<Stack | undefined>;
  /** Makes a stack that is not there yet. */
  readonly newStack: (name: string, options?: { readonly secretsProvider?: string | undefined }) => Promise<Stack>;
}

/** The project in this folder. Stacks are looked at and changed without being selected. @throws MachinesError where there is none */
export async function openProject(): Promise<Project> {
  const folder = process.cwd();
  if (!["Pulumi.yaml", "Pulumi.yml", "Pulumi.json"].some((name) => existsSync(join(folder, name))))
    throw new MachinesError("invalid-input", `there is no Pulumi project in ${folder}: start this beside Pulumi.yaml`);
  // Loaded when it is needed: it takes as long as everything else together.
  const automation = await import("@pulumi/pulumi/automation/index.js");
  const workspace = await automation.LocalWorkspace.create({ workDir: folder });
  // The API selects the stack it works with, and would leave it so: the user's next `pulumi up` would go there. Its outputs
  // tell as well whether it is there.
  workspace.selectStack = async (name) => void (await pulumi(["stack", "output"], name));
  const { name } = await workspace.projectSettings();
  const stacks = async (): Promise<ReadonlyMap<string, string | undefined>> =>
    new Map((await workspace.listStacks()).map((found) => [found.name, found.lastUpdate]));
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
    const others = [...(await stacks()).keys()].join(", ") || "none yet";
    throw new MachinesError("invalid-input", `there is no stack ${wanted}; the project ${name} has ${others}`);
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

/** Name of a stack without its organization and project, as its file has it. */
export const bareName = ({ name }: Stack): string => name.slice(name.lastIndexOf("/") + 1);

/** Settings of a stack in its file; undefined where there is none. @throws MachinesError for a file that cannot be read */
export async function settingsOf(stack: Stack): Promise<automation.StackSettings | undefined> {
  try {
    return await stack.workspace.stackSettings(stack.name);
  } catch (error) {
    const message = messageOf(error);
    if (message.includes("failed to find stack settings file")) return undefined;
    throw new MachinesError("configuration", `the configuration file of stack ${stack.name} cannot be read: ${message}`);
  }
}

/** Outputs of a stack, secrets in them masked. */
export const outputsOf = async (stack: Stack): Promise<Readonly<Record<string, unknown>>> =>
  JSON.parse(await pulumi(["stack", "output", "--json"], stack.name)) as Record<string, unknown>;

/** What a stack tells that it runs; undefined where it was never deployed, or tells nothing. */
export async function runsNow(stack: Stack): Promise<ReleaseRecord | undefined> {
  const { release } = await outputsOf(stack);
  if (release === undefined) return undefined;
  // It would be written into the configuration of the next stack, in the clear.
  if (JSON.stringify(release).includes("[secret]"))
    throw new MachinesError(
      "refused",
      `the release of stack ${stack.name} holds a secret: secrets do not travel, set them in each stack with AppSecrets`,
    );
  const parsed = record.safeParse(release);
  if (!parsed.success)
    throw new MachinesError(
      "invalid-input",
      `the output release of stack ${stack.name} is not what runBy() of a Release answers: ${parsed.error.issues[0]?.path.join(".") ?? ""} ${parsed.error.issues[0]?.message ?? ""}`,
    );
  return parsed.data;
}

/** Releases a stack was pinned to, the one it is pinned to first. They are in its configuration, as `releases`. */
export async function pinnedTo(stack: Stack): Promise<ReleaseRecord[]> {
  const all = await stack.getAllConfig();
  const { name } = await stack.workspace.projectSettings();
  const text = all[`${name}:releases`]?.value;
  if (text === undefined) return [];
  try {
    return z.array(record).parse(JSON.parse(text));
  } catch {
    throw new MachinesError(
      "configuration",
      `the configuration releases of stack ${stack.name} cannot be read: take Pulumi.${stack.name}.yaml as it was before`,
    );
  }
}

/** Pins a stack to the first of these releases, and has it remember the others. */
export async function pin(stack: Stack, releases: readonly ReleaseRecord[]): Promise<void> {
  const { name } = await stack.workspace.projectSettings();
  await stack.setConfig(`${name}:releases`, { value: JSON.stringify(releases.slice(0, remembered)) });
}

/**
 * Calls back with a file of the stack's configuration as if it were pinned to these releases. The stack is left as it is, also
 * when this is killed in the middle.
 */
export async function asIfPinned<T>(
  stack: Stack,
  releases: readonly ReleaseRecord[],
  work: (configFile: string) => Promise<T>,
): Promise<T> {
  const { name } = await stack.workspace.projectSettings();
  const { config, secretsProvider, encryptedKey, encryptionSalt, ...others } = (await settingsOf(stack)) ?? {};
  const folder = mkdtempSync(join(tmpdir(), "pulumi-machines-promote-"));
  try {
    const file = join(folder, `Pulumi.${bareName(stack)}.yaml`);
    const settings = {
      ...others,
      secretsprovider: secretsProvider,
      encryptedkey: encryptedKey,
      encryptionsalt: encryptionSalt,
      config: { ...config, [`${name}:releases`]: JSON.stringify(releases) },
    };
    writeFileSync(file, JSON.stringify(settings), { mode: 0o600 }); // JSON is YAML
    return await work(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Whether what a stack is pinned to was not carried through: a promotion, or a way back. */
export const isUnderWay = (release: ReleaseRecord | undefined): boolean =>
  release?.pending === true || release?.goingBack === true;

/** Whether two releases are the same image with the same configuration. */
export const isSame = (a: ReleaseRecord | undefined, b: ReleaseRecord | undefined): boolean =>
  a !== undefined && b !== undefined && a.digest === b.digest && a.hash === b.hash;

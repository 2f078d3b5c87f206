// The stacks of a project, by Pulumi's Automation API, and the releases they run and are pinned to.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type * as automation from "@pulumi/pulumi/automation/index.js";
import { z } from "zod";
import { MachinesError, messageOf } from "../../core/errors.ts";

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
});

/** What a stack runs, as `runBy()` of a Release tells it. */
export type ReleaseRecord = z.infer<typeof record>;

/** How many releases a stack remembers, the one it is pinned to included. */
const remembered = 10;

/** A project. */
export interface Project {
  readonly name: string;
  /** Names of its stacks. */
  readonly stacks: () => Promise<string[]>;
  /** @throws MachinesError where there is no such stack */
  readonly stack: (name: string) => Promise<Stack>;
  /** Makes a stack that is not there yet. */
  readonly newStack: (name: string) => Promise<Stack>;
}

/** The project in a folder. @throws MachinesError where there is none */
export async function openProject(folder: string): Promise<Project> {
  if (!["Pulumi.yaml", "Pulumi.yml", "Pulumi.json"].some((name) => existsSync(join(folder, name))))
    throw new MachinesError("invalid-input", `there is no Pulumi project in ${folder}: start this beside Pulumi.yaml`);
  // Loaded when it is needed: it takes as long as everything else together.
  const { LocalWorkspace } = await import("@pulumi/pulumi/automation/index.js");
  const workspace = await LocalWorkspace.create({ workDir: folder });
  const { name } = await workspace.projectSettings();
  return {
    name,
    stacks: async () => (await workspace.listStacks()).map((stack) => stack.name),
    newStack: async (stackName) => LocalWorkspace.createStack({ stackName, workDir: folder }),
    async stack(stackName) {
      try {
        return await LocalWorkspace.selectStack({ stackName, workDir: folder });
      } catch (error) {
        throw new MachinesError("invalid-input", `stack ${stackName} cannot be used: ${lastLine(error)}`, {
          cause: error,
        });
      }
    },
  };
}

const lastLine = (error: unknown): string =>
  messageOf(error)
    .split("\n")
    .findLast((line) => /error: /.test(line))
    ?.replace(/^.*error: /, "") ??
  messageOf(error).split("\n")[0] ??
  "";

/** What a stack tells that it runs; undefined where it was never deployed, or tells nothing. */
export async function runsNow(stack: Stack): Promise<ReleaseRecord | undefined> {
  const { release } = await stack.outputs();
  if (release === undefined) return undefined;
  // It would be written into the configuration of the next stack, in the clear.
  if (release.secret)
    throw new MachinesError(
      "refused",
      `the release of stack ${stack.name} holds a secret: secrets do not travel, set them in each stack with AppSecrets`,
    );
  const parsed = record.safeParse(release.value);
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
  const parsed = z.array(record).safeParse(JSON.parse(text) as unknown);
  if (!parsed.success)
    throw new MachinesError("configuration", `the configuration releases of stack ${stack.name} holds no releases`);
  return parsed.data;
}

/** Pins a stack to the first of these releases, and has it remember the others; none unpins it. */
export async function pin(stack: Stack, releases: readonly ReleaseRecord[]): Promise<void> {
  const { name } = await stack.workspace.projectSettings();
  if (releases.length === 0) await stack.removeConfig(`${name}:releases`);
  else await stack.setConfig(`${name}:releases`, { value: JSON.stringify(releases.slice(0, remembered)) });
}

/** Whether two releases are the same image with the same configuration. */
export const isSame = (a: ReleaseRecord | undefined, b: ReleaseRecord | undefined): boolean =>
  a !== undefined && b !== undefined && a.digest === b.digest && a.hash === b.hash;

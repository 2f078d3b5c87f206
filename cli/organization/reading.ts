// Reads an organization, and the project in this folder whose stack may hold some of it already.
import { existsSync, readFileSync } from "node:fs";
import { clientFor } from "../../provider/client/connect.ts";
import { readConfig, type Config } from "../../provider/client/config.ts";
import { MachinesError } from "../../provider/client/errors.ts";
import { configuredOrganizationProblem } from "../../provider/core/organization.ts";
import { exportStack, listStacks, stackConfig } from "../pulumi.ts";
import { readState, type StackState } from "../stackState.ts";
import { discover, type Discovery } from "./discovery.ts";
import { languageOf } from "./folder.ts";
import type { LanguageName } from "./languages.ts";
import type { TerraformState } from "./terraform.ts";

/** What to read. */
export interface Selection {
  /** Slug of the organization; that of the stack or of the environment when left out. */
  readonly org?: string | undefined;
  readonly app?: readonly string[] | undefined;
  readonly snapshots?: boolean | undefined;
  /** What Terraform manages, if only that is wanted. */
  readonly terraform?: TerraformState | undefined;
}

/** The project in this folder. */
export interface Project {
  /** The language of the project in this folder; undefined if there is none, or in another language. */
  readonly language: LanguageName | undefined;
  readonly exists: boolean;
  readonly state: StackState;
  readonly config: ReadonlyMap<string, string>;
}

/** Milliseconds that reading the organization may take. */
const longestLook = 1_800_000;

const nothing: StackState = { stack: undefined, project: undefined, resources: [], providers: [], isDynamic: false };

/** The project in this folder, with the state of its stack, if there are any. */
export async function projectHere(stack: string | undefined): Promise<Project> {
  const exists = existsSync("Pulumi.yaml");
  const language = exists ? languageOf(readFileSync("Pulumi.yaml", "utf8")) : undefined;
  if (!exists && stack !== undefined)
    throw new MachinesError("invalid-input", `--stack ${stack}: there is no Pulumi project in ${process.cwd()}`);
  if (!exists || (stack === undefined && !(await listStacks()).some(({ isSelected }) => isSelected)))
    return { exists, language, state: nothing, config: new Map() };
  const state = readState(await exportStack(stack), "the output of `pulumi stack export`");
  return { exists, language, state, config: await stackConfig(stack) };
}

/**
 * Everything in the organization that a program can declare.
 * @throws MachinesError `invalid-input` if there is nothing, or no such organization or App
 */
export async function readOrganization(
  project: Project,
  { org, app, snapshots, terraform }: Selection,
  warn: (message: string) => void,
): Promise<{ readonly discovery: Discovery; readonly config: Config }> {
  const config = readConfig(
    (key) => (key === "organization" ? org : undefined) ?? project.config.get(key),
    process.env,
  );
  const api = clientFor(config, warn);
  try {
    const problem = await configuredOrganizationProblem(api);
    if (problem !== undefined) throw new MachinesError("invalid-input", `--org ${config.organization}: ${problem}`);
    const at = api.clock.now() + longestLook;
    const apps = app ?? (terraform?.hasClusters ? [] : terraform?.apps) ?? [];
    const wanted = { apps, hasSnapshots: snapshots === true || terraform !== undefined, terraform };
    const discovery = await discover(api.within({ at, allowed: "30m" }), project.state, wanted, warn);
    if (discovery.found.length === 0)
      throw new MachinesError(
        "invalid-input",
        `organization ${config.organization} at ${config.endpoint} has nothing that could be imported`,
      );
    return { discovery, config };
  } finally {
    await api.close();
  }
}

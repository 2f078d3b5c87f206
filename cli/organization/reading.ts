// Reads an organization, and the project in this folder whose stack may hold some of it already.
import { existsSync, readFileSync } from "node:fs";
import { newClient } from "../../provider/client/connect.ts";
import { readConfig, type Config } from "../../provider/client/config.ts";
import { MachinesError } from "../../provider/client/errors.ts";
import { configuredOrganizationProblem } from "../../provider/core/organization.ts";
import { exportStack, listStacks, stackConfig, stackOfEnvironment } from "../pulumi.ts";
import { noOtherStacks, readOtherStacks, type OtherStacks } from "../orphans/otherStacks.ts";
import { emptyState, readState, type StackState } from "../stackState.ts";
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
  /** The other stacks of its backend. */
  readonly others: OtherStacks;
  readonly config: ReadonlyMap<string, string>;
}

/** Milliseconds that reading the organization may take. */
const longestLook = 1_800_000;

/** Whether commands that get this `--stack` use any. */
const hasStack = async (given: string | undefined): Promise<boolean> =>
  (given ?? stackOfEnvironment()) !== undefined || (await listStacks()).some(({ isSelected }) => isSelected);

/** The project in this folder, with the state of its stack, if there are any. */
export async function projectHere(stack: string | undefined): Promise<Project> {
  const exists = existsSync("Pulumi.yaml");
  const language = exists ? languageOf(readFileSync("Pulumi.yaml", "utf8")) : undefined;
  if (!exists && stack !== undefined)
    throw new MachinesError("invalid-input", `--stack ${stack}: there is no Pulumi project in ${process.cwd()}`);
  const none = { exists, language, state: emptyState, others: noOtherStacks, config: new Map<string, string>() };
  if (!exists) return none;
  if (!(await hasStack(stack))) return { ...none, others: await readOtherStacks(stack) };
  const state = readState(await exportStack(stack), "the output of `pulumi stack export`");
  return { ...none, state, others: await readOtherStacks(stack), config: await stackConfig(stack) };
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
  const api = newClient(config, warn);
  try {
    const problem = await configuredOrganizationProblem(api);
    if (problem !== undefined) throw new MachinesError("invalid-input", `--org ${config.organization}: ${problem}`);
    const at = api.clock.now() + longestLook;
    const apps = app ?? (terraform?.hasClusters ? [] : terraform?.apps) ?? [];
    const hasSnapshots = snapshots === true || terraform !== undefined;
    const all = await discover(api.within({ at, allowed: "30m" }), project, { apps, hasSnapshots }, warn);
    const discovery =
      terraform === undefined
        ? { ...all, remarks: [...all.remarks, ...leftOut(apps, hasSnapshots)] }
        : managedByTerraform(all, terraform);
    if (discovery.found.length === 0)
      throw new MachinesError(
        "invalid-input",
        `organization ${config.organization} at ${config.endpoint} has nothing that could be imported${exampleOf(all)}`,
      );
    return { discovery, config };
  } finally {
    await api.close();
  }
}

const exampleOf = ({ remarks: [first] }: Discovery): string => (first === undefined ? "" : `. For example, ${first}`);

/** Only what Terraform manages, under the names that it has there. */
function managedByTerraform(all: Discovery, { names, remarks }: TerraformState): Discovery {
  const found = all.found.flatMap((one) => {
    const terraformName = names.get(one.key);
    return terraformName === undefined ? [] : [{ ...one, terraformName }];
  });
  const keys = new Set(all.found.map(({ key }) => key));
  const others = all.found.flatMap(({ key }) => (names.has(key) ? [] : [`${key}: Terraform does not manage it.`]));
  const missing = [...names.keys()]
    .filter((key) => !keys.has(key) && !all.remarks.some((remark) => remark.startsWith(`${key}: `)))
    .map((key) => `${key}: the service does not have it.`);
  return { ...all, found, remarks: [...remarks, ...missing, ...others, ...all.remarks] };
}

/** What was not looked for. */
function leftOut(apps: readonly string[], hasSnapshots: boolean): readonly string[] {
  return [
    ...(apps.length > 0
      ? ["Postgres clusters and other Apps: --app limits the program to the Apps that it names."]
      : []),
    ...(hasSnapshots
      ? []
      : ["Snapshots of volumes and backups of clusters: the service creates most of them; --snapshots includes them."]),
    "Deploy tokens: the service does not list them.",
  ];
}

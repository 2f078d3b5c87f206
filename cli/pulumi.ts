// Reads the stack's state and its configuration, and the project's stacks, through the Pulumi CLI.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { isObject } from "../api/schema.ts";
import { MachinesError } from "../provider/client/errors.ts";
import { unknownKeys } from "../provider/core/configurationKeys.ts";

/** A failure that no stack causes: something is missing on this computer. Its message is one sentence that says what to do. */
export class SetupError extends MachinesError {
  constructor(message: string, cause?: unknown) {
    super("configuration", message, { cause });
    this.name = "SetupError";
  }
}

/** A stack, as the CLI lists it. */
export interface ListedStack {
  readonly name: string;
  /** Whether it is selected: commands without `--stack` use it, unless the {@link stackOfEnvironment} is another one. */
  readonly isSelected: boolean;
  /** RFC 3339 time of its last update. */
  readonly updatedAt: string | undefined;
}

/** The stacks of this folder's project, or of all projects in the backend. */
export async function listStacks(of: "project" | "all" = "project"): Promise<readonly ListedStack[]> {
  const found = JSON.parse(
    await pulumi(["stack", "ls", ...(of === "all" ? ["--all"] : []), "--json"], undefined),
  ) as readonly {
    readonly name: string;
    readonly current: boolean;
    readonly lastUpdate?: string;
  }[];
  return found.map(({ name, current, lastUpdate }) => ({ name, isSelected: current, updatedAt: lastUpdate }));
}

/** The stack that the environment names for commands without `--stack`: the CLI uses it in place of the selected one. */
export const stackOfEnvironment = (): string | undefined => {
  const name = process.env["PULUMI_OPTION_STACK"];
  return name === "" ? undefined : name;
};

/** The state of a stack of this folder's project, the selected one when left out, with its secrets sealed or in the clear. */
export const exportStack = (stack: string | undefined, secrets: "sealed" | "clear" = "sealed"): Promise<string> =>
  pulumi(["stack", "export", ...(secrets === "clear" ? ["--show-secrets"] : [])], stack);

/** A value of a stack's configuration, in plain text also if it is secret. Never print it. */
interface OpenSetting {
  readonly value: string;
  readonly isSecret: boolean;
}

/** A stack's whole configuration by full keys. Values are in plain text: never print them. */
export async function openConfig(stack: string | undefined): Promise<ReadonlyMap<string, OpenSetting>> {
  const text = await pulumi(["config", "--json", "--show-secrets"], stack);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // Reported below: a parser's message quotes the text, which contains secrets.
  }
  if (!isObject(json)) throw new MachinesError("configuration", "`pulumi config --json` did not write JSON");
  return new Map(
    Object.entries(json).flatMap(([key, entry]): [string, OpenSetting][] =>
      isObject(entry) && typeof entry["value"] === "string"
        ? [[key, { value: entry["value"], isSecret: entry["secret"] === true }]]
        : [],
    ),
  );
}

/**
 * The stack's configuration of the provider by key, without its namespace. Values are in plain text: never print them.
 * @throws MachinesError for a misspelt key, as a preview does: its value would be replaced by a default
 */
export const stackConfig = async (stack: string | undefined): Promise<ReadonlyMap<string, string>> =>
  providerConfig(await openConfig(stack));

/** The same of a configuration that was read before. */
export function providerConfig(all: ReadonlyMap<string, OpenSetting>): ReadonlyMap<string, string> {
  const found = new Map(
    [...all].flatMap(([key, { value }]): [string, string][] =>
      key.startsWith("machines:") ? [[key.slice("machines:".length), value]] : [],
    ),
  );
  const problems = unknownKeys([...found.keys()]);
  if (problems.length > 0) throw new MachinesError("configuration", problems.join("\n"));
  return found;
}

/** Whether a folder or one above it has a Pulumi project, as the CLI looks for it. */
export function isInProject(folder: string): boolean {
  if (["Pulumi.yaml", "Pulumi.yml", "Pulumi.json"].some((name) => existsSync(join(folder, name)))) return true;
  return dirname(folder) !== folder && isInProject(dirname(folder));
}

/** The endpoint in a stack's configuration; undefined if it has none there, or has it encrypted. */
export async function stackEndpoint(stack: string | undefined): Promise<string | undefined> {
  const json = JSON.parse(await pulumi(["config", "--json"], stack)) as Readonly<Record<string, { value?: string }>>;
  return json["machines:endpoint"]?.value;
}

/**
 * The environment for the CLI. `PULUMI_OPTION_` with the name of an option sets it for every command: with `SHOW_SECRETS` a sealed state
 * would come in the clear, with `FILE` it would go to a file, and with `FORCE` a stack would be removed that still has resources. Those
 * that say which stack is meant, and how a new one keeps its secrets, are meant for our commands too.
 */
export const environment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^PULUMI_OPTION_(?!(CONFIG_FILE|CWD|SECRETS_PROVIDER|STACK)$)/.test(name),
    ),
  );

/** How the Pulumi CLI runs. */
interface Running {
  /** Its standard input, for values that errors and lists of processes must not show. */
  readonly input?: string;
  /** Whether ^C does not reach it, because it would stop half-way. */
  readonly isOutOfReach?: boolean;
}

/**
 * Runs the Pulumi CLI in this folder, for a stack or the selected one.
 * @throws MachinesError with its error output
 */
export function pulumi(
  args: readonly string[],
  stack: string | undefined,
  { input = "", isOutOfReach = false }: Running = {},
): Promise<string> {
  const all = [...args, ...(stack === undefined ? [] : ["--stack", stack]), "--non-interactive", "--color", "never"];
  return new Promise((resolve, reject) => {
    // On Windows, a detached process would open a window.
    const child = spawn("pulumi", all, { env: environment(), detached: isOutOfReach && process.platform !== "win32" });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    child.on("error", (error: NodeJS.ErrnoException) =>
      reject(error.code === "ENOENT" ? new SetupError(noPulumi, error) : refusal(args, error.message)),
    );
    child.on("close", (code, signal) => {
      if (code === 0) return resolve(stdout);
      reject(refusal(args, stderr.trim().replace(/^error: /, "") || String(signal ?? code)));
    });
    child.stdin.on("error", () => undefined).end(input); // it may have exited without reading
  });
}

const refusal = (args: readonly string[], reason: string): MachinesError =>
  setupProblem(reason) ?? new MachinesError("configuration", `\`pulumi ${args.join(" ")}\` failed: ${reason}`);

/** The sentence for a computer without the Pulumi CLI. */
export const noPulumi =
  "the Pulumi CLI was not found: install it (https://www.pulumi.com/docs/install/) and put `pulumi` on your PATH";

/** What the CLI says about this computer, and what to do about it. */
const setupProblems: readonly (readonly [says: RegExp, advice: string])[] = [
  [
    /passphrase must be set with PULUMI_CONFIG_PASSPHRASE/,
    "the stack's secrets are encrypted with a passphrase: set PULUMI_CONFIG_PASSPHRASE to it, or PULUMI_CONFIG_PASSPHRASE_FILE to a file that holds it",
  ],
  [
    /incorrect passphrase/,
    "the passphrase is not the one that the stack's secrets are encrypted with: set PULUMI_CONFIG_PASSPHRASE to that one",
  ],
  [
    /PULUMI_ACCESS_TOKEN must be set for login/,
    "Pulumi is not logged in: run `pulumi login`, or set PULUMI_ACCESS_TOKEN",
  ],
  [
    // Pulumi writes an `.attrs` file beside each file of a backend of files, and `kill -9` can leave it empty.
    /^(failed to load checkpoint: )?EOF$/,
    "a killed run left an empty file beside the stack, which is complete: delete the empty file with `find ~/.pulumi -name '*.attrs' -empty -delete`, or in the folder of your backend",
  ],
  [
    /no Pulumi\.yaml project file found/,
    "there is no Pulumi project here: run this in the folder of Pulumi.yaml, or name the folder with --cwd",
  ],
];

/** The error for output of the CLI that says what is missing on this computer; undefined for any other output. */
export function setupProblem(output: string): SetupError | undefined {
  const found = setupProblems.find(([says]) => says.test(output));
  return found && new SetupError(found[1]);
}

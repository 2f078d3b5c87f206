// The pulumi-machines command.
import { styleText } from "node:util";
import { Command, InvalidArgumentError } from "commander";
import { MachinesError, messageOf } from "../provider/client/errors.ts";
import { printable } from "../api/printable.ts";
import { orphans, type Options } from "./orphans/orphans.ts";
import type { Streams } from "./terminal.ts";
import { importOrganization, type ImportOptions } from "./organization/organization.ts";
import { openConsole, type ConsoleOptions } from "./console.ts";
import { cost, type CostOptions } from "./cost/cost.ts";
import { convertFile, type ConvertOptions } from "./conversion/command.ts";
import { forgetViews, type ForgetOptions } from "./migration/forgetViews.ts";
import { migrate, type MigrateOptions } from "./migration/migrate.ts";
import { create, destroy, sweep, type CreateOptions } from "./promotion/environment.ts";
import { listEnvironments, type ListOptions } from "./promotion/environmentList.ts";
import { promote, rollback, type PromoteOptions } from "./promotion/promote.ts";
import { status, type StatusOptions } from "./promotion/status.ts";
import { drift, type DriftOptions } from "./drift/drift.ts";
import { undoReplacement, type UndoOptions } from "./orphans/undoReplacement.ts";
import { showHistory, type HistoryOptions } from "./rollouts.ts";
import type { McpOptions } from "./mcp/serve.ts";
import { printablePainted } from "./style.ts";
import { version } from "./version.ts";

/** What a command writes to, and how it ends. */
interface Surroundings {
  readonly streams: Streams;
  readonly end: (code: number) => void;
}

const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

interface Anywhere {
  readonly cwd?: string;
}

/** The options of a command, once it works in the folder that they name. */
function enter<T extends object>({ cwd, ...options }: T & Anywhere): Omit<T, "cwd"> {
  if (cwd === undefined) return options;
  try {
    process.chdir(cwd);
  } catch (error) {
    throw new MachinesError("invalid-input", `--cwd ${cwd}: ${messageOf(error)}`, { cause: error });
  }
  return options;
}

/** Adds a command. All of them can be started from another folder. */
const add = (to: Command, name: string, description: string): Command =>
  to.command(name).description(description).option("-C, --cwd <folder>", "work as if started in this folder");

function declare(around: Surroundings): Command {
  const program = new Command("pulumi-machines")
    .description("Tools around the stacks of pulumi-machines.")
    .version(version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .configureHelp({ styleTitle: (title) => styleText("bold", title, { validateStream: false }) })
    .showHelpAfterError("(add --help for the options)")
    // 1 says that something was found.
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));
  addDrift(program, around);
  addOrphans(program, around);
  addImport(program, around);
  addConvert(program, around);
  addUndoReplacement(program, around);
  addMigrate(program, around);
  addForgetViews(program, around);
  addPromote(program, around);
  addEnvironment(program, around);
  addStatus(program, around);
  addHistory(program, around);
  addConsole(program, around);
  addCost(program, around);
  addMcp(program, around);
  return program;
}

function addDrift(program: Command, { streams, end }: Surroundings): void {
  add(program, "drift", "show how the service differs from the state of a stack; changes neither")
    .option("-s, --stack <name>", "stack of the project (default: the selected one)")
    .option("--only <type>", "check this type only, for example Machine; may be repeated", collect)
    .option("--app <name>", "check only the resources in this App; may be repeated", collect)
    .option("--unmanaged", "look for objects that no stack manages, too")
    .option("--json", "print a JSON object")
    .action(async (options: DriftOptions & Anywhere) => {
      end(await drift(enter(options), streams));
    });
}

function addOrphans(program: Command, { streams, end }: Surroundings): void {
  add(program, "orphans", "find objects of the service that no stack manages, and delete the ones that you name")
    .option("-s, --stack <name>", "stack of the project to compare with (default: the selected one)")
    .option("--state <file>", "compare with an export of `pulumi stack export` instead; - for standard input")
    .option("--also <file>", "export of another stack, whose resources are no orphans; may be repeated", collect)
    .option("--app <name>", "compare this App, too; may be repeated", collect)
    .option("--all-apps", "compare all Apps and clusters of the organization")
    .option("--provider <name>", "compare only with the service of this provider of the program")
    .option("--snapshots", "compare snapshots of volumes and backups of clusters, too")
    .option("--only <type>", "compare this type only, for example Machine; may be repeated", collect)
    .option("--import <file>", "write a file for `pulumi import --file` that adopts the orphans")
    .option("--include <ids...>", "write these into the file, too, although Pulumi created them for another stack")
    .option("--delete <ids...>", "delete the orphans with these ids, after showing them and asking")
    .option("--confirm <ids...>", "with --delete: delete these although nothing proves that they are this stack's")
    .option("--allow-data-loss", "delete volumes and other objects with data, too, without asking for their ids")
    .option("-y, --yes", "do not ask before deleting what is proved to be this stack's")
    .option("--json", "print a JSON object")
    .action(async (options: Options & Anywhere) => {
      end(await orphans(enter(options), streams, options.cwd));
    });
}

function addImport(program: Command, { streams }: Surroundings): void {
  add(program, "import", "write a program for everything in an organization, and the file that imports it")
    .option("--org <slug>", "organization to read (default: that of the stack, or of MACHINES_ORGANIZATION)")
    .option("--app <name>", "only this App; may be repeated", collect)
    .option("--out <folder>", "folder of the program, with or without a Pulumi project (default: this folder)")
    .option("--language <name>", "typescript, python, go or yaml (default: typescript)")
    .option("--binding <name>", "plugin, or dynamic for a program in TypeScript (default: plugin)")
    .option("-s, --stack <name>", "stack of the project in that folder (default: the selected one)")
    .option(
      "--terraform <file>",
      "only objects that this Terraform state manages: the output of `terraform state pull`, - for standard input",
    )
    .option("--snapshots", "also write snapshots of volumes and backups of clusters")
    .option("--force", "overwrite files that exist")
    .action(async (options: ImportOptions & Anywhere) => {
      await importOrganization(enter(options), streams);
    });
}

function addConvert(program: Command, { streams }: Surroundings): void {
  add(program, "convert", "write a program for a deployment file, and list what it cannot carry over")
    .argument("[file]", "deployment file", "fly.toml")
    .option("--out <folder>", "folder of the program, with or without a Pulumi project (default: this folder)")
    .option("--language <name>", "typescript, python, go or yaml (default: that of the project, else typescript)")
    .option("--binding <name>", "plugin, or dynamic for a program in TypeScript (default: plugin)")
    .option("--regions <list>", "regions and counts, for example ams:2,fra (default: primary_region of the file)")
    .option(
      "--allow-file <path>",
      "put this file into the program although it is in another folder; the path as in the deployment file",
      collect,
    )
    .option("--force", "overwrite files that exist")
    .action((file: string, options: ConvertOptions & Anywhere) => convertFile(file, enter(options), streams));
}

function addUndoReplacement(program: Command, { streams, end }: Surroundings): void {
  add(
    program,
    "undo-replacement",
    "undo a replacement: the resource keeps its original object; asks before it changes the state",
  )
    .argument("[resources...]", "name, URN, or id of the original (default: all objects with data, and Apps)")
    .option("-s, --stack <name>", "stack of the project (default: the selected one)")
    .option("--dry-run", "show what would be done, and change nothing")
    .option("-y, --yes", "do not ask for confirmation")
    .action(async (resources: string[], options: UndoOptions & Anywhere) => {
      end(await undoReplacement(resources, enter(options), streams));
    });
}

function addMigrate(program: Command, { streams, end }: Surroundings): void {
  add(
    program,
    "migrate",
    "keep the objects of Machines and Secrets that the program now declares as a Fleet or an AppSecrets; changes only the state",
  )
    .option("-s, --stack <name>", "stack of the project (default: the selected one)")
    .option("--dry-run", "show what would be migrated, and change nothing")
    .option("-y, --yes", "do not ask for confirmation")
    .action(async (options: MigrateOptions & Anywhere) => {
      end(await migrate(enter(options), streams));
    });
}

function addForgetViews(program: Command, { streams, end }: Surroundings): void {
  add(
    program,
    "forget-views",
    "take the Machines and volumes that a state lists below its fleets out of it, to rename or move a fleet; changes only the state",
  )
    .option("-s, --stack <name>", "stack of the project (default: the selected one)")
    .option("--dry-run", "show what would be taken out, and change nothing")
    .option("-y, --yes", "do not ask for confirmation")
    .action(async (options: ForgetOptions & Anywhere) => {
      end(await forgetViews(enter(options), streams));
    });
}

function addPromote(program: Command, { streams, end }: Surroundings): void {
  add(program, "promote", "deploy the release of one stack to another, by its digest; shows a preview and asks first")
    .usage("[options] <from> <to>\n       pulumi-machines promote [options] --rollback <stack>")
    .argument("[stacks...]", "stack to promote from, and stack to promote to; with --rollback, only the latter")
    .option("--rollback", "roll back to the previous release of the stack")
    .option(
      "--policy-pack <path>",
      "pack that checks the stack; {stack} stands for the stack's name; may be repeated",
      collect,
    )
    .option("--policy-pack-config <file>", "configuration of the pack; may be repeated", collect)
    .option("--by <name>", "who promotes (default: you, or the actor of the workflow)")
    .option("--dry-run", "show the plan and the preview, and change nothing")
    .option("--verbose", "print all output of the preview and the update")
    .option("-y, --yes", "do not ask for confirmation")
    .action(async (stacks: string[], options: PromoteOptions & Anywhere & { readonly rollback?: true }) => {
      const { rollback: back, ...given } = enter(options);
      const more = { ...given, cwd: options.cwd };
      const [first = "", second, ...others] = stacks;
      if (first === "" || others.length > 0 || (back ? second !== undefined : second === undefined))
        throw new MachinesError(
          "invalid-input",
          `${back ? "--rollback takes one stack" : "promote takes two stacks: from, and to"}. For example: ` +
            "`npx pulumi-machines promote dev staging`, and to roll back, `npx pulumi-machines promote staging --rollback`",
        );
      end(second === undefined ? await rollback(first, more, streams) : await promote(first, second, more, streams));
    });
}

function addEnvironment(program: Command, { streams, end }: Surroundings): void {
  const environment = program
    .command("environment")
    .description("create, list and delete temporary stacks, for example one for each pull request")
    .helpCommand("help [command]", "print the help of a command");
  add(
    environment,
    "list",
    "list temporary stacks: when each was created and updated, when it expires, and how many of its resources exist",
  )
    .option("--json", "print a JSON object")
    .action(async (options: ListOptions & Anywhere) => listEnvironments(enter(options), streams));
  add(environment, "create", "create a temporary stack like another stack, or update it")
    .argument("<name>", "name of its stack")
    .requiredOption("--template <stack>", "stack whose configuration it copies (required)")
    .requiredOption("--expires <time>", "time until it expires, for example 48h (required)")
    .option("--set <key=value>", "configuration that differs from the template's; may be repeated", collect)
    .option(
      "--set-secret <key=VARIABLE>",
      "the same as a secret, from an environment variable; may be repeated",
      collect,
    )
    .option("--allow-new-keys", "also set keys that neither the template nor Pulumi.yaml has")
    .option("--summary <file>", "write a summary in Markdown, for example for a comment")
    .action(async (name: string, options: CreateOptions & Anywhere) => create(name, enter(options), streams));
  add(
    environment,
    "destroy",
    "destroy a temporary stack with everything that it created, and remove it from the backend",
  )
    .argument("<name>", "name of its stack")
    .action(async (name: string, options: Anywhere) => {
      enter(options);
      await destroy(name, streams);
    });
  add(environment, "sweep", "destroy the temporary stacks that have expired").action(async (options: Anywhere) => {
    enter(options);
    end(await sweep(streams));
  });
}

function addStatus(program: Command, { streams, end }: Surroundings): void {
  add(program, "status", "show the release of each stack of the project: age, health and, with --drift, drift")
    .argument("[stacks...]", "stacks to show (default: all)")
    .option("--drift", "compare with the service, too")
    .option("--json", "print a JSON object")
    .action(async (stacks: string[], options: StatusOptions & Anywhere) => {
      end(await status(stacks, enter(options), streams));
    });
}

function addHistory(program: Command, { streams, end }: Surroundings): void {
  add(
    program,
    "history",
    "show the rollouts that the stack's service has: who, what, how long, with which result, and why",
  )
    .option("-s, --stack <name>", "stack whose service is asked (default: the selected one)")
    .option("--app <name>", "only of this App")
    .option("-n, --limit <count>", "number of rollouts, at most 200", limitOf, 20)
    .option("--json", "print JSON")
    .action(async (options: HistoryOptions & Anywhere) => end(await showHistory(enter(options), streams)));
}

/** A number of rollouts. */
function limitOf(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= 200) return limit;
  throw new InvalidArgumentError("It must be a whole number from 1 to 200.");
}

function addConsole(program: Command, { streams }: Surroundings): void {
  add(
    program,
    "console",
    "open the console of the stack's service in the browser; outside a project, that of the local service",
  )
    .option("-s, --stack <name>", "stack of the project (default: the selected one)")
    .option("--no-open", "only print its address")
    .action(async (options: ConsoleOptions & Anywhere) => openConsole(enter(options), streams));
}

function addCost(program: Command, { streams }: Surroundings): void {
  add(program, "cost", "show what a stack costs a month by estimate, and what its next update changes of that, by App")
    .option("-s, --stack <name>", "stack of the project (default: the selected one)")
    .option("--plan <file>", "plan of `pulumi preview --save-plan`; without one, the command previews")
    .option(
      "--policy-pack-config <file>",
      "file of the policies, whose budget has prices of your own; {stack} stands for the stack's name; may be repeated",
      collect,
    )
    .option("--markdown", "print Markdown, for example for a comment")
    .option("--json", "print a JSON object")
    .action(async (options: CostOptions & Anywhere) => cost(enter(options), streams));
}

function addMcp(program: Command, { streams }: Surroundings): void {
  add(
    program,
    "mcp",
    "serve the tools of an AI assistant over standard input and output; they change nothing by default",
  )
    .option("--allow-changes", "also offer tools that change something; each shows its plan first")
    .action(async (options: McpOptions & Anywhere) => {
      const entered = enter(options);
      // Loaded by this command alone: the SDK of the protocol is larger than all others together.
      const { serve } = await import("./mcp/serve.ts");
      await serve(entered, streams);
    });
}

/**
 * Runs the command with the words after its name.
 * @param write gets what it prints, by the stream
 * @returns the exit code
 */
export async function runCommand(
  words: readonly string[],
  write: (stream: "stdout" | "stderr", text: string) => void,
): Promise<number> {
  let code = 0;
  const streams: Streams = {
    out: (text) => write("stdout", printablePainted(text)),
    err: (text) => write("stderr", `${printable(text)}\n`),
  };
  try {
    await declare({ streams, end: (result) => (code = result) }).parseAsync(words, { from: "user" });
    return code;
  } catch (error) {
    // Any other error is a bug of ours, so its stack is shown.
    const text =
      error instanceof Error && !(error instanceof MachinesError) ? (error.stack ?? error.message) : messageOf(error);
    streams.err(`pulumi-machines: ${text}`);
    return 2;
  }
}

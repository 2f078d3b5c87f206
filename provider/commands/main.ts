#!/usr/bin/env node
// The pulumi-machines command.
import "./requireNode.ts";
import { Command } from "commander";
import { MachinesError, messageOf } from "../core/errors.ts";
import { orphans, type Options } from "./orphans.ts";

const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

function declare(): Command {
  const program = new Command("pulumi-machines")
    .description("Tools around the stacks of pulumi-machines.")
    .showHelpAfterError("(add --help for the options)")
    // 1 says that something was found.
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));
  program
    .command("orphans")
    .description("find what the service has and no state holds; changes nothing")
    .option("-s, --stack <name>", "stack of the project to compare with (default: the selected one)")
    .option("-C, --cwd <folder>", "work as if started in this folder")
    .option("--state <file>", "compare with an export of `pulumi stack export` instead; - for standard input")
    .option("--also <file>", "export of another stack, whose resources are no orphans; may be repeated", collect)
    .option("--app <name>", "look into this App, too; may be repeated", collect)
    .option("--all-apps", "look into all Apps and clusters of the organization")
    .option("--provider <name>", "look only where this provider of the program leads")
    .option("--snapshots", "compare snapshots of volumes and backups of clusters, too")
    .option("--only <type>", "compare this type only, for example Machine; may be repeated", collect)
    .option("--import <file>", "write what `pulumi import --file` takes to take over what was found")
    .option("--json", "print a JSON object")
    .action(async ({ cwd, ...options }: Options & { readonly cwd?: string }) => {
      if (cwd !== undefined) enter(cwd);
      process.exitCode = await orphans(options, {
        out: (text) => void process.stdout.write(text),
        err: (text) => void process.stderr.write(`${text}\n`),
      });
    });
  return program;
}

function enter(folder: string): void {
  try {
    process.chdir(folder);
  } catch (error) {
    throw new MachinesError("invalid-input", `--cwd ${folder}: ${messageOf(error)}`, { cause: error });
  }
}

declare()
  .parseAsync()
  .catch((error: unknown) => {
    // What is not ours is a mistake of ours: then it helps to see where it was made.
    const said =
      error instanceof Error && !(error instanceof MachinesError) ? (error.stack ?? error.message) : messageOf(error);
    process.stderr.write(`pulumi-machines: ${said}\n`);
    process.exitCode = 2;
  });

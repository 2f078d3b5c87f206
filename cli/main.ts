#!/usr/bin/env node
// The pulumi-machines command.
import "./requireNode.ts";
import { Command } from "commander";
import { MachinesError, messageOf } from "../provider/client/errors.ts";
import { printable } from "../provider/client/printable.ts";
import { orphans, type Options, type Streams } from "./orphans/orphans.ts";
import { create, destroy, sweep, type CreateOptions } from "./promotion/environment.ts";
import { promote, rollback, type PromoteOptions } from "./promotion/promote.ts";
import { status, type StatusOptions } from "./promotion/status.ts";
import { undoReplacement, type UndoOptions } from "./orphans/undoReplacement.ts";

const streams: Streams = {
  out: (text) => void process.stdout.write(printable(text)),
  err: (text) => void process.stderr.write(`${printable(text)}\n`),
};

const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

type PromoteCommand = PromoteOptions & { readonly cwd?: string; readonly rollback?: true };

function declare(): Command {
  const program = new Command("pulumi-machines")
    .description("Tools around the stacks of pulumi-machines.")
    .showHelpAfterError("(add --help for the options)")
    // 1 says that something was found.
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));
  program
    .command("orphans")
    .description("find objects that the service has and no state knows; changes nothing")
    .option("-s, --stack <name>", "stack of the project to compare with (default: the selected one)")
    .option("-C, --cwd <folder>", "work as if started in this folder")
    .option("--state <file>", "compare with an export of `pulumi stack export` instead; - for standard input")
    .option("--also <file>", "export of another stack, whose resources are no orphans; may be repeated", collect)
    .option("--app <name>", "compare this App, too; may be repeated", collect)
    .option("--all-apps", "compare all Apps and clusters of the organization")
    .option("--provider <name>", "compare only with the service of this provider of the program")
    .option("--snapshots", "compare snapshots of volumes and backups of clusters, too")
    .option("--only <type>", "compare this type only, for example Machine; may be repeated", collect)
    .option("--import <file>", "write a file for `pulumi import --file` that adopts the orphans")
    .option("--json", "print a JSON object")
    .action(async ({ cwd, ...options }: Options & { readonly cwd?: string }) => {
      if (cwd !== undefined) enter(cwd);
      process.exitCode = await orphans(options, streams);
    });
  program
    .command("undo-replacement")
    .description("make the original of a replaced resource the resource's own again; reads and asks before")
    .argument("[resources...]", "name, URN, or id of the original (default: all that hold data, and Apps)")
    .option("-s, --stack <name>", "stack of the project (default: the selected one)")
    .option("-C, --cwd <folder>", "work as if started in this folder")
    .option("--dry-run", "show, and change nothing")
    .option("-y, --yes", "do not ask")
    .action(async (resources: string[], { cwd, ...options }: UndoOptions & { readonly cwd?: string }) => {
      if (cwd !== undefined) enter(cwd);
      process.exitCode = await undoReplacement(resources, options, streams);
    });
  program
    .command("promote")
    .description("have a stack run the release of another one, by its digest; shows, previews and asks before")
    .argument("<stacks...>", "stack to promote from, and stack to promote to; with --rollback the latter alone")
    .option("-C, --cwd <folder>", "work as if started in this folder")
    .option("--rollback", "go back to the release the stack ran before")
    .option("--policy-pack <path>", "pack that checks the stack, {stack} stands for its name; may be repeated", collect)
    .option("--policy-pack-config <file>", "configuration of the pack; may be repeated", collect)
    .option("--by <name>", "who promotes (default: you, or the actor of the workflow)")
    .option("--dry-run", "show and preview, and change nothing")
    .option("-y, --yes", "do not ask")
    .action(async (stacks: string[], { cwd, rollback: back, ...options }: PromoteCommand) => {
      if (cwd !== undefined) enter(cwd);
      const [first = "", second, ...others] = stacks;
      if (others.length > 0 || (back ? second !== undefined : second === undefined))
        throw new MachinesError(
          "invalid-input",
          back ? "--rollback takes one stack" : "promote takes two stacks: from, and to",
        );
      process.exitCode =
        second === undefined ? await rollback(first, options, streams) : await promote(first, second, options, streams);
    });
  const environment = program
    .command("environment")
    .description("stacks for a while, for example one for each pull request");
  environment
    .command("create")
    .description("create one like another stack, or bring it up to date")
    .argument("<name>", "name of its stack")
    .requiredOption("--template <stack>", "stack whose configuration it copies")
    .requiredOption("--expires <time>", "how long it may live, for example 48h")
    .option("--set <key=value>", "configuration that is not the template's; may be repeated", collect)
    .option(
      "--set-secret <key=VARIABLE>",
      "the same, secret, from a variable of the environment; may be repeated",
      collect,
    )
    .option("--summary <file>", "write a summary in Markdown, for example for a comment")
    .action(async (name: string, options: CreateOptions) => create(name, options, streams));
  environment
    .command("destroy")
    .description("destroy one with everything it created, and forget its stack")
    .argument("<name>", "name of its stack")
    .action(async (name: string) => destroy(name, streams));
  environment
    .command("sweep")
    .description("destroy those whose time is over")
    .action(async () => {
      process.exitCode = await sweep(streams);
    });
  program
    .command("status")
    .description("the releases of the project's stacks: release, age, health and, if asked, drift")
    .argument("[stacks...]", "stacks to show (default: all)")
    .option("-C, --cwd <folder>", "work as if started in this folder")
    .option("--drift", "compare with the service, too")
    .option("--json", "print a JSON object")
    .action(async (stacks: string[], { cwd, ...options }: StatusOptions & { readonly cwd?: string }) => {
      if (cwd !== undefined) enter(cwd);
      process.exitCode = await status(stacks, options, streams);
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
    // Any other error is a bug of ours, so its stack is shown.
    const text =
      error instanceof Error && !(error instanceof MachinesError) ? (error.stack ?? error.message) : messageOf(error);
    streams.err(`pulumi-machines: ${text}`);
    process.exitCode = 2;
  });

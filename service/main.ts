#!/usr/bin/env node
// The machines-service command.
import "./requireNode.ts";
import { Command, Option } from "commander";
import { addData } from "./commands/data.ts";
import { fromEnvironment, tidyEnvironment } from "./commands/environment.ts";
import { addLogs } from "./commands/logs.ts";
import { sentence } from "./commands/sentence.ts";
import { addStart } from "./commands/start.ts";
import { addTokens } from "./commands/tokens.ts";

async function main(): Promise<void> {
  const program = new Command("machines-service")
    .description("A complete, self-hosted Machines Control Service.")
    .addOption(fromEnvironment(new Option("--data <folder>", "folder of the data (default: ~/.machines-service)")))
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError("(add --help for the options)");
  addStart(program);
  addLogs(program);
  addTokens(program);
  addData(program);
  tidyEnvironment(program);
  await program.parseAsync();
}

main().catch((error: unknown) => {
  process.stderr.write(`machines-service: ${sentence(error)}\n`);
  process.exit(1);
});

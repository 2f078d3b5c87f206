// The command that opens the console.
import type { Command } from "commander";
import { consoleLink } from "../local/console.ts";
import { findRunning } from "../local/daemon.ts";
import { dataFolder } from "../local/options.ts";
import { Problem } from "../local/problem.ts";
import { ownCommand } from "../ownCommand.ts";
import { print, printJson } from "./print.ts";

interface Flags {
  readonly data?: string;
  readonly json?: true;
  readonly open: boolean;
}

async function openConsole(_: Flags, command: Command): Promise<void> {
  const { data, json, open: mayOpen } = command.optsWithGlobals<Flags>();
  const folder = dataFolder(data);
  const running = findRunning(folder);
  if (!running) {
    const start = ownCommand("start --detach", folder);
    process.stderr.write(`machines-service: no service is running for ${folder}; start it with \`${start}\`\n`);
    process.exitCode = 3;
    return;
  }
  const link = consoleLink(running);
  if (link === undefined)
    throw new Problem(
      `the service at ${running.url} has no console; stop it, and start it with --console read or --console write`,
    );
  if (json) return printJson({ url: link });
  print(link);
  if (!mayOpen || !process.stdout.isTTY) return;
  try {
    // Other users may see the code in the list of processes for a moment. The browser uses it up at once.
    const { default: open } = await import("open");
    await open(link);
  } catch {
    process.stderr.write("The browser could not be started: open this address in it, within five minutes.\n");
  }
}

/** Adds the command. */
export function addConsole(program: Command): void {
  program
    .command("console")
    .description(
      "open the console of the running service in the browser, signed in (exit status 3 if it is not running)",
    )
    .option("--no-open", "only print its address, which signs in once within five minutes")
    .option("--json", "print a JSON object")
    .action(openConsole);
}

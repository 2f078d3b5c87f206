// The command upgrade: says what an upgrade would do. npm and the supervisor of the service carry it out.
import type { Command } from "commander";
import { dataFolder } from "../local/options.ts";
import { Problem } from "../local/problem.ts";
import { variables } from "../setup/options.ts";
import { exitWith, printFindings } from "./findings.ts";
import { printJson } from "./print.ts";
import { installedSettings } from "./setup.ts";

interface Flags {
  readonly check?: true;
  readonly json?: true;
}

async function upgrade({ check, json }: Flags, command: Command): Promise<void> {
  const data = dataFolder(command.optsWithGlobals<{ readonly data?: string }>().data);
  const settings = installedSettings();
  const isInstalled = settings?.get(variables.data) === data;
  if (!check)
    throw new Problem(
      `${isInstalled ? "npm install --global machines-service@latest && machines-service setup" : "npm install machines-service@latest, and then machines-service stop and start"} upgrades; upgrade --check says before what it would do`,
    );
  // Loaded only when it is used: the other commands take less time without it.
  const { examineUpgrade } = await import("../setup/upgrade.ts");
  const found = await examineUpgrade({ data, settings: isInstalled ? settings : undefined });
  if (json) printJson(found);
  else printFindings(found.findings);
  exitWith(found.findings);
}

/** Adds the command. */
export function addUpgrade(program: Command): void {
  program
    .command("upgrade")
    .description("say what an upgrade of the service would do, and what would prevent it (exit status 1)")
    .option("--check", "examine the service and its data, and change nothing")
    .option("--json", "print a JSON object")
    .action(upgrade);
}

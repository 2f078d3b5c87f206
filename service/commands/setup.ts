// The commands setup and doctor: prepare a server, and examine it.
import { readFileSync } from "node:fs";
import { Option, type Command } from "commander";
import { findRunning } from "../local/daemon.ts";
import { dataFolder } from "../local/options.ts";
import { Problem } from "../local/problem.ts";
import { givenSettings, variables } from "../setup/options.ts";
import { settingsFile, settingsIn } from "../setup/settings.ts";
import type { SetupPlan } from "../setup/setup.ts";
import { dataVariable, commandVariable } from "../ownCommand.ts";
import { exitWith, printFindings } from "./findings.ts";
import { print, printJson } from "./print.ts";
import { startOptions } from "./start.ts";

/** The settings of the installed service; undefined without one, or for a user who may not read them. */
export function installedSettings(): Map<string, string> | undefined {
  try {
    return settingsIn(readFileSync(settingsFile, "utf8"));
  } catch {
    return undefined;
  }
}

/** On a server, root's commands are about the installed service, unless they name another one. Changes the environment. */
export function useInstalled(env: NodeJS.ProcessEnv): void {
  const settings = process.getuid?.() === 0 ? installedSettings() : undefined;
  const data = settings?.get(variables.data);
  if (data === undefined) return;
  env[dataVariable] ||= data;
  env[commandVariable] ||= "machines-service";
}

/** Finds programs for administrators, which `su` and cron leave out of PATH. */
function useSystemFolders(): void {
  process.env["PATH"] = [process.env["PATH"] ?? "/usr/bin:/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"].join(":");
}

async function setup(flags: Readonly<Record<string, unknown>>, command: Command): Promise<void> {
  // Loaded only when they are used: the other commands take less time without them.
  useSystemFolders();
  const { planSetup, requireServer } = await import("../setup/setup.ts");
  const isDry = flags["dryRun"] === true;
  const isRoot = process.getuid?.() === 0;
  if (!isRoot && !isDry)
    throw new Problem("setup changes the system, which only root may: sudo machines-service setup");
  await requireServer();
  const data = new Option("--data <folder>").env(dataVariable);
  // What this shell has for another service is not meant for the server.
  const given = command.parent?.getOptionValueSource("data") === "cli" ? [data] : [];
  const options = startOptions();
  const plan = await planSetup({ given: givenSettings(command.optsWithGlobals(), [...options, ...given]), options });
  for (const { title, run } of plan.steps) {
    print(isDry ? `would: ${title}` : title);
    if (!isDry) await run();
  }
  if (isDry) return print(plan.steps.length === 0 ? "nothing is left to do" : "--dry-run: nothing was changed");
  printDone(plan);
}

function printDone({ steps, settings, installed }: SetupPlan): void {
  const running = findRunning(installed.data);
  if (steps.length === 0) print("nothing was left to do");
  if (running) print(`machines-service is ready at ${running.url} (pid ${running.pid})`);
  const hostname = settings.get(variables.hostname);
  if (hostname !== undefined)
    print(`for other computers: https://${hostname}, once DNS leads here and a certificate is issued`);
  if (installed.public.length > 0)
    print(
      `let clients reach ports ${installed.ports.http} and ${installed.ports.https}: in ufw, and in the firewall of your provider`,
    );
  print("a token: machines-service token create --name NAME; what is wrong: machines-service doctor");
}

async function doctor(flags: { readonly json?: true }, command: Command): Promise<void> {
  useSystemFolders();
  const { examine } = await import("../setup/doctor.ts");
  const data = dataFolder(command.optsWithGlobals<{ readonly data?: string }>().data);
  const settings = installedSettings();
  const isInstalled = settings?.get(variables.data) === data;
  const findings = await examine({ data, settings: isInstalled ? settings : undefined, options: startOptions() });
  if (flags.json) printJson(findings);
  else printFindings(findings);
  exitWith(findings);
}

/** Adds the commands. */
export function addSetup(program: Command): void {
  const command = program
    .command("setup")
    .description(
      "prepare this server (Debian or Ubuntu) and run the service on it; again to change options or after an upgrade",
    )
    .option("--dry-run", "say what would be done, and do nothing");
  for (const option of startOptions()) {
    // The environment of this shell says nothing about the server.
    delete option.envVar;
    command.addOption(option);
  }
  command.action(setup);
  program
    .command("doctor")
    .description("examine the service of this computer and say what to do (exit status 1 for a problem)")
    .option("--json", "print a JSON array")
    .action(doctor);
}

#!/usr/bin/env node
// The machines-service command.
import "./requireNode.ts";
import { Command, Option } from "commander";
import { addAudit } from "./commands/audit.ts";
import { addBackup } from "./commands/backup.ts";
import { addConsole } from "./commands/console.ts";
import { addData } from "./commands/data.ts";
import { fromEnvironment, tidyEnvironment } from "./commands/environment.ts";
import { addHistory } from "./commands/history.ts";
import { addKubernetes } from "./commands/kubernetes.ts";
import { addList } from "./commands/list.ts";
import { addLogs } from "./commands/logs.ts";
import { addMembers } from "./commands/members.ts";
import { addQuotas } from "./commands/quotas.ts";
import { addProxy } from "./commands/proxy.ts";
import { sentence } from "./commands/sentence.ts";
import { addPeople } from "./commands/people.ts";
import { addSetup, useInstalled } from "./commands/setup.ts";
import { addSsh } from "./commands/ssh.ts";
import { addStart, defaultListen } from "./commands/start.ts";
import { addTokens } from "./commands/tokens.ts";
import { addTrusts } from "./commands/trusts.ts";
import { addUpgrade } from "./commands/upgrade.ts";
import { addWatch } from "./commands/watch.ts";
import { version } from "./version.ts";

/** A name that begins with what was typed is meant, such as `status` by `stat`, though `start` has fewer differences. */
function withNamesThatBegin(text: string, program: Command): string {
  const typed = /unknown command '([^']+)'/.exec(text)?.[1];
  if (typed === undefined) return text;
  const begin = program.commands.map((command) => command.name()).filter((name) => name.startsWith(typed));
  if (begin.length === 0) return text;
  const meant = begin.length === 1 ? begin.join("") : `one of ${begin.join(", ")}`;
  return `${text.trimEnd().replace(/\n\(Did you mean .*\?\)/, "")}\n(Did you mean ${meant}?)\n`;
}

/** Options that other services have for their address. */
const addressOptions = /unknown option '(?:--(?:port|host|addr|address|bind)|-p)[='][^\n]*(?:\n\(Did you mean .*\?\))?/;

/** The option for the address is meant, although its name is not near. Only `start` has it. */
const withListen = (text: string): string =>
  process.argv.includes("start")
    ? text.replace(
        addressOptions,
        (found) => `${found.split("\n", 1).join("")}\n(Did you mean --listen ${defaultListen}?)`,
      )
    : text;

async function main(): Promise<void> {
  useInstalled(process.env);
  const program = new Command("machines-service")
    .description("A complete, self-hosted Machines Control Service.")
    .version(`machines-service ${version}`, "-v, --version", "print the name and the version")
    .addOption(fromEnvironment(new Option("--data <folder>", "folder of the data (default: ~/.machines-service)")))
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError("(add --help for the options)")
    .configureOutput({ outputError: (text, write) => write(withListen(withNamesThatBegin(text, program))) });
  addStart(program);
  addConsole(program);
  addList(program);
  addLogs(program);
  addSsh(program);
  addHistory(program);
  addAudit(program);
  addTokens(program);
  addTrusts(program);
  addPeople(program);
  addQuotas(program);
  addData(program);
  addBackup(program);
  addMembers(program);
  addKubernetes(program);
  addProxy(program);
  addWatch(program);
  addSetup(program);
  addUpgrade(program);
  tidyEnvironment(program);
  await program.parseAsync();
}

// The reader of a pipe may need no more, as head does.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") process.exitCode = 1;
  process.exit();
});

main().catch((error: unknown) => {
  process.stderr.write(`machines-service: ${sentence(error)}\n`);
  process.exit(1);
});

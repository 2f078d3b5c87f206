// The commands backup and restore: everything that a service has, in a repository of restic.
import { resolve } from "node:path";
import { Option, type Command } from "commander";
import { ownCommand } from "../ownCommand.ts";
import { dataFolder } from "../local/options.ts";
import { Problem } from "../local/problem.ts";
import type { Selected } from "../local/backupCommands.ts";
import { openingOptions, type OpeningFlags } from "./backupFlags.ts";
import { sizeText } from "../local/backupText.ts";
import { fromEnvironment } from "./environment.ts";
import { momentWithZone } from "./moment.ts";
import { print, printJson, printTable } from "./print.ts";
import { keyFileOption, storeOption, type StoreFlags } from "./storeOptions.ts";

interface Flags extends OpeningFlags {
  readonly data?: string;
  readonly to?: string;
  readonly from?: string;
  readonly service?: string;
  readonly id?: string;
  /** Milliseconds since 1970. */
  readonly at?: number;
  readonly app?: string;
  readonly json?: true;
}

function selected({ data, to, from, service, ...flags }: Flags): Selected {
  const { restic, backupPassphraseFile, backupPassphraseCommand, backupEnvironment } = flags;
  return {
    folder: dataFolder(data),
    at: from ?? to,
    service,
    ...(restic === undefined ? {} : { restic }),
    ...(backupPassphraseFile === undefined ? {} : { backupPassphraseFile }),
    ...(backupPassphraseCommand === undefined ? {} : { backupPassphraseCommand }),
    ...(backupEnvironment === undefined ? {} : { backupEnvironment }),
  };
}

async function backup(_: Flags, command: Command): Promise<void> {
  const flags = command.optsWithGlobals<Flags>();
  const { backUpNow } = await import("../local/backupCommands.ts");
  const result = await backUpNow(selected(flags));
  const { id, begun, ended, addedBytes, missing } = result;
  if (missing.length > 0) process.exitCode = 1;
  if (flags.json) return printJson(result);
  print(
    `${id}: stored in ${((ended - begun) / 1000).toFixed(1)} s, the repository has grown by ${sizeText(addedBytes)}`,
  );
  for (const { kind, id: part, reason } of missing) warn(`${kind} ${part} is missing: ${reason}`);
}

async function list(_: Flags, command: Command): Promise<void> {
  const flags = command.optsWithGlobals<Flags>();
  const { listBackups } = await import("../local/backupCommands.ts");
  const all = await listBackups(selected(flags));
  if (flags.json) return printJson(all.map(({ manifest: { store: _store, rows: _rows, ...shown } }) => shown));
  if (all.length === 0) return print("there are no backups yet");
  const isShared = new Set(all.map(({ manifest }) => manifest.lineage)).size > 1;
  printTable(
    ["ID", "TIME", "VOLUMES", "CLUSTERS", "SIZE", "RESULT", ...(isShared ? ["SERVICE"] : [])],
    all.map(({ id, manifest: { at, volumes, clusters, missing, lineage } }) => {
      const parts = [...Object.values(volumes), ...Object.values(clusters)];
      return [
        id,
        new Date(at).toISOString(),
        String(Object.keys(volumes).length),
        String(Object.keys(clusters).length),
        sizeText(parts.reduce((sum, { bytes }) => sum + bytes, 0)),
        missing.length === 0 ? ["complete", "green"] : [`${missing.length} missing`, "red"],
        ...(isShared ? [lineage] : []),
      ];
    }),
  );
}

async function verify(_: Flags, command: Command): Promise<void> {
  const flags = command.optsWithGlobals<Flags>();
  const { verifyBackup } = await import("../local/backupCommands.ts");
  const { backup: found, bytes, problems } = await verifyBackup(selected(flags), flags.id);
  if (problems.length > 0) process.exitCode = 1;
  if (flags.json) return printJson({ id: found.id, bytes, problems });
  if (problems.length === 0) return print(`${found.id}: everything can be restored, ${sizeText(bytes)} were compared`);
  warn(`${found.id} cannot be restored completely:`);
  for (const problem of problems) process.stderr.write(`  ${problem}\n`);
}

async function restore(_: Flags, command: Command): Promise<void> {
  const flags = command.optsWithGlobals<Flags>();
  const { app, id, at } = flags;
  if (id !== undefined && at !== undefined) throw new Problem("--id and --at both say which backup; leave one out");
  if (app !== undefined && flags.service !== undefined)
    throw new Problem("--app restores from the backups of the running service; leave --service out");
  const { restoreApp, restoreBackup } = await import("../local/backupCommands.ts");
  const from = selected(flags);
  if (app !== undefined) {
    const { backup: found, machines, volumes, missing } = await restoreApp(from, app, { id, at });
    print(`App ${app} is as it was in backup ${found}: ${machines} Machines, ${volumes} volumes`);
    if (missing.length > 0) process.exitCode = 1;
    return missing.forEach(warn);
  }
  const { backup: found, missing } = await restoreBackup(from, { id, at });
  const { manifest } = found;
  const options = (["runtime", "postgres"] as const).flatMap((name) => {
    const value = manifest[name] ?? "simulated";
    return value === "simulated" ? [] : [` --${name} ${value}`];
  });
  const isKnown = manifest.runtime !== undefined && manifest.postgres !== undefined;
  print(
    `${from.folder} has backup ${found.id}; to serve it${isKnown ? "" : ", with the --runtime and --postgres that it had"}: ${ownCommand("start", from.folder)}${options.join("")}`,
  );
  if (missing.length > 0) process.exitCode = 1;
  for (const { kind, id: part, reason } of missing) warn(`${kind} ${part} could not be restored: ${reason}`);
}

const warn = (text: string): void => void process.stderr.write(`machines-service: ${text}\n`);

/** Another process of the service writes its store for a backup. */
async function draft(target: string, _: Flags, command: Command): Promise<void> {
  const { store: url, keyFile, data } = command.optsWithGlobals<Flags & StoreFlags>();
  const { writeDraft } = await import("../local/backupDraft.ts");
  const { readStoreKey } = await import("../local/sharedStore.ts");
  const address = url === undefined ? undefined : { url, key: readStoreKey(keyFile) };
  process.stdout.write(JSON.stringify(await writeDraft(dataFolder(data), resolve(target), address)));
}

const repositoryOption = (flag: string, text: string): Option =>
  new Option(`${flag} <repository>`, text).env("MACHINES_SERVICE_BACKUP");

const serviceOption = (): Option =>
  new Option(
    "--service <service>",
    "whose backups, if several services share the repository; `backup list` shows them",
  );

/** Adds these commands. */
export function addBackup(program: Command): void {
  const add = (command: Command, ...options: readonly Option[]): Command => {
    for (const option of [...options, ...openingOptions()])
      command.addOption(option.envVar === undefined ? fromEnvironment(option) : option);
    return command;
  };
  const json = (): Option => new Option("--json", "print JSON");
  const ofService = "(default: that of the service)";
  const whole = add(
    program
      .command("backup")
      .description("store everything that the service has in a repository of restic; it may run"),
    repositoryOption("--to", `a folder, or an address such as s3:https://s3.example.com/bucket ${ofService}`),
  )
    .addOption(json())
    .action(backup);
  whole
    .command("list")
    .description("list the backups of a repository")
    .addOption(repositoryOption("--from", `the repository ${ofService}`))
    .action(list);
  whole
    .command("verify")
    .description("restore a backup into a scratch folder, and compare it")
    .addOption(repositoryOption("--from", `the repository ${ofService}`))
    .option("--id <id>", "the backup (default: the newest)")
    .addOption(serviceOption())
    .action(verify);
  whole.command("draft <folder>", { hidden: true }).addOption(storeOption()).addOption(keyFileOption()).action(draft);
  add(
    program
      .command("restore")
      .description("restore a backup into the empty folder of --data, or one App into the running service"),
    repositoryOption("--from", `the repository ${ofService}`),
  )
    .option("--id <id>", "the backup (default: the newest)")
    .addOption(serviceOption())
    .option(
      "--at <time>",
      "the moment, such as 2026-11-26T10:00Z: Postgres clusters as they were then, the rest as in the last backup before it",
      momentWithZone,
    )
    .option("--app <app>", "only this App, into the running service")
    .action(restore);
}

// seed, reset, export and import: the data as a whole.
import { resolve } from "node:path";
import type { Command } from "commander";
import { dataFolder } from "../local/options.ts";
import { Problem } from "../local/problem.ts";
import { seed } from "../local/seed.ts";
import { exportStore, importStore, resetStore } from "../store/transfer.ts";
import { print, printTable } from "./print.ts";

interface Flags {
  readonly data?: string;
  readonly yes?: true;
}

const folderOf = (command: Command): string => dataFolder(command.optsWithGlobals<Flags>().data);

async function fill(file: string, _: Flags, command: Command): Promise<void> {
  const tallies = await seed(folderOf(command), file);
  const rows = Object.entries(tallies).filter(([, { created, existing }]) => created + existing > 0);
  printTable(
    ["", "CREATED", "THERE ALREADY"],
    rows.map(([kind, { created, existing }]) => [kind, String(created), String(existing)]),
  );
}

async function reset(_: Flags, command: Command): Promise<void> {
  const folder = folderOf(command);
  if (!command.optsWithGlobals<Flags>().yes)
    throw new Problem(`reset deletes everything the service in ${folder} holds; add --yes if that is what you want`);
  await resetStore(folder, Date.now());
  print(`${folder} is empty; its token is still good`);
}

function save(file: string, _: Flags, command: Command): void {
  exportStore(folderOf(command), resolve(file));
  print(`${resolve(file)} holds everything, the key to its secrets and a token: keep it to yourself`);
}

function restore(file: string, _: Flags, command: Command): void {
  importStore(folderOf(command), resolve(file));
  print(`${folderOf(command)} holds what was exported`);
}

/** Adds the commands for the data as a whole. */
export function addData(program: Command): void {
  program
    .command("seed <file>")
    .description("make what a JSON file describes and is not there yet; the service may run or not")
    .action(fill);
  program
    .command("reset")
    .description("delete everything the service holds; its token stays good")
    .option("--yes", "do it")
    .action(reset);
  program
    .command("export <file>")
    .description("write everything into one file, with the key to its secrets; the service may run")
    .action(save);
  program
    .command("import <file>")
    .description("put an export in the place of a data folder that is empty")
    .action(restore);
}

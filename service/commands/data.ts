// The commands seed, reset, export and import, which handle the data as a whole.
import { resolve } from "node:path";
import type { Command } from "commander";
import { dataFolder } from "../local/options.ts";
import { Problem } from "../local/problem.ts";
import { exportStore, importStore, resetStore } from "../store/transfer.ts";
import { print, printTable } from "./print.ts";

interface Flags {
  readonly data?: string;
  readonly yes?: true;
}

const folderOf = (command: Command): string => dataFolder(command.optsWithGlobals<Flags>().data);

async function fill(file: string, _: Flags, command: Command): Promise<void> {
  // It needs the rules of the service, which the other commands do not load.
  const { seed } = await import("../local/seed.ts");
  const tallies = await seed(folderOf(command), file);
  const rows = Object.entries(tallies).filter(([, { created, existing }]) => created + existing > 0);
  printTable(
    ["", "CREATED", "EXISTING"],
    rows.map(([kind, { created, existing }]) => [kind, String(created), String(existing)]),
  );
}

async function reset(_: Flags, command: Command): Promise<void> {
  const folder = folderOf(command);
  if (!command.optsWithGlobals<Flags>().yes)
    throw new Problem(`reset deletes everything the service in ${folder} holds; add --yes if that is what you want`);
  await resetStore(folder, Date.now());
  print(`${folder} is empty; its token is still valid`);
}

function save(file: string, _: Flags, command: Command): void {
  exportStore(folderOf(command), resolve(file));
  print(`${resolve(file)} holds everything, including the key to its secrets and a token: keep it to yourself`);
}

function restore(file: string, _: Flags, command: Command): void {
  importStore(folderOf(command), resolve(file));
  print(`${folderOf(command)} holds what was exported`);
}

/** Adds these commands. */
export function addData(program: Command): void {
  program
    .command("seed <file>")
    .description("create the objects that a JSON file describes, unless they exist; the service need not run")
    .action(fill);
  program
    .command("reset")
    .description("delete all objects of the service; its token stays valid")
    .option("--yes", "confirm the deletion")
    .action(reset);
  program
    .command("export <file>")
    .description("write all data, including the key of the secrets, to one file; the service may run")
    .action(save);
  program.command("import <file>").description("restore an export into an empty data folder").action(restore);
}

// The commands seed, reset, export and import, which handle the data as a whole.
import { resolve } from "node:path";
import type { Command } from "commander";
import { ownCommand } from "../ownCommand.ts";
import { dataFolder } from "../local/options.ts";
import { Problem } from "../local/problem.ts";
import { exportStore, importStore, resetStore } from "../store/transfer.ts";
import { keyFileOption, storeOption, type StoreFlags } from "./storeOptions.ts";
import { momentWithZone } from "./moment.ts";
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

interface ExportFlags extends Flags, StoreFlags {
  readonly at?: number;
}

async function save(file: string | undefined, _: ExportFlags, command: Command): Promise<void> {
  const { store: url, keyFile, at } = command.optsWithGlobals<ExportFlags>();
  const folder = folderOf(command);
  if (url === undefined) {
    if (at !== undefined) throw new Problem("--at needs --store: a data folder has no past");
    exportStore(folder, resolve(requireFile(file, "export")));
    process.stderr.write(
      "machines-service: an export has no rows of Postgres clusters and no bytes of volumes; machines-service backup stores them too\n",
    );
    return print(`${file} holds everything else, including the key to its secrets and a token: keep it to yourself`);
  }
  refuseFile(file);
  const { readStoreKey } = await import("../local/sharedStore.ts");
  const { exportMoment, moveOutOfStore } = await import("../local/storeTransfer.ts");
  const address = { url, key: readStoreKey(keyFile) };
  if (at === undefined) {
    await moveOutOfStore(folder, address);
    return print(`the data are in ${folder} now; to serve them: ${ownCommand("start", folder)}`);
  }
  await exportMoment(folder, address, at);
  print(
    `${folder} has what the store had at ${new Date(at).toISOString()}; to look at it: ${ownCommand("start", folder)}`,
  );
}

async function restore(file: string | undefined, _: Flags, command: Command): Promise<void> {
  const { store: url, keyFile } = command.optsWithGlobals<StoreFlags>();
  const folder = folderOf(command);
  if (url === undefined) {
    importStore(folder, resolve(requireFile(file, "import")));
    return print(`${folder} holds what was exported`);
  }
  refuseFile(file);
  const { readStoreKey } = await import("../local/sharedStore.ts");
  const { moveIntoStore } = await import("../local/storeTransfer.ts");
  await moveIntoStore(folder, { url, key: readStoreKey(keyFile) });
  print(`the data of ${folder} are in the store now; start the members with --store`);
}

function requireFile(file: string | undefined, name: string): string {
  if (file === undefined) throw new Problem(`${name} needs a file, or --store`);
  return file;
}

function refuseFile(file: string | undefined): void {
  if (file !== undefined)
    throw new Problem(
      `--store moves data from or to the folder of --data, and takes no file, got ${JSON.stringify(file)}`,
    );
}

/** Adds these commands. */
export function addData(program: Command): void {
  program
    .command("seed <file>")
    .description(
      "create the objects that a JSON file describes, unless they exist, in the running service, or in a folder without one",
    )
    .action(fill);
  program
    .command("reset")
    .description("delete all objects of the service; its token stays valid")
    .option("--yes", "confirm the deletion")
    .action(reset);
  program
    .command("export [file]")
    .description(
      "write all data, including the key of the secrets, to one file; the service may run. With --store, move the data of a store whose members are stopped to the empty folder of --data",
    )
    .addOption(storeOption())
    .addOption(keyFileOption())
    .option(
      "--at <time>",
      "write the folder as the store was at a moment, such as 2026-11-26T10:00Z; members may run",
      momentWithZone,
    )
    .action(save);
  program
    .command("import [file]")
    .description(
      "restore an export into an empty data folder. With --store, move the data of the folder of --data to an empty store; its service is stopped",
    )
    .addOption(storeOption())
    .addOption(keyFileOption())
    .action(restore);
}

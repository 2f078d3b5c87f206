// What a backup takes of the data folder, and where it goes. Commands load this, so it needs no service.
import { execFile } from "node:child_process";
import { copyFileSync, existsSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { writtenIn, type Written } from "../backup/backUp.ts";
import { files } from "../backup/contents.ts";
import { BackupError } from "../backup/backupError.ts";
import type { Repository } from "../backup/restic.ts";
import { historyFile } from "../history/history.ts";
import { accountFile } from "../runtime/acme/accountFile.ts";
import { rootFile, rootKeyFile } from "../runtime/localAuthority.ts";
import { reading } from "../store/reading.ts";
import { exportStore } from "../store/transfer.ts";
import { mainArguments } from "./entry.ts";
import type { LocalOptions } from "./options.ts";

/** How restic opens a repository. */
export type Opening = Pick<
  LocalOptions,
  "restic" | "backupPassphraseFile" | "backupPassphraseCommand" | "backupEnvironment"
>;

/** A repository with the options that open it. */
export const repositoryOf = (at: string, options: Opening): Repository => ({
  at,
  restic: options.restic,
  passphraseFile: options.backupPassphraseFile,
  passphraseCommand: options.backupPassphraseCommand,
  environmentFile: options.backupEnvironment,
});

/** Another process writes it, so that neither its processor time nor its memory delays the service. */
export async function writeStore(
  folder: string,
  target: string,
  signal: AbortSignal,
  store?: string,
  keyFile?: string,
): Promise<Written> {
  const command = mainArguments("backup", "draft", target, "--data", folder);
  // Others see the arguments of a process, and the URL may have a password.
  const env = {
    ...process.env,
    ...(store === undefined ? {} : { MACHINES_SERVICE_STORE: store }),
    ...(keyFile === undefined ? {} : { MACHINES_SERVICE_KEY_FILE: keyFile }),
  };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, command, { env, signal, maxBuffer: 1 << 28 });
    return JSON.parse(stdout) as Written;
  } catch (error) {
    signal.throwIfAborted();
    const { stderr = "" } = error as { readonly stderr?: string };
    throw new BackupError(
      stderr
        .trim()
        .split("\n")
        .at(-1)
        ?.replace(/^machines-service: /, "") || String(error),
    );
  }
}

/** Writes the store of a data folder, as an export, and what is beside it, into another folder. Returns what the store has. */
export async function writeDraft(
  folder: string,
  target: string,
  address: { url: string; key: Uint8Array } | undefined,
): Promise<Written> {
  const store = join(target, files.store);
  rmSync(store, { force: true });
  if (address === undefined) exportStore(folder, store);
  else {
    const { exportMoment } = await import("./storeTransfer.ts");
    const moment = join(target, "moment");
    // The last entry, although the clocks of the computers may differ.
    await exportMoment(moment, address, Date.now() + 60_000);
    exportStore(moment, store);
    rmSync(moment, { recursive: true });
  }
  for (const file of [rootFile(folder), rootKeyFile(folder), accountFile(folder)])
    if (existsSync(file)) copyFileSync(file, join(target, basename(file)));
  copyHistory(historyFile(folder), join(target, files.history));
  return reading(store, writtenIn);
}

function copyHistory(history: string, copy: string): void {
  if (!existsSync(history)) return;
  rmSync(copy, { force: true });
  reading(history, (db) => db.prepare("VACUUM INTO ?").run(copy));
}

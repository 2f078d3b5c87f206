// The options of backups.
import { Backups, policyOf } from "../backup/backups.ts";
import { repositoryOf, writeStore } from "./backupDraft.ts";
import { problemOf } from "./backupProblem.ts";
import { optionOf, type LocalOptions } from "./options.ts";
import { periodOf } from "./period.ts";
import { Problem } from "./problem.ts";

const least = 60_000;

/** The backups of a service that is about to start. Throws a Problem for the first option that is wrong. */
export function backupsOf(options: LocalOptions, folder: string): Backups {
  const { backup, backupEvery = "24h", backupKeep, postgres = "simulated", store, keyFile } = options;
  for (const name of ["backupEvery", "backupKeep"] as const)
    if (backup === undefined && options[name] !== undefined)
      throw new Problem(`${optionOf(name)} needs --backup, the repository`);
  const everyMs = periodOf(backupEvery, "--backup-every");
  if (everyMs < least) throw new Problem(`--backup-every takes a minute or more, got ${JSON.stringify(backupEvery)}`);
  try {
    return new Backups({
      ...{ folder, everyMs, postgres },
      policy: policyOf(backupKeep),
      repository: backup === undefined ? undefined : repositoryOf(backup, options),
      writeStore: (target, signal) => writeStore(folder, target, signal, store, keyFile),
    });
  } catch (error) {
    return problemOf(error);
  }
}

// A copy that recovers: it gets the changes since its backup from those that another cluster has kept.
import { existsSync } from "node:fs";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Account } from "./account.ts";
import { copyWritten, readSmall } from "./files.ts";
import type { Paths } from "./paths.ts";
import type { Recovery } from "./settings.ts";

/** Keeps where a copy finds the changes since its backup. */
export const writeRecovery = ({ recovery }: Paths, wanted: Recovery): Promise<void> =>
  writeFile(recovery, JSON.stringify(wanted), { mode: 0o600 });

/** What a copy recovers from; undefined if a cluster is no copy, or is ready. */
export async function recoveryFor(paths: Paths, account: Account): Promise<Recovery | undefined> {
  if (!existsSync(paths.recovery)) {
    await endRecovery(paths);
    return undefined;
  }
  const wanted = JSON.parse(await readFile(paths.recovery, "utf8")) as Recovery;
  await copyChanges(wanted.walFolder, paths, account);
  return { ...wanted, walFolder: relative(paths.data, paths.changes) };
}

/** A server cannot read the folder of another cluster, so it gets a copy of its changes. */
async function copyChanges(source: string, { changes, data }: Paths, account: Account): Promise<void> {
  if (existsSync(changes)) return;
  const draft = `${changes}.draft`;
  await rm(draft, { recursive: true, force: true });
  const label = readSmall(join(data, "backup_label"));
  const first = fileOf(label ?? "");
  await copyWritten(source, draft, (name) => (first !== undefined && isBefore(name, first) ? "omit" : "copy"));
  await account.own(draft);
  await rename(draft, changes);
}

/** Removes what a copy no longer needs when it is ready. */
export async function endRecovery({ recovery, changes, restored }: Paths): Promise<void> {
  await rm(recovery, { force: true });
  for (const folder of [changes, restored]) await rm(folder, { recursive: true, force: true });
}

/** The file of changes that a backup with this label begins with. */
const fileOf = (label: string): string | undefined => /\(file ([0-9A-F]{24})\)/.exec(label)?.[1];

/** Whether a file of changes ends before another one begins. The first eight digits are the timeline. */
export const isBefore = (name: string, first: string): boolean =>
  /^[0-9A-F]{24}/.test(name) && name.slice(8, 24) < first.slice(8, 24);

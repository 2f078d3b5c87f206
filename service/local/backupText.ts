// What commands say about backups.
import type { LastResult } from "../backup/places.ts";
import { ago } from "./ago.ts";

const units = ["B", "kB", "MB", "GB", "TB"];

/** A number of bytes with its unit. */
export function sizeText(bytes: number): string {
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1000 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[power]}`;
}

/** The last backup as a sentence. */
export function lastBackup({ id, result, ended, reason, missing, lastComplete }: LastResult): string {
  const when = ago(ended, Date.now());
  const complete =
    lastComplete === undefined ? "none was complete" : `the last complete one is of ${ago(lastComplete, Date.now())}`;
  if (result === "failed") return `the last backup failed ${when}: ${reason} (${complete})`;
  if (result === "incomplete")
    return `the last backup ${id} is incomplete: ${missing.length} parts are missing (${complete})`;
  return `last backup: ${id}, complete, ${when}`;
}

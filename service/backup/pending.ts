// What the first start of a restored service has to do: it lies in the data folder until then.
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Restored } from "../lifecycle/restored.ts";
import { writePrivately } from "../store/privateFile.ts";
import { placesOf } from "./places.ts";

/** What the first start of a restored service has to do. */
export interface Pending extends Restored {
  /** The engines that the service had, as far as the backup knows them. */
  readonly runtime?: string | undefined;
  readonly postgres?: string | undefined;
}

const pendingFile = (folder: string): string => join(placesOf(folder).folder, "restored.json");

/** What the first start has to do; undefined if it was done. */
export function readPending(folder: string): Pending | undefined {
  const file = pendingFile(folder);
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Pending) : undefined;
}

/** The first start has done it. */
export const clearPending = (folder: string): void => rmSync(pendingFile(folder), { force: true });

/** Leaves it for the first start. */
export const writePending = (folder: string, pending: Pending): void =>
  writePrivately(pendingFile(folder), `${JSON.stringify(pending)}\n`);

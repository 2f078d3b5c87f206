// The identity of a data folder, by which a runtime recognizes what it started for this folder.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RandomBytes } from "../ids.ts";
import { writePrivately } from "./privateFile.ts";

/** Path of the identity. */
export const dataIdFile = (folder: string): string => join(folder, "data-id");

/**
 * The identity of the data: 16 hexadecimal digits. It is a file beside the store and no part of it, because a copy of the data in
 * another folder is another service.
 */
export function dataIdOf(folder: string | undefined, random: RandomBytes): string {
  const file = folder === undefined ? undefined : dataIdFile(folder);
  if (file !== undefined && existsSync(file)) {
    const id = readFileSync(file, "utf8").trim();
    if (/^[0-9a-f]{16}$/.test(id)) return id;
  }
  const id = Buffer.from(random(8)).toString("hex");
  if (file !== undefined) writePrivately(file, `${id}\n`);
  return id;
}

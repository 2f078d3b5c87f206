// The folder of the data.
import { chmodSync, mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { StoreError } from "./database.ts";

/**
 * Creates the folder of the data, which only its owner can read, and returns its absolute path.
 * @throws StoreError if that is impossible.
 */
export function prepareFolder(data: string): string {
  const folder = resolve(data);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
  } catch (error) {
    throw new StoreError(
      `${folder} cannot be the data folder (${error instanceof Error && "code" in error ? String(error.code) : "unknown"}). Choose another with --data.`,
    );
  }
  return folder;
}

// The file with the key of a vault.
import { readFileSync } from "node:fs";

/** Number of bytes of a key. */
export const keyBytes = 32;

/** A key as its file has it. */
export const keyText = (key: Uint8Array): string => `${Buffer.from(key).toString("base64")}\n`;

/** The key in a file; undefined if the file has none. Errors of the file are thrown. */
export function readKey(file: string): Uint8Array | undefined {
  const key = Buffer.from(readFileSync(file, "utf8").trim(), "base64");
  return key.length === keyBytes ? key : undefined;
}

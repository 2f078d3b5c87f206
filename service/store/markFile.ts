// The file with the counter of commits (mark.ts).
import { readFileSync } from "node:fs";

/** Path of the mark of a store. */
export const markFile = (file: string): string => `${file}-mark`;

// A fixed length, so that one write replaces the whole number.
const digits = 16;

/** The text of the file. */
export const markText = (count: number): string => `${String(count).padStart(digits, "0")}\n`;

/** The counter next to a store, or undefined when there is no valid one. */
export function readMark(file: string): number | undefined {
  try {
    const text = readFileSync(markFile(file), "latin1");
    return /^\d{16}\n$/.test(text) ? Number(text) : undefined;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

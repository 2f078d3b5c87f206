// Reads a file in order, so that the system has it in memory. The check of a store reads its pages in another order, which
// takes six times as long from a disk.
import { closeSync, openSync, readSync } from "node:fs";

const pieceBytes = 2 ** 20;

/** Reads the whole file. Not while this process has it open as a store: SQLite would lose its locks. */
export function readAhead(file: string): void {
  let opened: number | undefined;
  try {
    opened = openSync(file, "r");
    const piece = Buffer.allocUnsafe(pieceBytes);
    while (readSync(opened, piece) > 0);
  } catch {
    // Opening the store creates a missing file, and reports one that cannot be read.
  } finally {
    if (opened !== undefined) closeSync(opened);
  }
}

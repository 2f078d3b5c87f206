// Files that only the user can read and that survive a power failure.
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

function withFile(file: string, flags: string, act: (opened: number) => void): void {
  const opened = openSync(file, flags);
  try {
    act(opened);
  } finally {
    closeSync(opened);
  }
}

/** The text of a file without white space around it; undefined if the file does not exist. */
export const readIfThere = (file: string): string | undefined =>
  existsSync(file) ? readFileSync(file, "utf8").trim() : undefined;

/** Waits until the contents of a file are on the disk. */
export const syncFile = (file: string): void => withFile(file, "r+", fsyncSync);

/** Waits until the creation or removal of a file in this folder is on the disk. */
export const syncFolder = (file: string): void => withFile(dirname(file), "r", fsyncSync);

/** Writes a file atomically and durably; only the user can read it. */
export function writePrivately(file: string, contents: string | Uint8Array): void {
  const draft = `${file}.${process.pid}`;
  rmSync(draft, { force: true });
  writeFileSync(draft, contents, { mode: 0o600, flag: "wx", flush: true });
  renameSync(draft, file);
  syncFolder(file);
}

/**
 * Makes a file readable for its user only. A link is left alone, because its target may belong to others. The file is not opened: with
 * the descriptor that it closes, a process loses all locks of SQLite on that file.
 */
export function keepPrivate(file: string): void {
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() === true) chmodSync(file, 0o600);
}

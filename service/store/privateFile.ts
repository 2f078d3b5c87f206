// Files that only the user can read, and that are still there when the power has failed.
import {
  closeSync,
  constants,
  fchmodSync,
  fsyncSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

function withFile(file: string, flags: number | string, act: (opened: number) => void): void {
  const opened = openSync(file, flags);
  try {
    act(opened);
  } finally {
    closeSync(opened);
  }
}

/** Waits until what a file holds is on the disk. */
export const syncFile = (file: string): void => withFile(file, "r+", fsyncSync);

/** Waits until the name of a file is on the disk: that it is there, or gone. */
export const syncFolder = (file: string): void => withFile(dirname(file), "r", fsyncSync);

/** Writes a file that only the user can read, whole or not at all; it is on the disk afterwards. */
export function writePrivately(file: string, text: string): void {
  const draft = `${file}.${process.pid}`;
  rmSync(draft, { force: true });
  writeFileSync(draft, text, { mode: 0o600, flag: "wx", flush: true });
  renameSync(draft, file);
  syncFolder(file);
}

/** Lets nobody else read a file. A link is left alone: what it leads to need not be ours. */
export function keepPrivate(file: string): void {
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) return;
  withFile(file, constants.O_RDONLY | constants.O_NOFOLLOW, (opened) => fchmodSync(opened, 0o600));
}

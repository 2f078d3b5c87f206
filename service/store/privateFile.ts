// Files that only the user can read and that survive a power failure.
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fchownSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

function withFile(file: string, flags: string | number, act: (opened: number) => void): void {
  const opened = openSync(file, flags, 0o600);
  try {
    act(opened);
  } finally {
    closeSync(opened);
  }
}

/** The text of a file without white space around it; undefined if the file does not exist. */
export const readIfThere = (file: string): string | undefined =>
  existsSync(file) ? readFileSync(file, "utf8").trim() : undefined;

/** Gives a new file to the owner of its folder, if the user is root. */
export const leaveToOwner = (file: string): void =>
  withFile(file, constants.O_RDWR | constants.O_NOFOLLOW, (opened) => giveToOwner(opened, file));

/** Waits until the contents of a file are on the disk. */
export const syncFile = (file: string): void => withFile(file, "r+", fsyncSync);

/** Waits until the creation or removal of a file in this folder is on the disk. */
export const syncFolder = (file: string): void => withFile(dirname(file), "r", fsyncSync);

/**
 * Gives a file that root creates to the owner of its folder: commands of root must leave nothing that the service of another user cannot
 * use. By its descriptor, because that user may have put a link in its place.
 */
function giveToOwner(opened: number, file: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(file));
  if (uid !== 0) fchownSync(opened, uid, gid);
}

/** Creates a file that only the user can read, or the owner of its folder if the user is root. It must not exist. */
export function createPrivately(file: string, contents: string | Uint8Array): void {
  withFile(file, "wx", (opened) => {
    giveToOwner(opened, file);
    writeFileSync(opened, contents);
    fsyncSync(opened);
  });
}

/** Writes a file atomically and durably; only the user can read it, or the owner of its folder if the user is root. */
export function writePrivately(file: string, contents: string | Uint8Array): void {
  const draft = `${file}.${process.pid}`;
  rmSync(draft, { force: true });
  createPrivately(draft, contents);
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

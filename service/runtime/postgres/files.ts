// Files in folders that a server can write: its clients may have put anything there. A service that is root must not be led elsewhere.
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, type Stats } from "node:fs";
import { chmod, copyFile, mkdir, open, readdir, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../errorCode.ts";

// Neither follows a link, nor waits for the other end of a pipe.
const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
const flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;

/** The longest file of a server that is read as a whole. */
const most = 4096;

/** The beginning of a small file that a server has written; undefined if there is none. */
export function readSmall(path: string): string | undefined {
  let file: number;
  try {
    file = openSync(path, flags);
  } catch {
    return undefined;
  }
  try {
    if (!fstatSync(file).isFile()) return undefined;
    const bytes = Buffer.alloc(most);
    return bytes.toString("utf8", 0, readSync(file, bytes, 0, most, 0));
  } finally {
    closeSync(file);
  }
}

/** Which entries of a folder are copied, and how. */
export type Choice = (name: string) => "copy" | "empty" | "omit";

/** Folders in one another that are walked. PostgreSQL has three; a client could make thousands, and each is open meanwhile. */
const deepest = 16;

/** A path that leads to an entry of an open folder, wherever that folder has been moved. */
const entryOf = (folder: FileHandle, path: string, name: string): string =>
  process.platform === "linux" ? `/proc/self/fd/${folder.fd}/${name}` : join(path, name);

const unlessGone = async <T>(work: Promise<T>): Promise<T | undefined> => {
  try {
    return await work;
  } catch (error) {
    // It was removed meanwhile, or it is a link or no folder any more.
    if (["ENOENT", "ELOOP", "ENOTDIR", "ENXIO"].includes(codeOf(error))) return undefined;
    throw error;
  }
};

/**
 * Copies the folders and files of a server that may be writing them; what it removes meanwhile is left out. So are links, and files
 * that are not the server's: the copy would show them to it.
 */
export async function copyWritten(from: string, to: string, choose: Choice): Promise<void> {
  const folder = await open(from, flags | O_DIRECTORY);
  try {
    await copyEntries(folder, from, to, choose, (await folder.stat()).uid, deepest);
  } finally {
    await folder.close();
  }
}

async function copyEntries(
  folder: FileHandle,
  from: string,
  to: string,
  choose: Choice,
  owner: number,
  depth: number,
): Promise<void> {
  if (depth === 0) return;
  await mkdir(to, { recursive: true, mode: 0o700 });
  for (const name of await readdir(entryOf(folder, from, ""))) {
    const choice = choose(name);
    const target = join(to, name);
    if (choice === "empty") await mkdir(target, { mode: 0o700 });
    if (choice !== "copy") continue;
    await withEntry(folder, from, name, async (entry, path, stat) => {
      if (stat.uid !== owner) return;
      if (stat.isDirectory()) await copyEntries(entry, path, target, choose, owner, depth - 1);
      else if (stat.isFile()) {
        await copyOpen(entry, path, target);
        // The copy is the service's: the server must not choose that it runs as root.
        await chmod(target, stat.mode & 0o700);
      }
    });
  }
}

/** Does work with an open entry of an open folder, unless it is gone or a link. */
async function withEntry(
  folder: FileHandle,
  path: string,
  name: string,
  work: (entry: FileHandle, path: string, stat: Stats) => Promise<void>,
): Promise<void> {
  const entry = await unlessGone(open(entryOf(folder, path, name), flags));
  if (!entry) return;
  try {
    await work(entry, join(path, name), await entry.stat());
  } finally {
    await entry.close();
  }
}

const copyOpen = (file: FileHandle, path: string, target: string): Promise<void | undefined> =>
  process.platform === "linux"
    ? copyFile(`/proc/self/fd/${file.fd}`, target, constants.COPYFILE_FICLONE)
    : unlessGone(copyFile(path, target, constants.COPYFILE_FICLONE));

/** Gives a user a folder and the folders and files in it; the folder itself last. Links, and files with a second name, stay as they are. */
export async function ownAll(path: string, uid: number, gid: number): Promise<void> {
  const folder = await open(path, flags | O_DIRECTORY);
  try {
    await ownEntries(folder, path, uid, gid, deepest);
    await folder.chown(uid, gid);
  } finally {
    await folder.close();
  }
}

async function ownEntries(folder: FileHandle, path: string, uid: number, gid: number, depth: number): Promise<void> {
  if (depth === 0) return;
  for (const name of await readdir(entryOf(folder, path, "")))
    await withEntry(folder, path, name, async (entry, inner, stat) => {
      if (stat.isDirectory()) await ownEntries(entry, inner, uid, gid, depth - 1);
      // A file with a second name may be one from elsewhere, which is nobody's to give.
      if (stat.isDirectory() || (stat.isFile() && stat.nlink === 1)) await entry.chown(uid, gid);
    });
}

/** Removes what is neither a folder nor a file of its own from a folder of the service that others could write before. */
export async function removeLinks(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const stat = lstatSync(path);
    if (!stat.isDirectory() && (!stat.isFile() || stat.nlink > 1)) await rm(path, { force: true });
  }
}

/** The end of a file that a server may write while it is read. */
export function readEnd(path: string, bytes: number): string {
  const file = openSync(path, flags);
  try {
    const { size } = fstatSync(file);
    const end = Buffer.alloc(Math.min(bytes, size));
    return end.toString("utf8", 0, readSync(file, end, 0, end.length, size - end.length));
  } finally {
    closeSync(file);
  }
}

// Files in folders that a server can write: its clients may have put anything there. A service that is root must not be led elsewhere.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { copyFile, mkdir, open, readdir, type FileHandle } from "node:fs/promises";
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
    await copyEntries(folder, from, to, choose, (await folder.stat()).uid);
  } finally {
    await folder.close();
  }
}

async function copyEntries(folder: FileHandle, from: string, to: string, choose: Choice, owner: number): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 });
  for (const name of await readdir(entryOf(folder, from, ""))) {
    const choice = choose(name);
    const target = join(to, name);
    if (choice === "omit") continue;
    if (choice === "empty") {
      await mkdir(target, { mode: 0o700 });
      continue;
    }
    const entry = await unlessGone(open(entryOf(folder, from, name), flags));
    if (!entry) continue;
    try {
      const stat = await entry.stat();
      if (stat.uid !== owner) continue;
      if (stat.isDirectory()) await copyEntries(entry, join(from, name), target, choose, owner);
      else if (stat.isFile()) await copyOpen(entry, join(from, name), target);
    } finally {
      await entry.close();
    }
  }
}

const copyOpen = (file: FileHandle, path: string, target: string): Promise<void | undefined> =>
  process.platform === "linux"
    ? copyFile(`/proc/self/fd/${file.fd}`, target, constants.COPYFILE_FICLONE)
    : unlessGone(copyFile(path, target, constants.COPYFILE_FICLONE));

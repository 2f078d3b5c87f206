// Archives whose bytes depend only on the files in them: sorted, without owners, and all of the same time.
import fs from "node:fs";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import tar from "tar-stream";

/** The time of every entry. It is that of the archives that npm writes, and not the commit's: so equal files give equal archives. */
const TIME = new Date("1985-10-26T08:15:00.000Z");

/**
 * Writes a .tar.gz with the contents of a folder.
 * @param {string} file
 * @param {string} folder
 * @param {(name: string) => boolean} [wanted] which names of the folder itself it has; all of them if it is not given
 */
export async function writeArchive(file, folder, wanted = () => true) {
  const pack = tar.pack();
  const written = pipeline(pack, createGzip(), fs.createWriteStream(file));
  const names = fs.readdirSync(folder).filter(wanted);
  await Promise.all([add(pack, folder, names).then(() => pack.finalize()), written]);
}

/** Adds these names of a folder, and all that they contain. */
async function add(pack, folder, names, prefix = "") {
  for (const name of names.toSorted(byCodeUnit)) {
    const file = path.join(folder, name);
    const stat = fs.lstatSync(file);
    const at = `${prefix}${name}`;
    const common = { mtime: TIME, uid: 0, gid: 0, uname: "", gname: "" };
    if (stat.isDirectory()) {
      pack.entry({ ...common, name: `${at}/`, type: "directory", mode: 0o755 });
      await add(pack, file, fs.readdirSync(file), `${at}/`);
      continue;
    }
    if (!stat.isFile()) throw new Error(`${file} is neither a file nor a folder, so it cannot be packed`);
    // The other bits of the mode depend on the umask with which the clone was made.
    const entry = pack.entry({ ...common, name: at, size: stat.size, mode: stat.mode & 0o100 ? 0o755 : 0o644 });
    await pipeline(fs.createReadStream(file), entry);
  }
}

/** The order of names on every computer, whatever its language is. */
export const byCodeUnit = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

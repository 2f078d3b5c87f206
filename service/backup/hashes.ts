// The hashes of stored contents. A rehearsal compares restored contents with them.
import { BackupError } from "./backupError.ts";
import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { pipeline } from "node:stream/promises";

async function addFile(hash: Hash, file: string): Promise<number> {
  let bytes = 0;
  await pipeline(createReadStream(file), async function (source) {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      hash.update(chunk);
      bytes += chunk.length;
    }
  });
  return bytes;
}

/** The hash of a file. */
export async function hashOfFile(file: string): Promise<string> {
  const hash = createHash("sha256");
  await addFile(hash, file);
  return hash.digest("hex");
}

/** The hash of the names and contents of all files below a folder, and their bytes. */
export async function hashOfFolder(folder: string): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = found.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
  const hash = createHash("sha256");
  let bytes = 0;
  for (const path of paths.sort()) {
    const ofFile = createHash("sha256");
    bytes += await addFile(ofFile, path);
    hash.update(`${relative(folder, path)}\0${ofFile.digest("hex")}\n`);
  }
  return { bytes, sha256: hash.digest("hex") };
}

/** Throws a BackupError if restored contents have another hash than those that were stored. */
export function requireSame(found: string, wanted: string): void {
  if (found !== wanted)
    throw new BackupError(`its contents have the hash ${found.slice(0, 12)}, and ${wanted.slice(0, 12)} was stored`);
}

// The per-user cache, for what takes long to install and is the same for every clone.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Stop } from "../lib/process.mjs";

/** The directory of the cache; `what` is named if it is not writable. */
export function userCache(what) {
  const base = process.env.XDG_CACHE_HOME;
  const dir = path.join(base && path.isAbsolute(base) ? base : path.join(os.homedir(), ".cache"), "pulumi-machines");
  try {
    fs.mkdirSync(dir, { recursive: true });
    fs.accessSync(dir, fs.constants.W_OK);
  } catch (error) {
    throw new Stop(
      `${what} is kept in ${dir}, which cannot be written (${error.code}). Set XDG_CACHE_HOME to a directory that can.`,
    );
  }
  return dir;
}

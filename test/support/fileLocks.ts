// The locks that the system has of a process, where it lists them.
import { existsSync, readFileSync, statSync } from "node:fs";

const list = "/proc/locks";

/** Whether they can be seen. */
export const hasLocks = existsSync(list);

/** Whether a process has a lock on a file. */
function isLockedBy(pid: number, file: string): boolean {
  const own = new RegExp(` ${pid} \\S+:${statSync(file).ino} `);
  return readFileSync(list, "utf8")
    .split("\n")
    .some((line) => own.test(line));
}

/** Whether a process has the locks of a store or a history that it uses. */
export const locksStore = (pid: number, file: string): boolean =>
  [file, `${file}-shm`].every((one) => isLockedBy(pid, one));

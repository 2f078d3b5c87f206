// Writes the log to stderr, which is a file in the data folder when the service runs in the background.
import { chmodSync, copyFileSync, fstatSync, ftruncateSync, openSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Size in bytes at which the log is rotated. */
const largestLog = 10_000_000;

/** Path of the log of the background service. */
export const logFile = (folder: string): string => join(folder, "service.log");

/** Path of the rotated log; it replaces the previous one. */
export const olderLog = (folder: string): string => `${logFile(folder)}.1`;

/** Opens the log for a service; only the user can read it. */
export function openLog(folder: string): number {
  const file = logFile(folder);
  const log = openSync(file, "a", 0o600);
  chmodSync(file, 0o600);
  return log;
}

const stderr = 2;

/** Size of the folder's log if stderr is that file; undefined if it is not. */
function sizeOfLog(folder: string): number | undefined {
  try {
    const [open, named] = [fstatSync(stderr), statSync(logFile(folder))];
    return open.ino === named.ino && open.dev === named.dev ? open.size : undefined;
  } catch {
    return undefined;
  }
}

/** Writes to stderr; if that is the folder's log, rotates it when it has grown large. */
export class Log {
  readonly #folder: string;
  #size: number | undefined;
  #lines: string[] = [];

  constructor(folder: string) {
    this.#folder = folder;
    this.#size = sizeOfLog(folder);
    this.#look();
  }

  /** Writes all lines of a turn of the event loop at once: single writes would slow a busy service down. */
  readonly write = (line: string): void => {
    if (this.#lines.push(line) === 1) setImmediate(() => this.flush());
  };

  /** Writes the pending lines. The service continues when that fails, for instance because the disk is full. */
  flush(): void {
    const text = this.#lines.join("");
    this.#lines = [];
    try {
      const written = writeSync(stderr, text);
      if (this.#size !== undefined) this.#size += written;
    } catch {
      // There is no other place to report it.
    }
    this.#look();
  }

  // The file is copied and truncated: stderr cannot be redirected, and Node.js writes its last messages there too.
  #look(): void {
    if (this.#size === undefined || this.#size <= largestLog) return;
    try {
      copyFileSync(logFile(this.#folder), olderLog(this.#folder));
      ftruncateSync(stderr, 0);
      this.#size = 0;
    } catch {
      // The disk is full, and there is no other place to report it.
    }
  }
}

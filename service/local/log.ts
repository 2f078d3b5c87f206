// The log: lines on stderr, which is a file of the data folder when the service runs in the background.
import { chmodSync, copyFileSync, fstatSync, ftruncateSync, openSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Bytes of the log at which another is begun. */
const largestLog = 10_000_000;

/** Log of the service in the background. */
export const logFile = (folder: string): string => join(folder, "service.log");

/** Where it is put when another is begun; the one before is forgotten. */
export const olderLog = (folder: string): string => `${logFile(folder)}.1`;

/** Opens the log for a service that is to write there; only the user can read it. */
export function openLog(folder: string): number {
  const file = logFile(folder);
  const log = openSync(file, "a", 0o600);
  chmodSync(file, 0o600);
  return log;
}

const stderr = 2;

/** Bytes of the folder's log when that is what stderr goes to; undefined when it goes elsewhere. */
function sizeOfLog(folder: string): number | undefined {
  try {
    const [open, named] = [fstatSync(stderr), statSync(logFile(folder))];
    return open.ino === named.ino && open.dev === named.dev ? open.size : undefined;
  } catch {
    return undefined;
  }
}

/** Writes to stderr; where that is the folder's log, puts it aside whenever it has grown large. */
export class Log {
  readonly #folder: string;
  #size: number | undefined;
  #lines: string[] = [];

  constructor(folder: string) {
    this.#folder = folder;
    this.#size = sizeOfLog(folder);
    this.#look();
  }

  /** One write for all lines of a turn of the event loop: a busy service would spend its time on them. */
  readonly write = (line: string): void => {
    if (this.#lines.push(line) === 1) setImmediate(() => this.flush());
  };

  /** Writes what is still to be written. A log that cannot be written (a full disk) is no reason to stop serving. */
  flush(): void {
    const text = this.#lines.join("");
    this.#lines = [];
    try {
      const written = writeSync(stderr, text);
      if (this.#size !== undefined) this.#size += written;
    } catch {
      // There is nowhere left to say it.
    }
    this.#look();
  }

  // Copied and emptied, for stderr cannot be made another file, and what Node.js itself says when it ends goes there too.
  #look(): void {
    if (this.#size === undefined || this.#size <= largestLog) return;
    try {
      copyFileSync(logFile(this.#folder), olderLog(this.#folder));
      ftruncateSync(stderr, 0);
      this.#size = 0;
    } catch {
      // There is no room for it, and nowhere left to say so.
    }
  }
}

// Takes away what depends on the computer: compression and writes to the disk that end on another thread whenever they like, and time
// that passes while code runs. Otherwise a seed would not repeat a run. Imported before anything that uses them. Nothing is compressed:
// that took a tenth of the time, and decides on nothing.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import zlib from "node:zlib";

type Done = (error: Error | null, result: Buffer) => void;

const copy = (bytes: Uint8Array, done: Done): void => done(null, Buffer.from(bytes));
Object.assign(zlib, { zstdCompress: copy, zstdDecompress: copy });
// What is written is on a RAM disk.
Object.assign(fs, { fdatasync: (_: number, done: (error: Error | null) => void) => void setImmediate(done, null) });
syncBuiltinESMExports();

/** Stops the time that code measures for itself; returns how to let it pass again. */
export function stopTime(): () => void {
  const stopped = Object.assign(performance, { now: () => 0 });
  return () => void Reflect.deleteProperty(stopped, "now");
}

/** Milliseconds of real time, also while it is stopped for others. */
export const realNow: () => number = performance.now.bind(performance);

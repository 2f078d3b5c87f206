// When a store was last written, as its files say.
import { statSync } from "node:fs";

/**
 * Milliseconds since 1970, by the clock of that time; undefined if there is no store yet. A change is in the log first, and the other
 * file may keep a date that was ahead for long.
 */
export function lastWritten(file: string): number | undefined {
  const [store, log] = [file, `${file}-wal`].map((one) => statSync(one, { throwIfNoEntry: false }));
  return (log !== undefined && log.size > 0 ? log : store)?.mtimeMs;
}

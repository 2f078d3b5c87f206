// When a store was last written, as its files say.
import { statSync } from "node:fs";

/** Milliseconds since 1970, by the clock of that time; undefined if there is no store yet. */
export function lastWritten(file: string): number | undefined {
  const times = [file, `${file}-wal`].flatMap((one) => statSync(one, { throwIfNoEntry: false })?.mtimeMs ?? []);
  return times.length === 0 ? undefined : Math.max(...times);
}

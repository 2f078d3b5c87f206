// Writes files, none of them halfway, and none over a file of the user's.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { MachinesError } from "../../provider/client/errors.ts";

/** A file to write. */
export interface ToWrite {
  readonly name: string;
  readonly text: string;
  /** Whether the file that exists is to be kept, because it holds all of the new one. */
  readonly isResumed?: (before: string, next: string) => boolean;
}

/**
 * Writes files into this folder and returns the names of those that it changed.
 * @throws MachinesError `refused` if one exists with another text; then none is written
 */
export function writeFiles(files: readonly ToWrite[], isForced: boolean): readonly string[] {
  const changed = files.filter(({ name, text, isResumed }) => {
    if (!existsSync(name)) return true;
    const before = readFileSync(name, "utf8");
    return before !== text && (isForced || isResumed?.(before, text) !== true);
  });
  const taken = changed.filter(({ name }) => existsSync(name)).map(({ name }) => name);
  if (taken.length > 0 && !isForced)
    throw new MachinesError(
      "refused",
      `${taken.join(", ")} in ${process.cwd()} would be overwritten: name another folder with --out, or add --force`,
    );
  for (const { name, text } of changed) {
    // A killed run leaves the old file or the new one, and never a part.
    const draft = `${name}.draft`;
    writeFileSync(draft, text);
    renameSync(draft, name);
  }
  return changed.map(({ name }) => name);
}

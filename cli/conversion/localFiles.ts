// Files of this computer that a deployment file puts into a program. Others may have written it, so it names only files beside it.
import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, relative, resolve, sep } from "node:path";
import { didYouMean } from "../../api/didYouMean.ts";
import { quotable } from "../../api/printable.ts";
import { MachinesError } from "../../provider/client/errors.ts";
import { quoted } from "../orphans/importFile.ts";

/** The contents of a file, or why it must not be read; undefined if it cannot be. */
export type ReadFile = (path: string) => Buffer | Refused | undefined;

/** Why a file is not read. */
export class Refused {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

/** The files that a deployment file may name. */
export interface LocalFiles {
  readonly read: ReadFile;
  /** @throws MachinesError `invalid-input` for a file that the user allowed and that nothing names */
  readonly finish: () => void;
}

/**
 * Reads the files below the folder of a deployment file, and those that the user allowed (F57).
 * @param allowed paths as the deployment file has them
 */
export function filesBeside(file: string, allowed: readonly string[] = []): LocalFiles {
  const named = new Set<string>();
  const read: ReadFile = (path) => {
    named.add(path);
    const folder = realOf(dirname(resolve(file)));
    const target = realOf(resolve(folder, path));
    if (!isBelow(folder, target) && !allowed.includes(path))
      return new Refused(
        `${quotable(path)} is not in the folder of the file; to put it into the program, add --allow-file ${quotable(quoted(path))}`,
      );
    try {
      return statSync(target).isFile() ? readFileSync(target) : undefined;
    } catch {
      return undefined;
    }
  };
  const finish = (): void => {
    const stray = allowed.find((path) => !named.has(path));
    if (stray === undefined) return;
    const meant = didYouMean(stray, [...named]);
    throw new MachinesError(
      "invalid-input",
      `--allow-file ${stray}: the file has no such local_path${meant === undefined ? "" : `; did you mean ${meant}?`}`,
    );
  };
  return { read, finish };
}

/** The path without symbolic links, as far as it exists. */
function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : resolve(realOf(parent), path.slice(parent.length).replace(/^[\\/]/, ""));
  }
}

function isBelow(folder: string, target: string): boolean {
  const way = relative(folder, target);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

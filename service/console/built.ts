// Finds the files of the console that the build writes beside the code of this package.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** The folder with the code of this package: `service/`, or `dist/service/` when built. */
export const ownFolder = (): string =>
  // When run from its sources there is no __filename, but then this process is the command, which is in that folder.
  typeof __filename === "string" ? join(dirname(__filename), "..") : dirname(process.argv[1] ?? "");

/** Path of a file in `dist/console`; undefined if it is missing. */
export function builtFile(name: string): string | undefined {
  const own = ownFolder();
  return [join(own, "dist/console", name), join(own, "../console", name)].find((file) => existsSync(file));
}

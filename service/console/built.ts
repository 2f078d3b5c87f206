// Finds the files of the console that the build writes beside the code of this package.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** Path of a file in `dist/console`; undefined if it is missing. */
export function builtFile(name: string): string | undefined {
  // When run from its sources there is no __filename, but then this process is the command, which is in that folder.
  const own = typeof __filename === "string" ? join(dirname(__filename), "..") : dirname(process.argv[1] ?? "");
  // That folder is `service/`, or `dist/service/` when built.
  return [join(own, "dist/console", name), join(own, "../console", name)].find((file) => existsSync(file));
}

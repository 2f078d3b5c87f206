// Where the command of this package lies, whatever way the package was loaded.
import { dirname, extname, join } from "node:path";

/** Path of main: beside this folder, as JavaScript once it is built, as TypeScript in the repository. */
export function mainFile(): string {
  // Run from its sources there is no __filename, but then it is the command that runs.
  if (typeof __filename !== "string") return process.argv[1] ?? "";
  return join(dirname(__filename), "..", `main${extname(__filename)}`);
}

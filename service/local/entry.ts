// Finds the command of this package, however the package was loaded.
import { dirname, extname, join } from "node:path";

/** The arguments with which Node.js runs a command of this package. */
export const mainArguments = (...words: readonly string[]): string[] => [
  "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
  mainFile(),
  ...words,
];

/** Path of main: JavaScript in a built package, TypeScript in the repository. */
export function mainFile(): string {
  // When run from its sources there is no __filename, but then this process is the command.
  if (typeof __filename !== "string") return process.argv[1] ?? "";
  // The build bundles this file into `dist/service/chunks/`, which is as deep as the folder of this file.
  return join(dirname(__filename), "..", `main${extname(__filename)}`);
}

// Finds the command of this package, however the package was loaded.
import { dirname, extname, join } from "node:path";

/**
 * The folder with main: `service/`, or `dist/service/` when built. The build bundles this file into `dist/service/chunks/`, which is as
 * deep as the folder of this file.
 */
const folder = (): string =>
  // When run from its sources there is no __filename, but then this process is the command.
  typeof __filename === "string" ? join(dirname(__filename), "..") : dirname(process.argv[1] ?? "");

/** Path of main: JavaScript in a built package, TypeScript in the repository. */
export const mainFile = (): string =>
  typeof __filename === "string" ? join(folder(), `main${extname(__filename)}`) : (process.argv[1] ?? "");

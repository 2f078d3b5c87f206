import { readFileSync } from "node:fs";
import { BackupError } from "./backupError.ts";

/** The variables in the file that an option names, as `NAME=value` on each line; `#` begins a comment. */
export function variablesIn(option: string, file: string): NodeJS.ProcessEnv {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new BackupError(`${option} ${file} cannot be read: ${String((error as { code?: string }).code)}`);
  }
  const lines = text.split("\n").map((line) => line.trim().replace(/^export /, ""));
  return Object.fromEntries(
    lines
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line, index) => {
        const [, name, value] = /^([A-Za-z_]\w*)=(.*)$/.exec(line) ?? [];
        if (name === undefined || value === undefined)
          throw new BackupError(`${option} ${file}: line ${index + 1} must be NAME=value`);
        return [name, value.replace(/^(["'])(.*)\1$/, "$2")];
      }),
  );
}

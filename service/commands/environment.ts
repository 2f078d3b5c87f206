// Options as environment variables. Commander reads them; what it would misread is put right here.
import type { Command, Option } from "commander";
import { Problem } from "../local/problem.ts";

/** Gives an option the variable `MACHINES_SERVICE_` and its name. */
export const fromEnvironment = (option: Option): Option =>
  option.env(`MACHINES_SERVICE_${option.name().replace(/-/g, "_").toUpperCase()}`);

/**
 * An empty variable is one that is not set, and a flag may be set to false: commander takes a flag whose variable is there
 * for true, whatever it says. Changes the environment of this process.
 */
export function tidyEnvironment(command: Command): void {
  for (const option of command.options) {
    const name = option.envVar;
    const value = name === undefined ? undefined : process.env[name];
    if (name === undefined || value === undefined) continue;
    const off = option.isBoolean() && /^(0|false)$/i.test(value);
    if (value === "" || off) delete process.env[name];
    else if (option.isBoolean() && !/^(1|true)$/i.test(value))
      throw new Problem(`invalid ${name}, got ${JSON.stringify(value)}, must be true or false`);
  }
  for (const inner of command.commands) tidyEnvironment(inner);
}

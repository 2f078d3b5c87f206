// Options as environment variables. Commander reads them; this file corrects the values that it would misread.
import type { Command, Option } from "commander";
import { Problem } from "../local/problem.ts";

/** Binds an option to the variable `MACHINES_SERVICE_` with its name. */
export const fromEnvironment = (option: Option): Option =>
  option.env(`MACHINES_SERVICE_${option.name().replace(/-/g, "_").toUpperCase()}`);

/**
 * Treats an empty variable as unset, and lets a flag be false: Commander reads every flag whose variable exists as true.
 * Changes the environment of this process.
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

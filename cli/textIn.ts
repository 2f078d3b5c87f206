// Reads a file that the user named.
import { readFileSync } from "node:fs";
import { MachinesError, messageOf } from "../provider/client/errors.ts";

/** The text of a file; `-` is standard input. @throws MachinesError `invalid-input` if it cannot be read */
export function textIn(file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    throw new MachinesError("invalid-input", `${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

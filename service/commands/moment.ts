// A moment in the options of commands.
import { InvalidArgumentError } from "commander";
import { parseDuration } from "../../api/schema.ts";

/** A time, or how long ago it was, in milliseconds since 1970. */
export function momentOf(text: string): number {
  const ago = parseDuration(text);
  const at = ago === undefined ? Date.parse(text) : Date.now() - ago / 1e6;
  if (Number.isNaN(at)) throw new InvalidArgumentError("It must be a duration such as 10m, or a time.");
  return at;
}

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

/** A time with its zone, in milliseconds since 1970. */
export function momentWithZone(text: string): number {
  const moment = Date.parse(text);
  // Without a zone, the same text would be another moment on another computer.
  if (Number.isNaN(moment) || !/(?:Z|[+-]\d\d:?\d\d)$/i.test(text))
    throw new InvalidArgumentError("It must be a time with its zone, such as 2026-11-26T10:00Z.");
  return moment;
}

// Times of options, such as `7d` and `12h`.
import { parseDuration } from "../../api/schema.ts";
import { Problem } from "./problem.ts";

/** Milliseconds of an option. */
export function periodOf(text: string, option: string, others = ""): number {
  const days = /^(\d{1,4})d$/.exec(text)?.[1];
  const nanoseconds = days === undefined ? parseDuration(text) : Number(days) * 86_400e9;
  if (nanoseconds !== undefined) return nanoseconds / 1e6;
  throw new Problem(`${option} takes a time such as 7d or 12h${others}, got ${JSON.stringify(text)}`);
}

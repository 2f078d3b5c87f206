// Moments relative to now.
import { expect, test } from "vitest";
import { ago } from "../../service/local/ago.ts";

const [second, minute, hour, day] = [1000, 60_000, 3_600_000, 86_400_000];

test.each([
  [0, "just now"],
  [-59 * second, "just now"],
  [59 * second, "just now"],
  [-minute, "1 minute ago"],
  [-59 * minute - 59 * second, "59 minutes ago"],
  [-hour, "1 hour ago"],
  [-23 * hour, "23 hours ago"],
  [-day, "1 day ago"],
  [-400 * day, "400 days ago"],
  [2 * hour, "in 2 hours"],
])("%i ms from now is %s", (difference, text) => expect(ago(1e12 + difference, 1e12)).toBe(text));

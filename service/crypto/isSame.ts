// Comparison of secrets.
import { timingSafeEqual } from "node:crypto";

/** Whether two texts or byte strings are the same, in a time that does not depend on where they differ. */
export function isSame(one: string | Uint8Array, other: string | Uint8Array): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

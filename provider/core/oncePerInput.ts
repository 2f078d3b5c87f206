// Leaves one error for each input.
import type { Finding } from "./resource.ts";

/**
 * The findings without those that say nothing more: others about an input that cannot be used anyway, and the same problem
 * of another input. A region that does not exist is not that of the volume either, and has no room.
 */
export function oncePerInput(all: readonly Finding[]): Finding[] {
  const errors = all.filter(({ isWarning, isNote }) => !isWarning && !isNote);
  const first = errors.filter(
    (one, i) =>
      !errors
        .slice(0, i)
        .some(({ path, message }) => message === one.message || (path.length > 0 && path[0] === one.path[0])),
  );
  return all.filter((one) =>
    one.isNote
      ? true
      : one.isWarning
        ? !first.some(({ path }) => path.length > 0 && path[0] === one.path[0])
        : first.includes(one),
  );
}

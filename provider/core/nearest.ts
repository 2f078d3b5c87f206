// The name somebody probably meant.
import { distance } from "fastest-levenshtein";

/** The known name nearest to a misspelt one, or undefined when none is near. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const plain = (text: string) => text.toLowerCase().replace(/[_-]/g, "");
  const ranked = known
    .map((candidate) => ({ candidate, far: distance(plain(name), plain(candidate)) }))
    .sort((a, b) => a.far - b.far);
  const best = ranked[0];
  return best && best.far <= Math.max(2, Math.floor(name.length / 3)) ? best.candidate : undefined;
}

// The known name that is closest to a misspelt one.
import { distance } from "fastest-levenshtein";

/** The known name nearest to a misspelt one, or undefined if none is similar. */
export function didYouMean(name: string, known: readonly string[]): string | undefined {
  const plain = (text: string) => text.toLowerCase().replace(/[_-]/g, "");
  /** `environment` suggests `env`: a truncated or extended word is similar, however long the rest is. */
  const far = (candidate: string): number => {
    const [shorter, longer] = [plain(name), plain(candidate)].sort((a, b) => a.length - b.length) as [string, string];
    return shorter.length >= 3 && longer.startsWith(shorter) ? 1 : distance(shorter, longer);
  };
  const ranked = known.map((candidate) => ({ candidate, far: far(candidate) })).sort((a, b) => a.far - b.far);
  const best = ranked[0];
  return best && best.far <= Math.max(2, Math.floor(name.length / 3)) ? best.candidate : undefined;
}

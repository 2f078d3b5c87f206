// Searches many stories for one that breaks an invariant, and shortens it.
import { realNow } from "./sameTurn.ts";
import fc from "fast-check";
import type { Bug } from "./bugs.ts";
import { play, type Result } from "./play.ts";
import { storyArbitrary, type Story } from "./story.ts";

/** Which stories are played. */
export interface Search {
  readonly runs: number;
  readonly seed: number;
  readonly bug?: Bug | undefined;
  /** Milliseconds after which shortening stops. */
  readonly shorteningMs?: number;
  /** Called for every story that passed. */
  readonly passed?: (result: Result) => void;
}

/** A story that breaks an invariant. */
export interface Found {
  readonly shortest: Story;
  /** What broke, and all that happened. */
  readonly text: string;
  /** The number of stories until the first one that broke it. */
  readonly after: number;
}

/** Plays stories until one breaks an invariant; undefined if none does. */
export async function search(wanted: Search): Promise<Found | undefined> {
  const { runs, seed, bug, shorteningMs = 120_000, passed: onPassed = () => undefined } = wanted;
  let until = Number.POSITIVE_INFINITY;
  let passed = 0;
  const property = fc.asyncProperty(storyArbitrary, async (story) => {
    if (realNow() > until) return;
    try {
      const one = await play(story, { bug });
      // Not while a failure is shortened.
      if (until === Number.POSITIVE_INFINITY) onPassed(one);
    } catch (error) {
      until = Math.min(until, realNow() + shorteningMs);
      throw error;
    }
    if (until === Number.POSITIVE_INFINITY) passed++;
  });
  const details = await fc.check(property, { numRuns: runs, seed });
  if (!details.failed) return undefined;
  const [shortest] = details.counterexample ?? [];
  const { errorInstance } = details;
  const text = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  if (!shortest) throw new Error(text);
  return { shortest, text, after: passed + 1 };
}

/** A readable failure: what broke, in which story, and how to repeat it from the file that it is written to. */
export const describeFound = (seed: number, { shortest, text }: Found, file: string): string =>
  [
    text,
    `The shortest story that shows it, of seed ${seed}:\n${JSON.stringify(shortest)}`,
    `Again: npm run test:universe -- --story ${file}`,
    `Step by step, with the service's console: npm run test:universe -- --story ${file} --console`,
  ].join("\n\n");

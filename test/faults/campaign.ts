// The fault campaign: many runs by chance, and the smallest one that breaks something.
import fc from "fast-check";
import { play, scenarioArbitrary, type Played, type Scenario } from "./scenario.ts";

/** Which runs are made. */
export interface Campaign {
  readonly runs: number;
  readonly seed: number;
  /** Repeats the one run that a failure named. */
  readonly path?: string | undefined;
  /** Told of every run that held. */
  readonly played?: (played: Played) => void;
}

/** What a campaign came to. */
export interface Verdict {
  readonly runs: number;
  /** Undefined when everything held. */
  readonly failure: { readonly path: string; readonly smallest: Scenario; readonly text: string } | undefined;
}

/** Makes the runs, and shrinks the first one that breaks something. */
export async function campaign({ runs, seed, path, played = () => undefined }: Campaign): Promise<Verdict> {
  const property = fc.asyncProperty(scenarioArbitrary, async (scenario) => played(await play(scenario)));
  const details = await fc.check(property, { numRuns: runs, seed, ...(path === undefined ? {} : { path }) });
  if (!details.failed) return { runs: details.numRuns, failure: undefined };
  const [smallest] = details.counterexample ?? [];
  const { errorInstance } = details;
  const text = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  if (!smallest) throw new Error(text);
  return { runs: details.numRuns, failure: { path: details.counterexamplePath ?? "", smallest, text } };
}

/** A failure for people: what broke, in which run, and how to have that run again. */
export const told = (seed: number, { path, smallest, text }: NonNullable<Verdict["failure"]>): string =>
  [
    text,
    `The smallest run that shows it:\n${JSON.stringify(smallest)}`,
    `Again: npm run test:faults -- --seed ${seed} --path ${path}`,
  ].join("\n\n");

// The fault campaign: many random runs, and the smallest one that breaks an invariant.
import fc from "fast-check";
import type { ResourceName } from "../../provider/registry.ts";
import { play, type Played } from "./player.ts";
import { scenarioArbitrary, type Scenario } from "./scenario.ts";
import { features, rareStates, type RareState } from "./ways.ts";

/** Which runs are drawn. */
export interface Campaign {
  readonly runs: number;
  readonly seed: number;
  /** Repeats the one run that a failure printed. */
  readonly path?: string | undefined;
  /** Draws only these of the {@link features}. */
  readonly only?: readonly string[] | undefined;
  /** Draws only these kinds of resources, in addition to the App that they are in. */
  readonly kinds?: readonly ResourceName[] | undefined;
  /** Called for every run that passed. */
  readonly played?: (played: Played) => void;
}

/** The result of a campaign. */
export interface Verdict {
  readonly runs: number;
  /** Rare states that no run reached. */
  readonly missed: readonly RareState[];
  /** Undefined if every run passed. */
  readonly failure: { readonly path: string; readonly smallest: Scenario; readonly text: string } | undefined;
}

/** Milliseconds after which shrinking stops. */
const shrinkingTakes = 60_000;

/** Plays the runs, and shrinks the first one that breaks an invariant. */
export async function campaign({
  runs,
  seed,
  path,
  only = features,
  kinds,
  played = () => undefined,
}: Campaign): Promise<Verdict> {
  const missed = new Set<RareState>(rareStates);
  let until = Infinity;
  const property = fc.asyncProperty(scenarioArbitrary(only, kinds), async (scenario) => {
    if (performance.now() > until) return;
    const one = await play(scenario).catch((error: unknown) => {
      until = Math.min(until, performance.now() + shrinkingTakes);
      throw error;
    });
    for (const state of one.states) missed.delete(state);
    played(one);
  });
  const details = await fc.check(property, {
    numRuns: runs,
    seed,
    ...(path === undefined ? {} : { path }),
  });
  if (!details.failed) return { runs: details.numRuns, missed: [...missed], failure: undefined };
  const [smallest] = details.counterexample ?? [];
  const { errorInstance } = details;
  const text = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  if (!smallest) throw new Error(text);
  const failure = { path: details.counterexamplePath ?? "", smallest, text };
  return { runs: details.numRuns, missed: [...missed], failure };
}

/** A readable failure: what broke, in which run, and how to repeat that run. */
export const describeFailure = (
  { seed, only, kinds }: Pick<Campaign, "seed" | "only" | "kinds">,
  { path, smallest, text }: NonNullable<Verdict["failure"]>,
): string =>
  [
    text,
    `The smallest run that shows it:\n${JSON.stringify(smallest)}`,
    `Again: npm run test:faults -- --seed ${seed} --path ${path}${only ? ` --only ${only.join(",")}` : ""}${kinds ? ` --kinds ${kinds.join(",")}` : ""}`,
  ].join("\n\n");

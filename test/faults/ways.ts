// How a run uses the engine: options beside a plain up, and which of them a campaign draws.
import fc from "fast-check";

/** Options of a run. */
export interface Way {
  /** Keeps the program of the previous up. */
  readonly stays?: true;
  /** Replaces one resource without a change. */
  readonly force?: "replace" | "taint";
  /** Targets one resource. */
  readonly target?: true;
  readonly continueOnError?: true;
  /** How often a hook retries every failed step. */
  readonly hooks?: number;
  /** From now on everything runs on another computer. */
  readonly elsewhere?: true;
  /** Uses the endpoint of another service. */
  readonly isLost?: true;
  /** An additional resource fails after everything else is done, so that nothing is deleted. */
  readonly sibling?: true;
}

/** Parts of the drawn runs; a campaign can omit some. */
export const features = [
  ...["rename", "force", "guard", "app", "endpoint", "hook", "target", "forget", "elsewhere", "continue", "option"],
] as const;

/** A value once in so many times; otherwise nothing, to which it shrinks. */
export const onceIn = <T>(count: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof(
    { withCrossShrink: true },
    { arbitrary: fc.constant(undefined), weight: count - 1 },
    { arbitrary, weight: 1 },
  );

const yes = fc.constant(true as const);

/** Random options; most runs with faults are plain, fewer without faults. */
export const wayArbitrary = (isCalm: boolean): fc.Arbitrary<Way> => {
  const once = <T>(count: number, arbitrary: fc.Arbitrary<T>) =>
    onceIn(isCalm ? Math.ceil(count / 2) : count, arbitrary);
  return fc
    .record({
      stays: once(3, yes),
      force: once(6, fc.constantFrom("replace" as const, "taint")),
      target: once(8, yes),
      continueOnError: once(8, yes),
      hooks: onceIn(4, fc.integer({ min: 1, max: 2 })),
      elsewhere: once(6, yes),
      isLost: once(16, yes),
      sibling: once(4, yes),
    })
    .map((way) => Object.fromEntries(Object.entries(way).filter(([, value]) => value !== undefined)) as Way);
};

/** Options without the parts that a campaign omits. */
export function limitedWay(way: Way, only: readonly string[]): Way {
  const parts: Readonly<Record<keyof Way, string | undefined>> = {
    ...{ stays: undefined, sibling: undefined, force: "force", target: "target", continueOnError: "continue" },
    ...{ hooks: "hook", elsewhere: "elsewhere", isLost: "endpoint" },
  };
  const has = (name: string) => {
    const part = parts[name as keyof Way];
    return part === undefined || only.includes(part);
  };
  return Object.fromEntries(Object.entries(way).filter(([name]) => has(name)));
}

/** States that a large campaign must reach; without them it would pass for the wrong reason. */
export const rareStates = [
  "leftovers of an earlier run are deleted",
  "two resources of a state claim one name",
  "a guarded resource is replaced by force",
  "a tainted resource is replaced",
  "a target is deleted although another resource claims its name",
  "a partially created resource is created again",
  "another computer continues after a kill",
  "an up at another service",
  "a refresh at another service",
  "a refusal is undone",
  "a refusal is followed by permission",
  "dependents are deleted first",
  "a resource moves under an alias",
  "a deleted resource is retained",
  "a change of a protected resource is refused",
  "a forgotten resource is recreated",
  "a run continues after an error and deletes",
  "an App with volumes is renamed",
  "a cluster with databases is replaced",
] as const;

/** One of them. */
export type RareState = (typeof rareStates)[number];

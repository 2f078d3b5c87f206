// In which ways people run the engine: what is asked of it beside a plain up, and which parts of that a campaign draws.
import fc from "fast-check";

/** How a run is made. */
export interface Way {
  /** The program is the one of the up before. */
  readonly stays?: true;
  /** One resource is replaced although nothing about it changed. */
  readonly force?: "replace" | "taint";
  /** One resource alone is looked at. */
  readonly target?: true;
  readonly continueOnError?: true;
  /** How often a hook has every failed step made again. */
  readonly hooks?: number;
  /** From now on it is another computer that runs everything. */
  readonly elsewhere?: true;
  /** The endpoint is that of another service. */
  readonly isLost?: true;
  /** A resource of its own fails once everything else is done, so that nothing is deleted. */
  readonly sibling?: true;
}

/** Parts of what is drawn; a campaign can do without some. */
export const features = [
  ...["rename", "force", "guard", "app", "endpoint", "hook", "target", "forget", "elsewhere", "continue", "option"],
] as const;

/** Something once in so many times; else nothing, to which it shrinks. */
export const onceIn = <T>(count: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof(
    { withCrossShrink: true },
    { arbitrary: fc.constant(undefined), weight: count - 1 },
    { arbitrary, weight: 1 },
  );

const yes = fc.constant(true as const);

/** Ways by chance; most runs are plain where things go wrong as well, and fewer where nothing does. */
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

/** A way without the parts that a campaign does without. */
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

/** States that a large campaign has to come by: one that no longer does would hold for the wrong reason. */
export const rareStates = [
  "what an earlier run left over is deleted",
  "two of a state claim one name",
  "something guarded is replaced by force",
  "something tainted is replaced",
  "a target is deleted whose name another one claims",
  "something is made again after it was made in part",
  "another computer goes on after a kill",
  "an up at another service",
  "a refresh at another service",
  "a refusal, and back",
  "a refusal, and then it is allowed",
  "what depends on it is deleted first",
  "a resource moves under an alias",
  "something stays that was deleted",
  "something protected is refused",
  "something forgotten is made anew",
  "a run goes on after an error and deletes",
  "an App with volumes gets another name",
  "a cluster with databases is replaced",
] as const;

/** One of them. */
export type RareState = (typeof rareStates)[number];

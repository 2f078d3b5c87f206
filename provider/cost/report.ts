// What a change costs a month: before, afterwards and the difference, by App and in total.
import { bareId } from "../../api/names.ts";
import type { Prices } from "../../api/prices.ts";
import type { Values } from "../core/resource.ts";
import { equal, UNKNOWN } from "../core/values.ts";
import { estimateOf, isPriced } from "./estimate.ts";

/** A resource before and after a change. */
export interface Priced {
  /** Name of its type, as `Machine`. */
  readonly type: string;
  /** Its name in the program. */
  readonly name: string;
  /** Its inputs before; undefined if it does not exist yet. */
  readonly before: Values | undefined;
  /** Its inputs afterwards; undefined if it is removed. */
  readonly after: Values | undefined;
  /** Name in the program of the App that it is in afterwards, for an App whose own name is not known yet. */
  readonly appInProgram?: string | undefined;
}

/** What something costs a month. */
export interface Costs {
  readonly before: number;
  /** At least, if `isLeast`. */
  readonly after: number;
  readonly isLeast: boolean;
  /** Afterwards less before. Null if it cannot be said, because a value before the change cannot be read. */
  readonly change: number | null;
}

/** What an App, or a cluster, costs. */
export interface PlaceCosts extends Costs {
  /** `App shop`, or `PostgresCluster main`. */
  readonly place: string;
}

/** What a change costs. */
export interface CostReport extends Costs {
  readonly currency: string;
  readonly apps: readonly PlaceCosts[];
  /** The resources whose prices depend on a value that is not known yet. */
  readonly unknown: readonly string[];
}

interface Sum {
  before: number;
  after: number;
  isLeast: boolean;
  isUnknownBefore: boolean;
}

/** Where the cost of a resource is counted. */
function placeOf({ type, name, appInProgram }: Priced, inputs: Values): string {
  if (type === "PostgresCluster") {
    const given = inputs["name"];
    return `PostgresCluster ${typeof given === "string" && given !== UNKNOWN ? given : name}`;
  }
  const { app } = inputs;
  if (typeof app === "string" && app !== UNKNOWN) return `App ${bareId(app)}`;
  return appInProgram === undefined ? "App that is new" : `App ${appInProgram} (new)`;
}

const inCents = (amount: number): number => Math.round(amount * 100);

const costsOf = ({ before, after, isLeast, isUnknownBefore }: Sum): Costs => ({
  before: before / 100,
  after: after / 100,
  isLeast,
  change: isUnknownBefore ? null : (after - before) / 100,
});

/**
 * What a change costs a month. The amount of each App is rounded to cents, and the total is their sum.
 * @returns undefined if nothing costs anything, before or afterwards
 */
export function costReport(all: readonly Priced[], prices: Prices): CostReport | undefined {
  const sums = new Map<string, Sum>();
  const unknown = new Set<string>();
  const sumOf = (place: string): Sum => {
    const found = sums.get(place) ?? { before: 0, after: 0, isLeast: false, isUnknownBefore: false };
    sums.set(place, found);
    return found;
  };
  for (const one of all.filter(({ type }) => isPriced(type))) {
    const { type, name, before, after } = one;
    const isUnchanged = before !== undefined && after !== undefined && equal(before, after);
    if (before !== undefined) {
      const { monthly, isLeast } = estimateOf(type, before, prices);
      const sum = sumOf(placeOf(one, before));
      sum.before += monthly;
      if (isLeast) unknown.add(`${type} ${name}`);
      sum.isUnknownBefore ||= isLeast && !isUnchanged;
    }
    if (after !== undefined) {
      const { monthly, isLeast } = estimateOf(type, after, prices);
      const sum = sumOf(placeOf(one, after));
      sum.after += monthly;
      if (isLeast) unknown.add(`${type} ${name}`);
      sum.isLeast ||= isLeast;
    }
  }
  const rounded = [...sums]
    .map(([place, sum]) => ({ place, sum: { ...sum, before: inCents(sum.before), after: inCents(sum.after) } }))
    .filter(({ sum }) => sum.before > 0 || sum.after > 0 || sum.isLeast || sum.isUnknownBefore)
    .sort((a, b) => (a.place < b.place ? -1 : 1));
  if (rounded.length === 0) return undefined;
  const total: Sum = { before: 0, after: 0, isLeast: false, isUnknownBefore: false };
  for (const { sum } of rounded) {
    total.before += sum.before;
    total.after += sum.after;
    total.isLeast ||= sum.isLeast;
    total.isUnknownBefore ||= sum.isUnknownBefore;
  }
  return {
    currency: prices.currency,
    ...costsOf(total),
    apps: rounded.map(({ place, sum }) => ({ place, ...costsOf(sum) })),
    unknown: [...unknown].sort(),
  };
}

/** An amount, with the sign of a difference. */
const signed = (amount: number): string => `${amount > 0 ? "+" : ""}${amount.toFixed(2)}`;

/** What something costs afterwards, as text. */
export const afterText = ({ after, isLeast }: Costs): string => `${isLeast ? "at least " : ""}${after.toFixed(2)}`;

/** The difference, as text. */
export const changeText = ({ change, isLeast }: Costs): string =>
  change === null ? "unknown" : `${isLeast ? "at least " : ""}${signed(change)}`;

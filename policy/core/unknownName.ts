import { didYouMean } from "../../api/didYouMean.ts";

/** Why a name is refused, and the probably intended one: `"day", which it does not know; did you mean "days"?`. */
export function unknownName(name: string, known: readonly string[]): string {
  const meant = didYouMean(name, known);
  const hint = meant === undefined ? `it knows ${known.join(", ")}` : `did you mean ${JSON.stringify(meant)}?`;
  return `${JSON.stringify(name)}, which it does not know; ${hint}`;
}

/** The allowed settings of a policy: its own, and those of every policy. */
export const settingNames = (own: object): string[] => [...Object.keys(own), "exceptions", "enforcementLevel"];

import { didYouMean } from "../../provider/core/didYouMean.ts";

/** Why a name is refused, and what was probably meant: `"day", which it does not know; did you mean "days"?`. */
export function unknownName(name: string, known: readonly string[]): string {
  const meant = didYouMean(name, known);
  const hint = meant === undefined ? `it knows ${known.join(", ")}` : `did you mean ${JSON.stringify(meant)}?`;
  return `${JSON.stringify(name)}, which it does not know; ${hint}`;
}

/** What may be configured of a policy: its own settings, and what every policy takes. */
export const settingNames = (own: object): string[] => [...Object.keys(own), "exceptions", "enforcementLevel"];

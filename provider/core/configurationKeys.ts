// Finds misspelt keys of the configuration.
import { configKeys } from "../client/config.ts";
import { didYouMean } from "../../api/didYouMean.ts";

/** Problems of configuration keys, given without their namespace: those that do not exist, with the nearest that does. */
export function unknownKeys(given: readonly string[]): string[] {
  const known = Object.keys(configKeys);
  return given
    .filter((name) => !known.includes(name))
    .map((name) => {
      const meant = didYouMean(name, known);
      return `machines:${name}: there is no such configuration${meant === undefined ? `; known are ${known.join(", ")}` : `; did you mean machines:${meant}?`}`;
    });
}

// Explains refusals of policy files that name neither the file nor the cause.
import { readFileSync } from "node:fs";
import { didYouMean } from "../../api/didYouMean.ts";
import { isObject } from "../../api/schema.ts";
import { baselines } from "../../policy/baselines.ts";

/**
 * The cause of an error of the engine that quotes an empty level: a policy that the pack does not know, with settings and
 * without a level. The engine takes the level that is left out from the pack, and fails before it asks the pack.
 */
export function unknownPolicies(error: string, files: readonly string[]): string | undefined {
  if (!error.includes('invalid enforcement level ""')) return undefined;
  const known = Object.keys(baselines.strict);
  const found = files.flatMap((file) =>
    Object.entries(contentOf(file))
      .filter(([name, entry]) => !known.includes(name) && isObject(entry) && entry["enforcementLevel"] === undefined)
      .map(([name]) => {
        const meant = didYouMean(name, known);
        const hint = meant === undefined ? "its name may be misspelt" : `did you mean ${JSON.stringify(meant)}?`;
        return `${file}: the pack does not know the policy ${JSON.stringify(name)}; ${hint}`;
      }),
  );
  return found.length === 0 ? undefined : found.join("\n");
}

function contentOf(file: string): object {
  try {
    const content: unknown = JSON.parse(readFileSync(file, "utf8"));
    return isObject(content) ? content : {};
  } catch {
    return {}; // the engine has reported it
  }
}

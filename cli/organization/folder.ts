// The folder and the language of a program that a command writes.
import { mkdirSync } from "node:fs";
import { basename } from "node:path";
import { parse } from "yaml";
import { isObject } from "../../api/schema.ts";
import { didYouMean } from "../../api/didYouMean.ts";
import { MachinesError } from "../../provider/client/errors.ts";
import { languageNames, languages, type LanguageName } from "./languages.ts";

/** The value of an option, which must be one of those allowed. */
export function oneOf<const T extends string>(option: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  const meant = didYouMean(value, allowed);
  throw new MachinesError(
    "invalid-input",
    `${option} ${value}: must be ${allowed.slice(0, -1).join(", ")} or ${allowed.at(-1) ?? ""}${meant === undefined ? "" : `; did you mean ${meant}?`}`,
  );
}

/** Goes into a folder, which it creates if there is none. */
export function enterFolder(out: string): void {
  try {
    mkdirSync(out, { recursive: true });
    process.chdir(out);
  } catch (error) {
    throw new MachinesError(
      "invalid-input",
      `--out ${out}: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
}

/** A name for a new project, from its folder. */
export const projectName = (): string => basename(process.cwd()).replaceAll(/[^\w.-]+/g, "-") || "machines";

/** The language of a project. */
export function languageOf(project: string): LanguageName | undefined {
  const { runtime } = (parse(project) ?? {}) as { readonly runtime?: unknown };
  const name = isObject(runtime) ? runtime["name"] : runtime;
  return languageNames.find((language) => languages[language].runtime === name);
}

// The folder and the language of a program that a command writes.
import { mkdirSync } from "node:fs";
import { basename } from "node:path";
import { parse } from "yaml";
import { isObject } from "../../api/schema.ts";
import { didYouMean } from "../../api/didYouMean.ts";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { languageNames, languages, type Binding, type LanguageName } from "./languages.ts";

/** The value of an option, which must be one of those allowed. */
function oneOf<const T extends string>(option: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  const meant = didYouMean(value, allowed);
  throw new MachinesError(
    "invalid-input",
    `${option} ${value}: must be ${allowed.slice(0, -1).join(", ")} or ${allowed.at(-1) ?? ""}${meant === undefined ? "" : `; did you mean ${meant}?`}`,
  );
}

/** What the user wants written. */
export interface Choice {
  readonly binding: Binding;
  /** Undefined for that of the project. */
  readonly language: LanguageName | undefined;
}

/** The options `--binding` and `--language`. @throws MachinesError `invalid-input` */
export const choiceOf = ({ binding = "plugin", language }: { binding?: string; language?: string }): Choice => ({
  binding: oneOf("--binding", binding, ["plugin", "dynamic"] as const),
  language: language === undefined ? undefined : oneOf("--language", language, languageNames),
});

/**
 * The language of the program, in a folder whose project is in `present`.
 * @throws MachinesError `invalid-input` if the project has another one, or it has no dynamic resources
 */
export function languageFor({ binding, language: asked }: Choice, present: LanguageName | undefined): LanguageName {
  const language = asked ?? present ?? "typescript";
  if (present !== undefined && present !== language)
    throw new MachinesError(
      "invalid-input",
      `--language ${language}: the project in ${process.cwd()} is in ${present}; name another folder with --out`,
    );
  if (binding === "dynamic" && language !== "typescript")
    throw new MachinesError(
      "invalid-input",
      `--binding dynamic: programs in ${language} use the plugin; dynamic resources are for --language typescript`,
    );
  return language;
}

/** Goes into a folder, which it creates if there is none. */
export function enterFolder(out: string): void {
  try {
    mkdirSync(out, { recursive: true });
    process.chdir(out);
  } catch (error) {
    throw new MachinesError("invalid-input", `--out ${out}: ${messageOf(error)}`, { cause: error });
  }
}

/** A name for a new project, from its folder. */
export const projectName = (): string =>
  basename(process.cwd())
    .replaceAll(/[^\w.-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "") || "machines";

/** The language of a project. */
export function languageOf(project: string): LanguageName | undefined {
  const { runtime } = (parse(project) ?? {}) as { readonly runtime?: unknown };
  const name = isObject(runtime) ? runtime["name"] : runtime;
  return languageNames.find((language) => languages[language].runtime === name);
}

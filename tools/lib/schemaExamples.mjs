// The examples in the descriptions of the package schema, as the Pulumi Registry shows them.
import fs from "node:fs";
import { inRoot } from "./paths.mjs";

/** The beginning of the examples, which are the end of a description. */
export const examplesBegin = "{{% examples %}}";

/**
 * A description without its examples.
 * @param {string} description
 */
export const withoutExamples = (description) => description.split(`\n\n${examplesBegin}`)[0] ?? "";

/**
 * The programs of a description by language, as its blocks of code name it.
 * @param {string} description
 * @returns {Record<string, string>}
 */
export const examplesIn = (description) =>
  Object.fromEntries(
    [...description.slice(withoutExamples(description).length).matchAll(/^```(\w+)\n(.*?)\n```$/gms)].map(
      ([, language, code]) => [language, code],
    ),
  );

/**
 * The programs in a language by the type that they show, from the schema of this clone.
 * @param {string} language
 * @returns {Record<string, string>}
 */
export function schemaExamples(language) {
  const { resources } = JSON.parse(fs.readFileSync(inRoot("provider/schema.json"), "utf8"));
  const programs = Object.entries(resources).flatMap(([token, { description }]) => {
    const code = examplesIn(description)[language];
    return code === undefined ? [] : [[token.slice(token.lastIndexOf(":") + 1), `${code}\n`]];
  });
  return Object.fromEntries(programs);
}

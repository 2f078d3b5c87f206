// Puts the documentation beside the command, which searches it offline (`pulumi-machines mcp`). It is not part of what the build compares:
// a changed page compiles nothing again.
import fs from "node:fs";
import path from "node:path";
import { inRoot } from "../lib/paths.mjs";

/** The index, pages for people who change this repository, and those for the Pulumi Registry. */
const others = new Set([
  "README.md",
  "_index.md",
  "installation-configuration.md",
  "adding-a-resource.md",
  "coverage.md",
  "service-coverage.md",
]);

/**
 * The pages for users by their paths below `docs/`, sorted.
 * @param {readonly string[]} more pages that are not written yet
 */
export function docsPages(more = []) {
  const docs = inRoot("docs");
  const written = fs
    .readdirSync(docs, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".md"))
    .map((entry) =>
      path.relative(docs, path.join(entry.parentPath ?? entry.path, entry.name)).replaceAll(path.sep, "/"),
    );
  return [...new Set([...written, ...more])].filter((page) => !others.has(page)).toSorted((a, b) => (a < b ? -1 : 1));
}

/** Writes the pages, if they have changed. */
export function writeDocs() {
  const file = inRoot("sdk/nodejs/dist/cli/docs.json");
  const pages = docsPages().map((page) => [page, fs.readFileSync(inRoot("docs", page), "utf8")]);
  const text = JSON.stringify(Object.fromEntries(pages));
  if (!fs.existsSync(file) || fs.readFileSync(file, "utf8") !== text) fs.writeFileSync(file, text);
}

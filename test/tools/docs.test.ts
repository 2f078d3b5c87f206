// What the documentation points at is there: files, headings in them, and the commands of package.json.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { errorCodes } from "../../provider/client/errors.ts";

import { functions, resources } from "../../provider/registry.ts";
import { examples } from "../../tools/generate/examples.ts";
import { missingParts } from "../../tools/generate/missing.ts";
import { anchorsOf } from "../../tools/lib/citations.mjs";

const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"], {
  encoding: "utf8",
})
  .trim()
  .split("\n")
  .filter((file) => existsSync(file));
const withoutCode = (text: string): string => text.replaceAll(/^```.*?^```/gms, "");

const anchors = (file: string): Set<string> => anchorsOf(readFileSync(file, "utf8"));

/** Why a link of a file leads nowhere, if it does. */
function problem(file: string, link: string): string | undefined {
  const [path = "", anchor] = link.split("#", 2);
  const target = path === "" ? file : relative(".", join(dirname(file), decodeURI(path)));
  if (target.startsWith("..") || !existsSync(target)) return `${link}: there is no ${target}`;
  if (anchor !== undefined && !anchors(target).has(anchor)) return `${link}: no heading of ${target} is called so`;
  return undefined;
}

/** Code without its indentation and line breaks, which differ between a page and its program. */
const compact = (code: string): string =>
  code
    .replaceAll(/\s+/g, " ")
    .replaceAll(/[;,]? ?([)}\]]) ?/g, "$1")
    .trim();

// Programs run in the end-to-end tests; what a guide shows of one is there.
test.each([
  ["docs/postgres.md", "examples/database/index.ts"],
  ["docs/volumes.md", "examples/volumes/index.ts"],
  ["docs/certificates.md", "examples/web-app/index.ts"],
  ["docs/secrets.md", "examples/web-app/index.ts"],
  ["docs/policy-writing.md", "examples/policy/policies/index.ts"],
  ["docs/promotion.md", "examples/promotion/index.ts"],
])("the code in %s is part of %s", (guide, program) => {
  const snippets = [...readFileSync(guide, "utf8").matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = ""]) => code);
  expect(snippets.length).toBeGreaterThan(0);
  const whole = compact(readFileSync(program, "utf8"));
  expect(snippets.filter((code) => !whole.includes(compact(code).replace(/[;,]$/, "")))).toEqual([]);
});

test("the code in docs/adding-a-resource.md is that of the files it names", () => {
  const guide = readFileSync("docs/adding-a-resource.md", "utf8");
  const named = [...guide.matchAll(/\]\(\.\.\/([\w/.]+\.ts)\)/g)].map(([, path = ""]) =>
    compact(readFileSync(path, "utf8")),
  );
  const snippets = [...guide.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = ""]) => compact(code));
  expect(snippets.length).toBeGreaterThan(4);
  expect(snippets.filter((code) => !named.some((file) => file.includes(code.replace(/[;,]$/, ""))))).toEqual([]);
});

test.each([
  ["docs/policy.md", "json", "examples/policy/policy.prod.json"],
  ["docs/policy.md", "yaml", "examples/policy/github-actions.yml"],
  ["docs/policy-writing.md", "json", "examples/policy/policy.dev.json"],
  ["docs/policy-exceptions.md", "json", "examples/policy/policy.prod.json"],
])("the configuration in %s (%s) is part of %s", (guide, language, file) => {
  const blocks = [...readFileSync(guide, "utf8").matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))];
  expect(blocks.length).toBeGreaterThan(0);
  const whole = compact(readFileSync(file, "utf8"));
  expect(blocks.filter(([, block = ""]) => !whole.includes(compact(block)))).toEqual([]);
});

describe.each(files)("%s", (file) => {
  const text = readFileSync(file, "utf8");

  test("every relative link leads somewhere", () => {
    const links = [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
    const relativeLinks = links.filter((link) => !/^[a-z]+:/.test(link));
    expect(relativeLinks.flatMap((link) => problem(file, link) ?? [])).toEqual([]);
  });

  test("every npm script it names exists", () => {
    const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
    const named = [...text.matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, name = ""]) => name);
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  });
});

test("every resource type and function has its tests, its example and its place in the README", () => {
  expect(missingParts(".", examples("."))).toEqual([]);
});

test.each([...Object.keys(resources), ...Object.keys(functions)])("the page of %s shows it in a program", (name) => {
  expect(readFileSync(`docs/reference/${name}.md`, "utf8")).toMatch(
    new RegExp(`^## Example\\n\\n\`\`\`typescript\\n[^]*machines\\.${name}(Output)?\\(`, "m"),
  );
});

test("every kind of error has its section in the page that its message names", () => {
  expect(errorCodes.filter((code) => !anchors("docs/troubleshooting.md").has(code))).toEqual([]);
});

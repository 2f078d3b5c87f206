// The targets of the documentation exist: files, their headings, and the commands of package.json.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { configKeys } from "../../provider/client/config.ts";
import { identityVariable } from "../../provider/client/identity.ts";
import { errorCodes, MachinesError, messageForUser } from "../../provider/client/errors.ts";

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

/** Why a link in a file is broken, or undefined. */
function problem(file: string, link: string): string | undefined {
  const [path = "", anchor] = link.split("#", 2);
  const target = path === "" ? file : relative(".", join(dirname(file), decodeURI(path)));
  if (target.startsWith("..") || !existsSync(target)) return `${link}: there is no ${target}`;
  if (anchor !== undefined && !anchors(target).has(anchor)) return `${link}: no heading of ${target} is called so`;
  return undefined;
}

/** Code without indentation and line breaks, which differ between a page and its program. */
const compact = (code: string): string =>
  code
    .replaceAll(/\s+/g, " ")
    .replaceAll(/[;,]? ?([)}\]]) ?/g, "$1")
    .trim();

/** The TypeScript of a page. */
const snippetsOf = (page: string): string[] =>
  [...readFileSync(page, "utf8").matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = ""]) => code);

/** Whether a snippet begins like a program. The checks compile each of these (`tools/lib/sdkChecks.mjs`). */
const isProgram = (code: string): boolean => /^(?:\/\/.*\n)*import \* as pulumi /.test(code);

/** Whether the paragraphs of a snippet are in a program, in their order. */
function isPart(code: string, program: string): boolean {
  const whole = compact(program);
  let at = 0;
  return code.split(/\n\n/).every((paragraph) => {
    const found = whole.indexOf(compact(paragraph).replace(/[;,]$/, ""), at);
    at = found;
    return found >= 0;
  });
}

// The end-to-end tests run these programs, so a guide's code must be part of one.
test.each([
  ["docs/postgres.md", ["database"]],
  ["docs/volumes.md", ["quickstart", "volumes"]],
  ["docs/certificates.md", ["web-app"]],
  ["docs/secrets.md", ["web-app"]],
  ["docs/fleets.md", ["rolling", "canary"]],
  ["docs/promotion.md", ["promotion"]],
])("%s begins with a complete program, and its code is part of the examples %j", (guide, names) => {
  const snippets = snippetsOf(guide);
  expect(snippets[0]).toSatisfy(isProgram);
  const programs = names.map((name) => readFileSync(`examples/${name}/index.ts`, "utf8"));
  expect(snippets.filter((code) => !programs.some((program) => isPart(code, program)))).toEqual([]);
});

describe("the gallery", () => {
  const [intro = "", ...entries] = readFileSync("docs/gallery.md", "utf8").split(/^## /m);
  const programOf = (entry: string): string | undefined => /\]\(\.\.\/(examples\/[\w-]+)\/index\.ts\)/.exec(entry)?.[1];

  test("it has ten entries, all in its table", () => {
    expect(entries).toHaveLength(10);
    expect([...intro.matchAll(/^\| \[(.+?)\]/gm)].map(([, title]) => title)).toEqual(
      entries.map((entry) => entry.slice(0, entry.indexOf("\n"))),
    );
  });

  // What exists is imported by commands, which gallery.test.ts runs.
  test.each(entries.slice(0, -1).map((entry) => [entry.slice(0, entry.indexOf("\n")), programOf(entry)]))(
    "%s: %s is a complete program of at most 100 lines, which examples.test.ts runs",
    (_title, program = "none") => {
      expect(existsSync(`${program}/Pulumi.yaml`)).toBe(true);
      expect(readFileSync(`${program}/index.ts`, "utf8").split("\n").length).toBeLessThanOrEqual(100);
    },
  );
});

test("the code in docs/policy-writing.md is part of the example policy", () => {
  const program = readFileSync("examples/policy/policies/index.ts", "utf8");
  expect(snippetsOf("docs/policy-writing.md").length).toBeGreaterThan(0);
  expect(snippetsOf("docs/policy-writing.md").filter((code) => !isPart(code, program))).toEqual([]);
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

  test("every relative link is valid", () => {
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

test("every page that has a package installed says how, until the packages are published", () => {
  const installs = /npm install [^\n`]*\b(pulumi-machines|machines-service)/;
  const pages = files.filter((file) => !["CHANGELOG.md", "CONTRIBUTING.md", "README.md"].includes(file));
  const found = pages.filter((file) => installs.test(readFileSync(file, "utf8")));
  expect(found.length).toBeGreaterThan(6);
  expect(found.filter((file) => !readFileSync(file, "utf8").includes("#your-first-program"))).toEqual([]);
  expect(anchors("README.md").has("your-first-program")).toBe(true);
});

test("every resource type and function has tests, an example and an entry in the README", () => {
  expect(missingParts(".", examples("."))).toEqual([]);
});

test.each([...Object.keys(resources), ...Object.keys(functions)])("the page of %s has an example program", (name) => {
  expect(readFileSync(`docs/reference/${name}.md`, "utf8")).toMatch(
    new RegExp(`^## Example\\n\\n\`\`\`typescript\\n[^]*machines\\.${name}(Output)?\\(`, "m"),
  );
});

describe("messages name pages that anyone can open:", () => {
  const { homepage } = JSON.parse(readFileSync("package.json", "utf8")) as { homepage: string };
  const pages = `${homepage}/blob/main/docs/`;
  const sources = execFileSync("git", ["ls-files", "api", "provider", "cli", "policy", "service", "sdk/nodejs"], {
    encoding: "utf8",
  })
    .trim()
    .split("\n")
    .filter((file) => file.endsWith(".ts") && existsSync(file))
    .map((file) => ({ file, code: readFileSync(file, "utf8").replaceAll(/^\s*(\/\/|\/?\*).*$/gm, "") }));

  test("every kind of error has its section in the page of its address", () => {
    const addresses = errorCodes.map((code) => messageForUser(new MachinesError(code, "It failed.")));
    expect(addresses).toEqual(errorCodes.map((code) => `It failed. (${pages}troubleshooting.md#${code})`));
    expect(errorCodes.filter((code) => !anchors("docs/troubleshooting.md").has(code))).toEqual([]);
  });

  test("every other page that a message names is there, and the section too", () => {
    const named = sources.flatMap(({ code }) =>
      [...code.matchAll(/docsUrl\("([^"]+)"\)/g)].map(([, page = ""]) => page),
    );
    expect(named.length).toBeGreaterThan(5);
    expect(named.flatMap((page) => problem("docs/README.md", page) ?? [])).toEqual([]);
  });

  test("none is named by its path in the repository", () => {
    const paths = sources.filter(({ code }) => /(?<![/\w])docs\/[\w-]+\.md/.test(code));
    // Rows of the interface cite the section that they implement; it is shown nowhere.
    expect(paths.filter(({ file }) => !file.startsWith("api/")).map(({ file }) => file)).toEqual([]);
  });
});

test("the ESC environments in docs/bindings.md set keys and variables that exist, and the token only as a secret", () => {
  const [, text = "", signedIn = ""] =
    /^## ESC and .*?^```yaml\n(.*?)^```.*?^```yaml\n(.*?)^```/ms.exec(readFileSync("docs/bindings.md", "utf8")) ?? [];
  const { values } = parse(text) as {
    values: Record<"machines" | "pulumiConfig" | "environmentVariables", Record<string, unknown>>;
  };
  const { machines, pulumiConfig, environmentVariables } = values;
  const names = Object.keys(machines) as (keyof typeof configKeys)[];
  expect(names).toEqual(["endpoint", "organization", "token"]);
  const referring = (nameOf: (name: keyof typeof configKeys) => string) =>
    Object.fromEntries(names.map((name) => [nameOf(name), `\${machines.${name}}`]));
  expect(pulumiConfig).toEqual(referring((name) => `machines:${name}`));
  expect(environmentVariables).toEqual(referring((name) => configKeys[name].environment));
  for (const name of names)
    expect(machines[name]).toEqual(
      "secret" in configKeys[name] ? { "fn::secret": expect.any(String) } : expect.any(String),
    );
  expect((parse(signedIn) as { values: unknown }).values).toEqual({
    machines: {
      endpoint: machines["endpoint"],
      identity: { "fn::open::oidc": { audience: `\${machines.endpoint}`, identityToken: { version: "v2" } } },
    },
    environmentVariables: {
      [configKeys.endpoint.environment]: `\${machines.endpoint}`,
      [identityVariable]: `\${machines.identity}`,
    },
  });
});

// Broken citations are found, and this repository has none.
import { expect, test } from "vitest";
import { openapi } from "../../service/openapi/openapi.ts";
import { anchorsOf, checkCitations, citable, wrongCitations } from "../../tools/lib/citations.mjs";

const known = { section: new Set(["leases"]), fault: new Set(["F01"]), rule: new Set(["R1"]) };
const wrong = (text: string, file = "service/a.ts"): string[] => wrongCitations(file, text, known);

/** Split, so that this file cites nothing. */
const old = (document: string, ...rest: string[]): string => [document, ...rest].join(" ");
const page = ["docs/interface", "md#"].join(".");
const fault = (number: number): string => `F${String(number).padStart(2, "0")}`;
const rule = (number: number): string => `R${number}`;

test("existing targets can be cited", () => {
  expect(wrong(`// Held (${page}leases), also then (${fault(1)}, ${rule(1)}).`)).toEqual([]);
  expect(wrong("The specification; 160 half bodies; spec/machines.test.ts; F1 and R2D2.")).toEqual([]);
});

test.each([
  ["a section", `// One.\n// Two (${page}lease).`, "service/a.ts:2: there is no section lease in docs/interface.md"],
  [
    "a section, from a page in the same folder",
    `[x](${page.replace("docs/", "")}no-such)`,
    "service/a.ts:1: there is no section no-such",
  ],
  ["a fault", `test("${fault(98)}: it breaks");`, `service/a.ts:1: there is no fault ${fault(98)} in docs/faults.md`],
  ["a rule", `// As it must be (${rule(77)}).`, `service/a.ts:1: there is no rule ${rule(77)} in docs/how-it-works.md`],
])("%s that does not exist is found, with its line", (_, text, message) => {
  expect(wrong(text)).toEqual([expect.stringContaining(message)]);
});

test.each([
  old("spec", "4.2"),
  old("bodies", "7.1"),
  old("specification", "section", "4.2"),
  old("bodies", "10"),
  old("bodies", "section", "6"),
  old("Bodies", "sections", "2 and 4.3"),
  old("bodies\n  //", "8"),
  old("bodies\n   *", "8"),
])("a section cited by number is found: %j", (text) => {
  expect(wrong(`// One (${text}).`)).toEqual([expect.stringContaining("names no page")]);
});

test("published code cites no file that only the repository has", () => {
  expect(wrong(`"State (${page}leases)."`, "provider/schema.json")).toEqual([
    expect.stringContaining("leave the citation out"),
  ]);
  expect(wrong(`// State (${page}leases).`, "sdk/nodejs/app.ts")).toEqual([
    expect.stringContaining("leave the citation out"),
  ]);
});

test("the service's own messages cite no file of the repository", () => {
  expect(JSON.stringify(openapi({ strict: false }))).not.toMatch(/docs\/|\.md/);
});

test("heading anchors follow GitHub's rules", () => {
  expect([
    ...anchorsOf(
      "# The `a` of [B](c.md)\n```\n# no heading\n```\n## Users and credentials\n## Users and credentials\n",
    ),
  ]).toEqual(["the-a-of-b", "users-and-credentials", "users-and-credentials-1"]);
});

test("every section, fault and rule can be cited, and every citation of this repository is valid", async () => {
  const cited = citable();
  expect([cited.section.has("leases"), cited.fault.has(fault(49)), cited.rule.has(rule(14))]).toEqual([
    true,
    true,
    true,
  ]);
  expect((await checkCitations()).output).toBe("");
});

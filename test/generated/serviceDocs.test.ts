// The generated pages about the service.
import { expect, test } from "vitest";
import { contract } from "../../api/index.ts";
import { serviceCoverage } from "../../tools/generate/serviceCoverage.ts";
import { marksIn, serviceDifferences } from "../../tools/generate/serviceDifferences.ts";

test("a mark extends to the end of its comment, or to the next mark, without references", () => {
  const source = `
/** What it is. ASSUMED: the first thing (docs/interface.md#limits). It has a reason. */
const a = 1;
  // ASSUMED: a second thing,
  // on two lines
const b = "ASSUMED: text is no mark";
/**
 * Words. ASSUMED: one; ASSUMED: \`two\` (docs/interface.md#waits).
 */
const c = 1; // ASSUMED: beside
`;
  expect(marksIn(source)).toEqual([
    "The first thing. It has a reason.",
    "A second thing, on two lines.",
    "One.",
    "`two`.",
    "Beside.",
  ]);
});

test("every assumption has a location and its own text", () => {
  const bullets = serviceDifferences(process.cwd()).match(/^- .*$/gm) ?? [];
  expect(bullets.length).toBeGreaterThan(80);
  expect(bullets.filter((bullet) => bullet.length < 30 || /^- (status|text)\b/i.test(bullet))).toEqual([]);
  expect(new Set(bullets).size).toBe(bullets.length);
});

test("every operation is listed once, and its tests exist", () => {
  const page = serviceCoverage(process.cwd());
  for (const group of Object.values(contract))
    for (const { id } of Object.values(group)) expect(page.split(`| \`${id}\` |`), id).toHaveLength(2);
  const create = page.split("\n").find((line) => line.startsWith("| `machines.create` |"));
  expect(create).toContain("spec/machines.test.ts");
});

// Phrases that CONTRIBUTING.md refuses.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { checkWords, refusedPhrases, wrongWords } from "../../tools/lib/words.mjs";

const phrases = refusedPhrases(readFileSync("CONTRIBUTING.md", "utf8"));

test("a refused phrase is reported with its line and what to write", () => {
  const text = `fine\nIt runs the Configuration ${"of"} before.\n`;
  expect(wrongWords("docs/x.md", text, phrases)).toEqual([
    `docs/x.md:2: instead of "configuration ${"of"} before" write "previous configuration"`,
  ]);
});

test("no file of this repository has one", async () => {
  expect((await checkWords()).output).toBe("");
});

// Phrases that CONTRIBUTING.md refuses.
import { expect, test } from "vitest";
import { checkWords, refusedPhrases, wrongWords } from "../../tools/lib/words.mjs";

test("a phrase of the table is reported with its line and what to write", () => {
  const phrases = refusedPhrases("text\n\n| refused | write |\n|---|---|\n| Odd phrase | plain phrase |\n\n## Style\n");
  expect(wrongWords("docs/x.md", "fine\nIt has an odd Phrase.\n", phrases)).toEqual([
    'docs/x.md:2: instead of "odd phrase" write "plain phrase"',
  ]);
});

test("no file of this repository has a refused phrase", async () => {
  expect(await checkWords()).toEqual({ code: 0, output: "" });
});

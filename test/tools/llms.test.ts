// llms.txt: every page for users, by the addresses of its text. `npm run check` compares it with what the pages make of it now.
import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { docsPages } from "../../tools/setup/docs.mjs";

test("llms.txt has the form of llmstxt.org, and names every page for users once", () => {
  const text = readFileSync("llms.txt", "utf8");
  const [title, , summary] = text.split("\n");
  expect([title, summary]).toEqual([expect.stringMatching(/^# \w/), expect.stringMatching(/^> \w.*\.$/)]);
  expect([...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading).slice(1)).toEqual([
    ...["Start", "Guides", "Reference", "Optional"],
  ]);
  // Below the first heading there are only lists of links.
  const lines = text.slice(text.indexOf("\n## ")).split("\n");
  const links = lines.filter((line) => line !== "" && !line.startsWith("## "));
  const paths = links.map(
    (line) =>
      /^- \[[^\]]+\]\(https:\/\/raw\.githubusercontent\.com\/[^/]+\/[^/]+\/main\/(.+?)\)(: .+)?$/.exec(line)?.[1],
  );
  expect(paths.toSorted()).toEqual(["README.md", ...docsPages().map((page) => `docs/${page}`)].toSorted());
  expect(paths.filter((path) => path === undefined || !existsSync(path))).toEqual([]);
  expect(paths).toContain("docs/agents.md");
});

// The commands of docs/production.md.
import { readFileSync } from "node:fs";
import { expect } from "vitest";

const page = readFileSync("docs/production.md", "utf8");

/**
 * The commands of a section, one a line. `values` are what a test writes for what the page has as an example: each must be in the section,
 * so that the test follows the page.
 */
export function commandsOf(heading: string, values: Readonly<Record<string, string>> = {}): string[] {
  const [, after = ""] = page.split(new RegExp(`^#+ ${heading}$`, "m"));
  const [section = ""] = `${after}\n`.split(/^#+ /m);
  const blocks = [...section.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = ""]) => block);
  let text = blocks
    .join("")
    .replaceAll(/ \\\n\s*/g, " ")
    .replaceAll(/ +# .*$/gm, "");
  expect(text, `the section ${heading}`).not.toBe("");
  for (const [from, to] of Object.entries(values)) {
    expect(text, `the section ${heading}`).toContain(from);
    text = text.replaceAll(from, to);
  }
  return text.trim().split("\n");
}

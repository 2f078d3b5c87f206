// llms.txt: the documentation for assistants that read pages, as llmstxt.org describes it. Made from the pages themselves, so it
// cannot be older than they are.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { homepage } from "../../api/homepage.ts";
import { docsPages } from "../setup/docs.mjs";
import { packageInfo } from "./packageInfo.ts";

/** Pages that help with few questions: an assistant with little room leaves them out. */
const optional = [
  "engine-options.md",
  "faults.md",
  "performance.md",
  "scale.md",
  "service-differences.md",
  "service-faults.md",
  "simulation.md",
];

/** The longest description of a page. */
const longest = 200;

// The pages as they are written, not as GitHub shows them.
const raw = `${homepage.replace("https://github.com/", "https://raw.githubusercontent.com/")}/main`;

/**
 * The file.
 * @param files generated files by path: some pages are not written yet
 * @throws if a page has no title, or one that is named here is gone
 */
export function llmsFile(root: string, version: string, files: Readonly<Record<string, string>>): string {
  const { displayName, description } = packageInfo(version);
  const pages: readonly string[] = docsPages(
    Object.keys(files).flatMap((path) => /^docs\/(.+\.md)$/.exec(path)?.[1] ?? []),
  );
  const gone = optional.filter((page) => !pages.includes(page));
  if (gone.length > 0) throw new Error(`tools/generate/llms.ts names pages that are gone: ${gone.join(", ")}`);
  const index = described(readFileSync(join(root, "docs/README.md"), "utf8"));
  const unnamed = pages.filter((page) => !page.includes("/") && !index.has(page));
  if (unnamed.length > 0) throw new Error(`docs/README.md has no row for ${unnamed.join(", ")}`);
  const guides = [...index.keys()].filter(
    (page) => pages.includes(page) && !page.includes("/") && !optional.includes(page),
  );
  const link = (page: string): string => {
    const path = `docs/${page}`;
    const { title, about: first } = headOf(files[path] ?? readFileSync(join(root, path), "utf8"), path);
    const about = index.get(page) ?? first;
    return `- [${title}](${raw}/${path})${about === "" ? "" : `: ${about}`}`;
  };
  const section = (title: string, of: readonly string[]): string[] => [...["", `## ${title}`, ""], ...of.map(link)];
  return [
    `# ${displayName}`,
    "",
    `> ${description}`,
    "",
    "- Programs in TypeScript declare resources as `new machines.App(…)` from the package `pulumi-machines`; other languages use the plugin.",
    "- The service is open source and runs anywhere: `npx machines-service start`. With the endpoint `local` it starts by itself.",
    "- For the state of a real service, `npx pulumi-machines mcp` is a server of the Model Context Protocol, which only reads by default.",
    "",
    "## Start",
    "",
    `- [README](${raw}/README.md): what it does, the first program, all resources and settings`,
    ...section("Guides", guides),
    ...section("Reference", pages.filter((page) => page.includes("/")).toSorted(byCase)),
    ...section("Optional", optional),
    "",
  ].join("\n");
}

/** What the index of the pages says about each, in its order. */
const described = (index: string): Map<string, string> =>
  new Map(
    [...index.matchAll(/^\| \[[^\]]+\]\((\S+?\.md)\) \| (.*) \|$/gm)].map(([, page = "", about = ""]) => [
      page,
      plainText(about),
    ]),
  );

/** A text without links, bold type and line breaks. */
const plainText = (text: string): string =>
  text
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll("**", "")
    .replaceAll(/\s+/g, " ");

/** Resources before functions: these begin with a small letter. The overview comes first. */
const byCase = (a: string, b: string): number =>
  Number(b.endsWith("README.md")) - Number(a.endsWith("README.md")) || (a < b ? -1 : 1);

/** The title of a page, and its first sentence. */
function headOf(text: string, path: string): { readonly title: string; readonly about: string } {
  const plain = text
    .replaceAll(/<!--.*?-->/gs, "")
    .replaceAll(/^```.*?^```/gms, "")
    .replaceAll(/^---\n.*?\n---\n/gs, "");
  const title = /^# (.+)$/m.exec(plain)?.[1];
  if (title === undefined) throw new Error(`${path} has no title`);
  const paragraph = plain
    .slice(plain.indexOf(title) + title.length)
    .split(/\n\s*\n/)
    .map((one) => one.trim())
    .find((one) => /^[\p{L}*`[]/u.test(one));
  const words = plainText(paragraph ?? "");
  const about = (/^.*?[.:](?= |$)/.exec(words)?.[0] ?? words).replace(/[.:]$/, "");
  return { title: title.replaceAll("`", ""), about: about.length > longest ? `${about.slice(0, longest)}…` : about };
}

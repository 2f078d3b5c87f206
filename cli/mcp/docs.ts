// The tools `search_docs` and `read_docs`: the documentation of this version, which is part of the package.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import MiniSearch from "minisearch";
import { z } from "zod";
import { didYouMean } from "../../api/didYouMean.ts";
import { docsUrl } from "../../api/docsUrl.ts";
import { MachinesError } from "../../provider/client/errors.ts";
import { addTool, type Session } from "./tool.ts";

/** The pages by their paths below `docs/`, as the build writes them beside the command. */
type Pages = Readonly<Record<string, string>>;

/** A part of a page below one heading. */
interface Section {
  readonly id: number;
  readonly page: string;
  readonly title: string;
  readonly heading: string;
  readonly text: string;
}

let pages: Pages | undefined;
let index: { readonly search: MiniSearch<Section>; readonly sections: readonly Section[] } | undefined;

const pagesOf = (): Pages => (pages ??= JSON.parse(readFileSync(join(__dirname, "docs.json"), "utf8")) as Pages);

/**
 * The sections of a page, without programs that are closed until a reader opens them: they are the same in every language, and have words
 * of other types. A line that looks like a heading in a block of code is none.
 */
function sectionsOf(page: string, text: string): Omit<Section, "id">[] {
  const found: { heading: string; lines: string[] }[] = [{ heading: "", lines: [] }];
  let isCode = false;
  for (const line of text.replaceAll(/<details>.*?<\/details>\n*/gs, "").split("\n")) {
    if (line.startsWith("```")) isCode = !isCode;
    const [, heading] = (isCode ? null : /^#{1,4} (.+)$/.exec(line)) ?? [];
    if (heading === undefined) found.at(-1)?.lines.push(line);
    else found.push({ heading, lines: [] });
  }
  const title = found.find(({ heading }) => heading !== "")?.heading ?? page;
  return found.flatMap(({ heading, lines }) => {
    const body = lines.join("\n").trim();
    return body === "" ? [] : [{ page, title, heading: heading || title, text: body }];
  });
}

function indexOf() {
  if (index) return index;
  const sections = Object.entries(pagesOf())
    .flatMap(([page, text]) => sectionsOf(page, text))
    .map((section, id) => ({ ...section, id }));
  const search = new MiniSearch<Section>({
    fields: ["title", "heading", "text"],
    searchOptions: { boost: { title: 3, heading: 2 }, prefix: true, fuzzy: 0.15, combineWith: "AND" },
  });
  search.addAll(sections);
  index = { search, sections };
  return index;
}

const [longestExcerpt, longestPart] = [1500, 20_000];

/** Adds the tools. */
export function addDocsTools(session: Session): void {
  addTool(session, {
    name: "search_docs",
    title: "Search the documentation",
    description:
      "Searches the documentation of pulumi-machines and machines-service of the installed version, offline: guides, the reference of every resource " +
      "and function, errors and their remedies. Answers the best sections; `read_docs` has the whole page.",
    input: z.strictObject({
      query: z.string().min(1).max(200).describe("A few words, as `fleet canary rollback`."),
      limit: z.int().min(1).max(10).default(5).describe("Sections in the answer, 1 to 10."),
    }),
    output: z.object({
      results: z.array(z.object({ page: z.string(), heading: z.string(), text: z.string(), url: z.string() })),
    }),
    narrow: "set a smaller limit",
    run({ query, limit }) {
      const { search, sections } = indexOf();
      const exact = search.search(query);
      const found = exact.length > 0 ? exact : search.search(query, { combineWith: "OR" });
      const results = found.slice(0, limit).flatMap(({ id }) => {
        const { page, heading, text } = sections[id as number] ?? {};
        if (page === undefined || heading === undefined || text === undefined) return [];
        const excerpt = text.length > longestExcerpt ? `${text.slice(0, longestExcerpt)}…` : text;
        return [{ page, heading, text: excerpt, url: docsUrl(page as `${string}.md`) }];
      });
      return Promise.resolve({ results });
    },
  });
  addTool(session, {
    name: "read_docs",
    title: "Read a page of the documentation",
    description: "Reads one page of the documentation, in parts of 20,000 characters.",
    input: z.strictObject({
      page: z.string().min(1).max(200).describe("As `search_docs` names it: `fleets.md`, `reference/Machine.md`."),
      offset: z.int().min(0).default(0).describe("Characters to leave out: `next` of the part before."),
    }),
    output: z.object({
      page: z.string(),
      url: z.string(),
      text: z.string(),
      next: z.int().optional().describe("Where the next part begins; absent at the end."),
    }),
    narrow: "read it in parts",
    run({ page, offset }) {
      const all = pagesOf();
      const text = Object.hasOwn(all, page) ? all[page] : undefined;
      if (text === undefined) {
        const near = didYouMean(page, Object.keys(all));
        throw new MachinesError(
          "invalid-input",
          `page: got ${JSON.stringify(page)}, which is no page${near === undefined ? "; `search_docs` names pages" : `; did you mean ${near}?`}`,
        );
      }
      const end = offset + longestPart;
      const url = docsUrl(page as `${string}.md`);
      return Promise.resolve({ page, url, text: text.slice(offset, end), ...(end < text.length && { next: end }) });
    },
  });
}

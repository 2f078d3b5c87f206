// Checks that citations are valid: sections of docs/interface.md, faults (F41) of docs/faults.md, rules (R11) of
// docs/how-it-works.md.
import { repositoryFiles, textOf } from "./files.mjs";

/** Files of others, and files that repeat the content of another file. */
const IGNORED = /^(?:package-lock\.json|test\/upgrade\/[^/]+\/|tools\/pulumi\/)/;
const READ = /\.(?:[cm]?[jt]s|md|json|py|go|ya?ml|toml)$/;
/** Files that are published without the repository, where a path of the repository has no meaning. */
const PUBLISHED = /^(?:provider\/schema\.json$|sdk\/)/;

// A comment may break its line inside a citation.
const GAP = String.raw`(?:[ \t]+|[ \t]*\n[ \t]*(?:\/\/|\*)?[ \t]*)`;
const forms = [
  { of: "section", pattern: /\binterface\.md#([\w-]+)/g, page: "docs/interface.md" },
  { of: "fault", pattern: /\b(F\d{2,})\b/g, page: "docs/faults.md" },
  { of: "rule", pattern: /\b(R\d{1,2})\b/g, page: "docs/how-it-works.md" },
];
const numbered = new RegExp(String.raw`\b(?:spec|specification|bodies)${GAP}(?:sections?${GAP})?\d+(?:\.\d+)*`, "gi");

/** The anchors that GitHub gives to the headings of a page. */
export function anchorsOf(page) {
  const seen = new Map();
  const headings = page.replaceAll(/^```.*?^```/gms, "").matchAll(/^#+ +(.+?) *$/gm);
  return new Set(
    [...headings].map(([, heading = ""]) => {
      const name = heading
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\p{M}\p{Pc} -]/gu, "")
        .replaceAll(" ", "-");
      const before = seen.get(name) ?? 0;
      seen.set(name, before + 1);
      return before === 0 ? name : `${name}-${before}`;
    }),
  );
}

/** The valid targets of citations, according to the pages. */
export function citable() {
  const rows = (path, letter) =>
    new Set([...textOf(path).matchAll(new RegExp(String.raw`^\| (${letter}\d+) \|`, "gm"))].map(([, id]) => id));
  return {
    section: anchorsOf(textOf("docs/interface.md")),
    fault: rows("docs/faults.md", "F"),
    rule: rows("docs/how-it-works.md", "R"),
  };
}

/** The sections of docs/interface.md that a page has readers add, in its blocks. */
const addedBy = (page) => anchorsOf([...page.matchAll(/^```md\n(.*?)^```/gms)].map(([, block]) => block).join("\n"));

/** The invalid citations of one file, as sentences that begin with its name and line. */
export function wrongCitations(file, text, known) {
  const at = (index) => `${file}:${text.slice(0, index).split("\n").length}`;
  const added = file === "docs/adding-a-resource.md" ? addedBy(text) : new Set();
  const unknown = forms.flatMap(({ of, pattern, page }) =>
    [...text.matchAll(pattern)]
      .filter(([, name]) => !known[of].has(name) && !(of === "section" && added.has(name)))
      .map(({ index, 1: name }) => `${at(index)}: there is no ${of} ${name} in ${page}`),
  );
  const old = [...text.matchAll(numbered)].map(
    ({ index, 0: cited }) =>
      `${at(index)}: "${cited.replaceAll(/\s+/g, " ")}" names no page; cite a section, as docs/interface.md#leases`,
  );
  const hidden = PUBLISHED.test(file)
    ? [...text.matchAll(/docs\/interface\.md/g)].map(
        ({ index }) => `${at(index)}: users of the package have no docs/interface.md; leave the citation out`,
      )
    : [];
  return [...unknown, ...old, ...hidden];
}

/** The check: every text file of the repository. */
export async function checkCitations() {
  const files = repositoryFiles().filter((file) => READ.test(file) && !IGNORED.test(file));
  const known = citable();
  const wrong = files.flatMap((file) => wrongCitations(file, textOf(file), known));
  return { code: wrong.length > 0 ? 1 : 0, output: wrong.join("\n") };
}

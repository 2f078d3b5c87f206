// Checks that no file has a phrase that CONTRIBUTING.md refuses; the table there also says what to write.
import { repositoryFiles, textOf } from "./files.mjs";

/** The table itself, and files that are generated, recorded or of others. */
const IGNORED =
  /^(?:CONTRIBUTING\.md$|package-lock\.json$|provider\/schema\.json$|docs\/reference\/|sdk\/(?:go|java|dotnet|python|nodejs-plugin)\/|test\/upgrade\/[^/]+\/|tools\/pulumi\/)/;
const READ = /\.(?:[cm]?[jt]sx?|md|json|py|go|ya?ml|toml)$/;

/** The phrases of the table, in lower case, with what to write. */
export function refusedPhrases(page) {
  const [, table = ""] = /^\| refused \| write \|\n\|[-|]+\|\n((?:\|.*\|\n)+)/m.exec(page) ?? [];
  return [...table.matchAll(/^\| (.+?) \| (.+?) \|$/gm)].map(([, phrase = "", better]) => ({
    phrase: phrase.toLowerCase(),
    better,
  }));
}

/** The refused phrases of one file, as sentences that begin with its name and line. */
export const wrongWords = (file, text, phrases) =>
  text
    .split("\n")
    .flatMap((line, index) =>
      phrases
        .filter(({ phrase }) => line.toLowerCase().includes(phrase))
        .map(({ phrase, better }) => `${file}:${index + 1}: instead of "${phrase}" write "${better}"`),
    );

/** The check: every text file of the repository. */
export async function checkWords() {
  const phrases = refusedPhrases(textOf("CONTRIBUTING.md"));
  const wrong = repositoryFiles()
    .filter((file) => READ.test(file) && !IGNORED.test(file))
    .flatMap((file) => wrongWords(file, textOf(file), phrases));
  return { code: phrases.length === 0 || wrong.length > 0 ? 1 : 0, output: wrong.join("\n") };
}

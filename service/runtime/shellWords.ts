// A command line as words.

const word = /(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/gs;
const spelled = /\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'/gs;

/** The words of a line, as a shell takes it apart: blanks separate, quotes keep together, a backslash takes literally. */
export const wordsOf = (line: string): string[] =>
  (line.match(word) ?? []).map((text) =>
    text.replace(
      spelled,
      (_, escaped?: string, double?: string, single?: string) =>
        escaped ?? single ?? (double ?? "").replace(/\\(["\\$`])/g, "$1"),
    ),
  );

// Splits command lines into words.

const word = /(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/gs;
const spelled = /\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'/gs;

/** The words of a line, split as by a shell: blanks separate, quotes group, a backslash escapes. */
export const wordsOf = (line: string): string[] =>
  (line.match(word) ?? []).map((text) =>
    text.replace(
      spelled,
      (_, escaped?: string, double?: string, single?: string) =>
        escaped ?? single ?? (double ?? "").replace(/\\(["\\$`])/g, "$1"),
    ),
  );

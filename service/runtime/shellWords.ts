// Splits command lines into words, and finds the command in them.

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

/** The name of a command, without its folder. */
export const nameOf = (path: string): string => path.replace(/^\/(usr\/)?bin\//, "");

/** The script of `sh -c`; undefined for any other command. */
export const scriptIn = ([path = "", flag, script]: readonly string[]): string | undefined =>
  ["sh", "bash"].includes(nameOf(path)) && (flag === "-c" || flag === "-lc") ? script : undefined;

/** The name and the arguments of a command, without its folder; of `sh -c`, those of the command after it. */
export function commandIn(words: readonly string[]): readonly [name: string, ...args: string[]] {
  const script = scriptIn(words);
  if (script !== undefined) return commandIn(wordsOf(script));
  const [path = "", ...args] = words;
  return [nameOf(path), ...args];
}

/** The code of `exit` with an argument; undefined if that is no number. */
export const exitCodeOf = (text = "0"): number | undefined => (/^\d{1,9}$/.test(text) ? Number(text) % 256 : undefined);

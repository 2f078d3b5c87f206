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

/** The name and the arguments of a command, without its folder; of `sh -c`, those of the command after it. */
export function commandIn([path = "", ...args]: readonly string[]): readonly [name: string, ...args: string[]] {
  const name = path.replace(/^\/(usr\/)?bin\//, "");
  const isShell = (name === "sh" || name === "bash") && args[0] === "-c" && args[1] !== undefined;
  return isShell ? commandIn(wordsOf(args[1] ?? "")) : [name, ...args];
}

/** The code of `exit` with an argument; undefined if that is no number. */
export const exitCodeOf = (text = "0"): number | undefined => (/^\d{1,9}$/.test(text) ? Number(text) % 256 : undefined);

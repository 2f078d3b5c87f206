// The scripts of `sh -c` that the simulated runtime understands: commands with quotes and variables, joined by `;`, `&&`, `||`
// or line ends. Others (with pipes, files, comments, substitutions or background jobs) are not understood.

type Joint = ";" | "&&" | "||";

/** One command of a script. */
export interface ScriptCommand {
  /** What joins it to the command before. */
  readonly after: Joint;
  readonly words: readonly string[];
  /** Whether it writes to the standard error. */
  readonly toStderr: boolean;
}

type Variables = () => Readonly<Record<string, string>>;

const part = new RegExp(
  [
    /(?<blank>[ \t]+)/,
    /(?<joint>&&|\|\||[;\n])/,
    /(?<stderr>(?:(?<=^|\s)1)?>&2)(?=[\s;&|]|$)/,
    /(?<stdout>(?<=^|\s)2>&1)(?=[\s;&|]|$)/,
    /'(?<single>[^']*)'/,
    /"(?<double>(?:[^"\\`$]|\\.|\$(?=["\s])|\$[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\})*)"/,
    /\\(?<escaped>.)/,
    /\$(?:(?<name>[A-Za-z_]\w*)|\{(?<braced>[A-Za-z_]\w*)\})/,
    /(?<plain>[^\s;&|<>()`'"\\$#]|(?<=[^\s;&|])#)/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "gsy",
);

const inQuotes = /\\(["\\$`])|\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})/g;

/** The commands of a script; undefined if it is not understood. */
export function scriptOf(text: string, variables: Variables): readonly ScriptCommand[] | undefined {
  const commands: ScriptCommand[] = [];
  const valueOf = (name: string): string => new Map(Object.entries(variables())).get(name) ?? "";
  let after: Joint | undefined = ";";
  let words: string[] = [];
  let word: string | undefined;
  let toStderr = false;
  const endWord = (): void => {
    if (word !== undefined) words.push(word);
    word = undefined;
  };
  const endCommand = (): boolean => {
    endWord();
    if (words.length === 0) return false;
    commands.push({ after: after ?? ";", words, toStderr });
    [words, toStderr, after] = [[], false, undefined];
    return true;
  };
  part.lastIndex = 0;
  for (let at = 0; at < text.length; at = part.lastIndex) {
    const found = part.exec(text)?.groups;
    if (!found) return undefined;
    const { blank, joint, stderr, stdout, single, double, escaped, name, braced, plain } = found;
    if (blank !== undefined) endWord();
    else if (joint === "\n") {
      // Lines may be empty, and one may end with `&&`.
      if (endCommand()) after = ";";
    } else if (joint !== undefined) {
      if (!endCommand()) return undefined;
      after = joint as Joint;
    } else if (stderr !== undefined || stdout !== undefined) {
      endWord();
      toStderr ||= stderr !== undefined;
    } else {
      const variable = name ?? braced;
      const quoted = double?.replace(
        inQuotes,
        (_, literal?: string, plainName?: string, bracedName?: string) =>
          literal ?? valueOf(plainName ?? bracedName ?? ""),
      );
      word = `${word ?? ""}${variable === undefined ? (single ?? quoted ?? escaped ?? plain ?? "") : valueOf(variable)}`;
    }
  }
  const isWhole = endCommand() || after === ";";
  return isWhole ? commands : undefined;
}

// The last lines of a program as its exit event shows them: short, and without the App's secrets.
import type { MachineConfig } from "../../api/machineConfig.ts";

// ASSUMED: the specification does not say what a program wrote. An exit event has its last five lines in
// `exit_event.last_lines`, oldest first, each with at most 500 characters.
const mostLines = 5;
const longestLine = 500;

// ASSUMED: values of secrets with eight characters or more are masked in these lines as `[secret]`. Shorter ones, such as `true`
// or `5432`, are words that a line may hold for other reasons.
const shortestSecret = 8;
const mask = "[secret]";

/** The values that the service gives a Machine's program from the App's secrets: variables, and contents of files. */
export function injectedSecrets(
  { files = [] }: Pick<MachineConfig, "files">,
  secrets: Readonly<Record<string, string>>,
): readonly string[] {
  const inFiles = new Set(files.map(({ secret_name }) => secret_name));
  return Object.entries(secrets).flatMap(([name, value]) =>
    inFiles.has(name) ? [value, Buffer.from(value, "base64").toString()] : [value],
  );
}

/** The last of the lines, with secrets masked. `secrets` is called only if there are lines. */
export function lastLines(
  lines: readonly string[],
  secrets: () => readonly string[],
  most = mostLines,
): readonly string[] {
  if (lines.length === 0) return [];
  const hidden = [...new Set(secrets().flatMap(formsOf))].filter(({ length }) => length >= shortestSecret);
  // Masked first: a part of a secret would not be recognized.
  return lines.slice(-most).map((line) => shortened(masked(line.replace(/\r?\n?$/, ""), hidden)));
}

/** How a value may appear in a line: by each of its own lines, and as JSON has it. */
const formsOf = (value: string): string[] => [
  ...value.split(/\r\n|\r|\n/).map((line) => line.trim()),
  JSON.stringify(value).slice(1, -1),
];

/** The beginning of a line, with every occurrence of a value replaced. Values that overlap are replaced as one. */
function masked(line: string, values: readonly string[]): string {
  const next = values.map((value) => ({ value, from: line.indexOf(value) })).filter(({ from }) => from >= 0);
  let text = "";
  let at = 0;
  // The rest of a long line is not shown.
  while (next.length > 0 && text.length <= 2 * longestLine) {
    const first = next.reduce((a, b) => (b.from < a.from ? b : a));
    if (first.from >= at) text += `${line.slice(at, first.from)}${mask}`;
    at = Math.max(at, first.from + first.value.length);
    first.from = line.indexOf(first.value, first.from + 1);
    if (first.from < 0) next.splice(next.indexOf(first), 1);
  }
  return next.length > 0 ? text : text + line.slice(at);
}

/** A character outside of the basic plane counts once, and is never divided. */
function shortened(line: string): string {
  if (line.length <= longestLine) return line;
  const characters = Array.from(line.slice(0, 2 * longestLine + 2));
  return characters.length <= longestLine ? line : `${characters.slice(0, longestLine - 1).join("")}…`;
}

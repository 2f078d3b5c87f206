// The file with the settings of an installed service: the variables of the options of `start`, as systemd reads them.

/** Where the settings of the installed service are. */
export const settingsFile = "/etc/machines-service/service.env";

/** The first lines of a new file. */
export const settingsHead = `# The options of \`machines-service start\`, each as its variable. After a change: machines-service setup
`;

const assignment = /^\s*([A-Za-z_]\w*)=(.*)$/;

/** The value of an assignment, without quotes. */
function valueOf(text: string): string {
  const trimmed = text.trim();
  const [quote] = trimmed;
  if (trimmed.length < 2 || (quote !== '"' && quote !== "'") || !trimmed.endsWith(quote))
    return trimmed.replace(/\\(.)/g, "$1");
  const inner = trimmed.slice(1, -1);
  return quote === "'" ? inner : inner.replace(/\\(["\\$`])/g, "$1");
}

const quoted = (value: string): string =>
  /^[\w@%+=:,./~[\]-]*$/.test(value) ? value : `"${value.replace(/["\\$`]/g, String.raw`\$&`)}"`;

/** The variables of a file. The last assignment of a name counts. */
export function settingsIn(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, name, value = ""] = assignment.exec(line) ?? [];
    if (name !== undefined) found.set(name, valueOf(value));
  }
  return found;
}

/** A file in which these variables have these values. Other lines stay as they are. */
export function withSettings(text: string, changes: ReadonlyMap<string, string>): string {
  const before = settingsIn(text);
  const open = new Map([...changes].filter(([name, value]) => before.get(name) !== value));
  if (open.size === 0) return text;
  const kept = text.split("\n").filter((line) => !open.has(assignment.exec(line)?.[1] ?? ""));
  while (kept.at(-1) === "") kept.pop();
  return `${[...kept, ...[...open].map(([name, value]) => `${name}=${quoted(value)}`)].join("\n")}\n`;
}

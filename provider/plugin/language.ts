// The language of the program. The engine does not pass it on, so it is read from the project file, as the CLI does.
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Names of a project file, in the order in which the CLI looks for them. */
const projectFiles = ["Pulumi.json", "Pulumi.yaml", "Pulumi.yml"];

/** The runtime of the project that a folder lies in: `python`. Undefined outside of any project. */
export async function runtimeOf(folder: string): Promise<string | undefined> {
  for (const name of projectFiles) {
    const text = await readFile(join(folder, name), "utf8").catch(() => undefined);
    if (text !== undefined) return runtimeIn(text);
  }
  const above = dirname(folder);
  return above === folder ? undefined : runtimeOf(above);
}

/** Runtimes whose programs spell properties differently from the package schema. */
const others = /\b(?:python|go|dotnet)\b/;

/**
 * The runtime that a project file names, where it matters: loading the parser would delay the start of every other
 * program. The CLI reports a file that cannot be read; here, it only costs the spelling.
 */
async function runtimeIn(text: string): Promise<string | undefined> {
  if (!others.test(text)) return undefined;
  const { parse } = await import("yaml");
  try {
    const { runtime } = parse(text) as { runtime?: string | { name?: string } };
    return typeof runtime === "object" ? runtime.name : runtime;
  } catch {
    return undefined;
  }
}

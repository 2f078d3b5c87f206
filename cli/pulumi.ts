// Reads the stack's state and its configuration through the Pulumi CLI.
import { execFile, type ExecFileException } from "node:child_process";
import { isObject } from "../api/schema.ts";
import { MachinesError } from "../provider/client/errors.ts";

/** The state of a stack of this folder's project, the selected one when left out, with its secrets sealed or in the clear. */
export const exportStack = (stack: string | undefined, secrets: "sealed" | "clear" = "sealed"): Promise<string> =>
  pulumi(["stack", "export", ...(secrets === "clear" ? ["--show-secrets"] : [])], stack);

/** The stack's configuration of the provider by key, without its namespace. Values are in the clear: never print them. */
export async function stackConfig(stack: string | undefined): Promise<ReadonlyMap<string, string>> {
  const text = await pulumi(["config", "--json", "--show-secrets"], stack);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // Reported below: a parser's message quotes the text, which contains secrets.
  }
  if (!isObject(json)) throw new MachinesError("configuration", "`pulumi config --json` did not write JSON");
  return new Map(
    Object.entries(json).flatMap(([key, entry]) =>
      key.startsWith("machines:") && isObject(entry) && typeof entry["value"] === "string"
        ? [[key.slice("machines:".length), entry["value"]]]
        : [],
    ),
  );
}

/**
 * Runs the Pulumi CLI in this folder, for a stack or the selected one.
 * @param input its standard input, for values that errors and lists of processes must not show
 * @throws MachinesError with its error output
 */
export function pulumi(args: readonly string[], stack: string | undefined, input = ""): Promise<string> {
  const all = [...args, ...(stack === undefined ? [] : ["--stack", stack]), "--non-interactive", "--color", "never"];
  return new Promise((resolve, reject) => {
    const child = execFile("pulumi", all, { maxBuffer: 2 ** 30 }, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      reject(new MachinesError("configuration", refusal(args, error, stderr)));
    });
    child.stdin?.on("error", () => undefined).end(input); // it may have ended without reading
  });
}

function refusal(args: readonly string[], error: ExecFileException, stderr: string): string {
  if (error.code === "ENOENT")
    return "the Pulumi CLI was not found: put pulumi on PATH, or give an export with --state";
  const reason = stderr.trim().replace(/^error: /, "");
  return `\`pulumi ${args.join(" ")}\` failed: ${reason === "" ? String(error.code) : reason}`;
}

// Reads files that the user names, and reports where they are wrong.
import { readFileSync } from "node:fs";
import type { z } from "zod";
import { fieldOf, tidy, type Field } from "../../api/schema.ts";
import { validated } from "../../api/validated.ts";
import { problemText } from "../validation/validate.ts";
import { Problem } from "./problem.ts";

/** The text of a file. `what` begins the error message: the option or the command that names the file. */
export function readFile(what: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    throw new Problem(`${what}: ${file} cannot be read (${code})`);
  }
}

/** The names that a schema allows at the place of an unknown one. */
function knownNames(schema: z.ZodType, path: string): string {
  let field: Field | undefined = fieldOf(schema);
  for (const part of path.split(/\.|(?=\[)/).slice(0, -1)) {
    const shape: Field["shape"] | undefined = field?.shape;
    if (shape?.kind === "array") field = shape.item;
    else if (shape?.kind === "record") field = shape.value;
    else field = shape?.kind === "object" ? shape.fields[part] : undefined;
  }
  return field?.shape.kind === "object" ? `, allowed are ${Object.keys(field.shape.fields).join(", ")}` : "";
}

/** Reads a JSON file and checks it against a schema. Unknown fields are refused at every depth. */
export function readJson<S extends z.ZodType>(what: string, file: string, schema: S): z.infer<S> {
  const text = readFile(what, file);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    // The message itself is omitted: it quotes the file, which may contain secrets.
    const place = /\(line \d+ column \d+\)/.exec(String(error))?.[0];
    throw new Problem(`${what}: ${file} is not JSON${place === undefined ? "" : ` ${place}`}`);
  }
  const { value, unknown } = tidy(schema, json, "request");
  const [first] = unknown;
  if (first !== undefined) throw new Problem(`${what}: ${file}: unknown ${first}${knownNames(schema, first)}`);
  const result = validated(schema, value);
  const issue = result.error?.issues[0];
  if (issue) throw new Problem(`${what}: ${file}: ${problemText(schema, issue, value)}`);
  return result.data as z.infer<S>;
}

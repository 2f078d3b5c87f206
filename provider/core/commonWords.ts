// Words that are no secrets by themselves, although a variable or an argument of a command may be one of them.
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { fieldOf, type Field } from "../../api/schema.ts";

/**
 * Usual values of variables and arguments, and words of our own messages. Those of fewer characters than a secret has are
 * left out.
 */
const usual = [
  "127.0.0.1 0.0.0.0 localhost application/json text/plain text/html",
  "production development staging testing release preview default enabled disabled standard",
  "verbose warning message database service services server client worker console backend frontend",
  "machine machines volume volumes config configuration cluster region regions version versions image images",
  "address command commands check checks health healthy answer answered update updated create created delete deleted",
  "deploy deployed deployment migrate migrations install restart restarted start starts stopped running replace replaced",
  "refused invalid unknown missing required request exited failed failure program pulumi python postgres",
];

let words: ReadonlySet<string> | undefined;

/** Whether a text is a usual word: one of the above, or a value that the interface allows somewhere. */
export const isCommonWord = (text: string): boolean => (words ??= allWords()).has(text.toLowerCase());

function allWords(): ReadonlySet<string> {
  const found = new Set(usual.flatMap((line) => line.split(" ")));
  const seen = new Set<Field>();
  const walk = (field: Field): void => {
    if (seen.has(field)) return;
    seen.add(field);
    const { shape, meta } = field;
    for (const word of meta.open ?? []) found.add(word.toLowerCase());
    if (shape.kind === "leaf") for (const word of shape.values ?? []) found.add(word.toLowerCase());
    if (shape.kind === "object") Object.values(shape.fields).forEach(walk);
    if (shape.kind === "record") walk(shape.value);
    if (shape.kind === "array") walk(shape.item);
  };
  const operations = Object.values(contract).flatMap((group): readonly Operation[] => Object.values(group));
  for (const { params, query, body, answer } of operations)
    for (const schema of [params, query, body, answer]) if (schema !== undefined) walk(fieldOf(schema));
  for (const word of ["true", "false", "null", "undefined", "http", "https", "json"]) found.add(word);
  return found;
}

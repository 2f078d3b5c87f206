// The headers that the proxy sets on every answer (`http_options.response.headers`). Without I/O; the provider refuses those that
// are no headers before the service does, and the proxy sets what was accepted.

/** Headers by which HTTP says where a message ends, and whether its connection stays open. Only the proxy sets them. */
export const ofMessage: readonly string[] = [
  ...[
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
  ],
];

/** Whether a text can be the name of a header (RFC 9110, section 5.1). */
export const isHeaderName = (name: string): boolean => /^[\w!#$%&'*+.^`|~-]+$/.test(name);

/** Whether a text can be the value of a header: no control character except the tab, and no character above U+00FF. */
export const isHeaderValue = (value: string): boolean => /^[\t\x20-\x7e\x80-\xff]*$/.test(value);

const isSimple = (value: unknown): value is string | number | boolean =>
  ["string", "number", "boolean"].includes(typeof value);

/** Why a header cannot be set; undefined if it can, or is not known yet. It quotes no value, which may be a secret. */
export function answerHeaderProblem(name: string, value: unknown): string | undefined {
  if (!isHeaderName(name)) return "is no name of a header; use letters, digits and !#$%&'*+-.^_`|~ only";
  if (ofMessage.includes(name.toLowerCase())) return "is set by the proxy alone; leave it out";
  if (value === false) return undefined;
  const all = (Array.isArray(value) ? (value as readonly unknown[]) : [value]).filter((one) => one !== undefined);
  if (!all.every(isSimple))
    return `got ${all.includes(null) ? "null" : "a value of another type"}; must be a text, a list of texts, or false to remove it`;
  const bad = all.map(String).find((one) => !isHeaderValue(one));
  if (bad === undefined) return undefined;
  const [wrong = ""] = /[^\t\x20-\x7e\x80-\xff]/u.exec(bad) ?? [];
  const code = (wrong.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  return `got the character U+${code} in its value; must be printable, with characters up to U+00FF`;
}

/** Names and the values that replace those of a Machine; none to remove a header. */
export type HeaderChanges = readonly (readonly [name: string, values: readonly string[]])[];

/** The changes that a configuration asks for, without those that are not possible: a configuration may be older than the check. */
export const headerChanges = (headers: Readonly<Record<string, unknown>> = {}): HeaderChanges =>
  Object.entries(headers)
    .filter(([name, value]) => answerHeaderProblem(name, value) === undefined)
    .map(([name, value]) => [name, value === false ? [] : [value].flat().map(String)]);

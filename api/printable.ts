// Makes text from others safe for a terminal: it must not move the cursor, change colours, or imitate our own lines.

/** Control and format characters, line separators, lone surrogates, and what is no character. */
export const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}]/gu;

const named: Readonly<Record<string, string>> = { "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A character in JSON's form, so that JSON stays JSON. */
const escaped = (character: string): string =>
  named[character] ??
  Array.from(
    { length: character.length },
    (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`,
  ).join("");

/** A text with escaped control characters; line breaks and tabs are kept. */
export const printable = (text: string): string =>
  text.replace(unprintable, (character) => (character === "\n" || character === "\t" ? character : escaped(character)));

/** A text in one line, with escaped line breaks. */
export const oneLine = (text: string): string => text.replace(unprintable, escaped);

/** The maximum number of characters of a text that a message quotes. */
export const mostQuoted = 500;

/** Marks the place where a quoted text was truncated. */
export const cutMark = "… (";

/** A text from others in a message: on one line, and truncated if it is long. */
export function quotable(text: string, most = mostQuoted): string {
  const line = oneLine(text.length > 2 * most ? text.slice(0, 2 * most) : text);
  return line.length <= most && text.length <= 2 * most
    ? line
    : `${line.slice(0, most)}${cutMark}${text.length.toLocaleString("en")} characters)`;
}

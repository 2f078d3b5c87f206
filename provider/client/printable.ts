// Makes text of others safe for a terminal: it must not move the cursor, change colours, or look like our own lines.

/** Control and format characters, line separators, and halves of characters. */
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

const named: Readonly<Record<string, string>> = { "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A character as JSON writes it, so that a text that is JSON stays JSON. */
const escaped = (character: string): string =>
  named[character] ??
  Array.from(
    { length: character.length },
    (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`,
  ).join("");

/** A text whose control characters are shown and do nothing; line breaks and tabs stay. */
export const printable = (text: string): string =>
  text.replace(unprintable, (character) => (character === "\n" || character === "\t" ? character : escaped(character)));

/** A text in one line: line breaks are shown as well. */
export const oneLine = (text: string): string => text.replace(unprintable, escaped);

/** Characters that a message quotes of a text at most. */
export const mostQuoted = 500;

/** Marks the place where a quoted text was cut. */
export const cutMark = "… (";

/** A text of others as a message quotes it: in one line, and its beginning alone where it is long. */
export function quotable(text: string, most = mostQuoted): string {
  const line = oneLine(text.length > 2 * most ? text.slice(0, 2 * most) : text);
  return line.length <= most && text.length <= 2 * most
    ? line
    : `${line.slice(0, most)}${cutMark}${text.length.toLocaleString("en")} characters)`;
}

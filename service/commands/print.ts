// Output of commands on stdout. Text of others, such as a label of an image, does nothing to the terminal.
import { styleText } from "node:util";
import { oneLine, printable } from "../../api/printable.ts";

/** Prints a text and a line break. */
export const print = (text: string): void => void process.stdout.write(`${printable(text)}\n`);

/** Prints a value as JSON. */
export const printJson = (value: unknown): void => print(JSON.stringify(value));

/** A style of a text in a terminal. */
type Style = Parameters<typeof styleText>[0];

/** Prints texts with a space between them, some with a style in a terminal. */
export function printLine(...parts: readonly (string | readonly [text: string, style: Style])[]): void {
  // It adds no style for a pipe, nor where the environment says so.
  const texts = parts.map((part) =>
    typeof part === "string" ? printable(part) : styleText(part[1], oneLine(part[0])),
  );
  process.stdout.write(`${texts.join(" ")}\n`);
}

/** A cell of a table: a text, and its style in a terminal. */
export type Cell = string | readonly [text: string, style: "green" | "red" | "yellow" | "dim"];

/** Prints rows in columns, under their headings. */
export function printTable(headings: readonly string[], rows: readonly (readonly Cell[])[]): void {
  const all = rows.map((row) =>
    row.map((cell): readonly [string, string] => {
      const [text, style] = typeof cell === "string" ? [cell] : cell;
      const line = oneLine(text);
      // It adds no style for a pipe, nor where the environment says so.
      return [line, style === undefined ? line : styleText(style, line)];
    }),
  );
  const heads = headings.map((text): readonly [string, string] => [text, styleText("bold", text)]);
  const widths = headings.map((text, i) => Math.max(text.length, ...all.map((row) => row[i]?.[0].length ?? 0)));
  for (const row of [heads, ...all]) {
    const cells = row.map(([text, styled], i) => styled + " ".repeat((widths[i] ?? 0) - text.length));
    process.stdout.write(`${cells.join("  ").trimEnd()}\n`);
  }
}

// Colours, where standard output is a terminal, and tables.
import { styleText } from "node:util";
import { printable } from "../api/printable.ts";

/** The meanings of a text that have a colour. */
const styles = { head: "bold", good: "green", bad: "red", unsure: "yellow", aside: "dim" } as const;

/** A meaning. */
export type Style = keyof typeof styles;

/** A text in its colour; without one in a pipe, and with NO_COLOR. */
export const paint = (style: Style | undefined, text: string): string =>
  style === undefined ? text : styleText(styles[style], text, { stream: process.stdout });

/** The sequences that {@link paint} writes. */
const painted = /(\u001b\[\d{1,2}m)/;

/** {@link printable}, except for colours. A text of others can show at most these. */
export const printablePainted = (text: string): string =>
  text
    .split(painted)
    .map((part, i) => (i % 2 === 1 ? part : printable(part)))
    .join("");

/** A cell of a table. */
export type Cell = string | { readonly text: string; readonly style: Style };

/** Rows in columns, under their heads. */
export function tableOf(heads: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const all = [heads.map((text) => ({ text, style: "head" as const })), ...rows].map((row) =>
    row.map((cell) => (typeof cell === "string" ? { text: printable(cell), style: undefined } : cell)),
  );
  const widths = heads.map((_, i) => Math.max(...all.map((row) => row[i]?.text.length ?? 0)));
  return all
    .map((row) => {
      const last = row.findLastIndex(({ text }) => text !== "");
      return row
        .slice(0, last + 1)
        .map(({ text, style }, i) => paint(style, text) + (i < last ? " ".repeat((widths[i] ?? 0) - text.length) : ""))
        .join("   ");
    })
    .join("\n");
}

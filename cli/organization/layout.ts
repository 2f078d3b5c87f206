// Lays nested text out as a formatter would: on one line if it fits, else one item a line.

/** A text, or items between brackets. */
export type Layout = string | Bracketed;

/** Items between brackets. */
export interface Bracketed {
  readonly open: string;
  readonly close: string;
  readonly items: readonly Layout[];
  /** Spaces inside of the brackets, on one line. */
  readonly isPadded?: boolean;
  /** Whether a comma follows the last item if it has a line of its own. */
  readonly hasLastComma?: boolean;
  /** Whether it is never on one line. */
  readonly isBroken?: boolean;
  /** Whether it stays as it is if only its last item has several lines. */
  readonly hugsLast?: boolean;
}

/** How wide a line may be, and what it is indented with. */
export interface Page {
  readonly width: number;
  readonly indent: string;
  /** What a labelled text looks like that begins on a line of its own if it is too long. */
  readonly longText?: RegExp;
}

/** An item with a text before it: `name: value`. */
export const labelled = (label: string, value: Layout): Layout =>
  typeof value === "string" ? label + value : { ...value, open: label + value.open };

/** The text of a layout at a depth; `after` is the number of characters that follow it on its last line. */
export function laidOut(layout: Layout, page: Page, depth = 0, after = 0): string {
  if (typeof layout === "string") return layout;
  const { open, close, items, hasLastComma = true, hugsLast } = layout;
  if (items.length === 0) return open + close;
  const flat = flatOf(layout);
  const column = page.indent.length * depth;
  if (flat !== undefined && column + flat.length + after <= page.width) return flat;
  if (hugsLast) {
    const before = items.slice(0, -1).map((item) => flatOf(item));
    const last = items.at(-1) ?? "";
    const start = open + before.map((one) => `${one ?? ""}, `).join("");
    const isShort = typeof last !== "string" && column + start.length + last.open.length <= page.width;
    if (isShort && before.every((one) => one !== undefined))
      return laidOut(labelled(start, { ...last, isBroken: true }), page, depth) + close;
  }
  const inside = page.indent.repeat(depth + 1);
  const lines = items.map((item, i) => {
    const comma = i < items.length - 1 || hasLastComma ? "," : "";
    const text = laidOut(item, page, depth + 1, comma.length);
    const [, label, value] = (typeof item === "string" && page.longText?.exec(item)) || [];
    const isLong = inside.length + text.length + comma.length > page.width;
    return isLong && label !== undefined && value !== undefined
      ? `${inside}${label}\n${inside}${page.indent}${value}${comma}`
      : `${inside}${text}${comma}`;
  });
  return `${open}\n${lines.join("\n")}\n${page.indent.repeat(depth)}${close}`;
}

/** A layout on one line; undefined if it has several. */
function flatOf(layout: Layout): string | undefined {
  if (typeof layout === "string") return layout.includes("\n") ? undefined : layout;
  if (layout.isBroken && layout.items.length > 0) return undefined;
  const items = layout.items.map(flatOf);
  if (items.some((item) => item === undefined)) return undefined;
  const space = layout.isPadded && items.length > 0 ? " " : "";
  return layout.open + space + items.join(", ") + space + layout.close;
}

/** Texts, with an empty line around those of several lines. */
export const spaced = (texts: readonly string[]): string =>
  texts
    .map((text, i) => {
      const before = texts[i - 1];
      const isApart = before !== undefined && (text.includes("\n") || before.includes("\n"));
      return `${isApart ? "\n" : ""}${text}`;
    })
    .join("\n");

// Paginates lists. A cursor is the position of the last shown entry, so that concurrent changes neither repeat nor hide others.
import { refuse } from "../refusal.ts";

/** The position of an entry in its list: a number, then a text that orders equal numbers. */
export type Place = readonly [number, string];

interface Paging {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** The cursor of a position. */
export const cursorOf = ([number, text]: Place): string => Buffer.from(`${number} ${text}`).toString("base64url");

/** The position of a cursor; undefined without one. */
export function placeOf(cursor: string | undefined): Place | undefined {
  if (cursor === undefined || cursor === "") return undefined;
  const [, number, text] = /^(\d{1,15}) (.*)$/s.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  if (number === undefined) throw refuse(400, "invalid cursor, this service did not create it");
  return [Number(number), text ?? ""];
}

const isAfter = ([a, x]: Place, [b, y]: Place): boolean => a > b || (a === b && x > y);

/** The requested page of a sorted list, and the cursor of the next page if there is one. */
export function pageOf<Row>(
  rows: readonly Row[],
  { limit, cursor }: Paging,
  at: (row: Row) => Place,
): { readonly page: readonly Row[]; readonly next: string | undefined } {
  const after = placeOf(cursor);
  const rest = after ? rows.filter((row) => isAfter(at(row), after)) : rows;
  const page = limit === undefined ? rest : rest.slice(0, limit);
  const last = page.at(-1);
  return { page, next: last !== undefined && page.length < rest.length ? cursorOf(at(last)) : undefined };
}

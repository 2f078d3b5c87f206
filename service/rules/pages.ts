// Lists page by page. A cursor is the place of the last thing that was answered, so that what comes or goes meanwhile
// neither repeats nor hides anything else.
import { refuse } from "../refusal.ts";

/** Where a thing stands in its list: a number first, then a text that tells equals apart. */
export type Place = readonly [number, string];

interface Paging {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** The cursor that names a place. */
export const cursorOf = ([number, text]: Place): string => Buffer.from(`${number} ${text}`).toString("base64url");

/** The place a cursor names; undefined without one. */
export function placeOf(cursor: string | undefined): Place | undefined {
  if (cursor === undefined || cursor === "") return undefined;
  const [, number, text] = /^(\d{1,15}) (.*)$/s.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  if (number === undefined) throw refuse(400, "invalid cursor, it is not one that this service gave");
  return [Number(number), text ?? ""];
}

const isAfter = ([a, x]: Place, [b, y]: Place): boolean => a > b || (a === b && x > y);

/** The page of a sorted list that a request asks for, and the cursor of the next one if there is more. */
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

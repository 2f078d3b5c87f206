// How many there are, for answers that say so and for limits.
import type { SQLInputValue } from "node:sqlite";
import type { Context } from "../context.ts";

/** What a query counts as `n`. */
export const count = (context: Context, sql: string, ...values: SQLInputValue[]): number =>
  context.store.get<{ n: number }>(sql, ...values)?.n ?? 0;

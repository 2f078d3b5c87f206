// Counts rows, for answers and limits.
import type { SQLInputValue } from "node:sqlite";
import type { Context } from "../context.ts";

/** The column `n` of a query. */
export const count = (context: Context, sql: string, ...values: SQLInputValue[]): number =>
  context.store.get<{ n: number }>(sql, ...values)?.n ?? 0;

/** The result of a Machine's checks, whose table is `m`. One that does not run, or has no checks, has none. */
export const checks = "iif(m.state = 'started' AND m.has_checks, m.checks, NULL)";

// How many there are, for answers that say so and for limits.
import type { SQLInputValue } from "node:sqlite";
import type { World } from "../world.ts";

/** What a query counts as `n`. */
export const count = (world: World, sql: string, ...values: SQLInputValue[]): number =>
  world.store.get<{ n: number }>(sql, ...values)?.n ?? 0;

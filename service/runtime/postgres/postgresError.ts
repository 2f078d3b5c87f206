// Errors of the engines that run real servers.
import pg from "pg";

/** PostgreSQL cannot be used; the message says why and what to do. */
export class PostgresError extends Error {
  override readonly name = "PostgresError";
}

/** The reason of a failure, for the log. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

// Classes of codes for what passes by itself: a broken connection, missing resources, a server that ends, and faults of it.
const passing = ["08", "53", "57", "58", "XX"];
// No space on the disk.
const diskFull = "53100";

/** Whether a server has refused a statement for good. Errors of the system have codes too, such as `EPIPE`. */
export const isRefusal = (error: unknown): error is Error => {
  if (!(error instanceof pg.DatabaseError)) return false;
  const { code = "" } = error;
  return code === diskFull || !passing.includes(code.slice(0, 2));
};

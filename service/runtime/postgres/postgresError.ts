// Errors of the engines that run real servers.
import { reasonOf } from "../../reasonOf.ts";
import pg from "pg";
import { codeOf } from "../errorCode.ts";
import { ChangeRefused } from "../postgresEngine.ts";

/** PostgreSQL cannot be used; the message says why and what to do. */
export class PostgresError extends Error {
  override readonly name = "PostgresError";
}

/** A server was ended by a signal, or by its computer. */
export class ServerKilled extends PostgresError {}

// Classes of codes for what passes by itself: a broken connection, missing resources, a server that ends, and faults of it.
const passing = ["08", "53", "57", "58", "XX"];
// No space on the disk.
const diskFull = "53100";

/** Whether a change is refused for good, in most cases by the server. Errors of the system have codes too, such as `EPIPE`. */
export const isRefusal = (error: unknown): error is Error => {
  if (error instanceof ChangeRefused) return true;
  if (!(error instanceof pg.DatabaseError)) return false;
  const { code = "" } = error;
  return code === diskFull || !passing.includes(code.slice(0, 2));
};

// The connection is broken, or the server is being ended or started.
const lost = ["ECONNREFUSED", "ECONNRESET", "EPIPE", "57P01", "57P02", "57P03"];

/** Whether a server ended in the middle of something, which may succeed when it runs again. */
export const isLost = (error: unknown): boolean =>
  error instanceof ServerKilled ||
  lost.includes(codeOf(error)) ||
  // The driver gives these no code.
  /^Connection terminated|is not queryable$/.test(reasonOf(error));

// Errors of the engines that run real servers.

/** PostgreSQL cannot be used; the message says why and what to do. */
export class PostgresError extends Error {
  override readonly name = "PostgresError";
}

interface WithCode {
  readonly code?: unknown;
}

/** The code of an error: of a server (five characters), or of the system. */
export const codeOf = (error: unknown): string | undefined => {
  const code = typeof error === "object" && error !== null ? (error as WithCode).code : undefined;
  return typeof code === "string" ? code : undefined;
};

/** The reason of a failure, for the log. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

// Classes of codes for what passes by itself: a broken connection, missing resources, a server that ends, and faults of it.
const passing = ["08", "53", "57", "58", "XX"];
// No space on the disk.
const diskFull = "53100";

/** Whether a server has refused a statement for good. */
export const isRefusal = (error: unknown): error is Error => {
  const code = codeOf(error);
  if (code === undefined || !/^[0-9A-Z]{5}$/.test(code)) return false;
  return code === diskFull || !passing.includes(code.slice(0, 2));
};

// Codes of errors.

/** The code of an error: of the system, such as `EADDRINUSE`, or of a PostgreSQL server. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error ? String(error.code) : "unknown";

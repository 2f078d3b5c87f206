// The reasons for which SQLite fails.

/** SQLite's primary result code of an error (13: the disk is full), or undefined for other errors. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return undefined;
  return error.errcode & 0xff;
}

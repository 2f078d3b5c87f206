/** A backup that failed, or a repository that cannot be used; the message says why and what to do. */
export class BackupError extends Error {
  override readonly name = "BackupError";
}

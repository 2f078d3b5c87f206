import { BackupError } from "../backup/backupError.ts";
import { Problem } from "./problem.ts";

/** Throws an error of backups as a Problem, and others as they are. */
export function problemOf(error: unknown): never {
  throw error instanceof BackupError ? new Problem(error.message) : error;
}

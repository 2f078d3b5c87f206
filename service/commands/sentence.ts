// Error messages of commands.
import { Problem } from "../local/problem.ts";
import { LogUnavailable } from "../replication/log.ts";
import { StoreError } from "../store/database.ts";

/** One sentence for an error that the user can fix; the stack for a bug of the service. */
export function sentence(error: unknown): string {
  if (error instanceof Problem || error instanceof StoreError) return error.message;
  if (error instanceof LogUnavailable) return `--store: the database does not answer: ${error.message}; try again`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

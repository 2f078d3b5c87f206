// Error messages of commands.
import { Problem } from "../local/problem.ts";
import { StoreError } from "../store/database.ts";

/** One sentence for an error that the user can fix; the stack for a bug of the service. */
export function sentence(error: unknown): string {
  if (error instanceof Problem || error instanceof StoreError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

// What went wrong, as it is told.
import { Problem } from "../local/problem.ts";
import { StoreError } from "../store/database.ts";

/** One sentence for whatever the user can put right; for a mistake of ours, where it was made. */
export function sentence(error: unknown): string {
  if (error instanceof Problem || error instanceof StoreError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

// Which part of the history a token may see.
import type { Context } from "../context.ts";
import { refuse } from "../refusal.ts";
import type { Caller } from "../rules/rule.ts";

/** What a token may see of the history of its organization. */
interface Visible {
  /** Name of the only App; undefined for all. */
  readonly app: string | undefined;
  /** Only what is not older: an App that was deleted may have had the name of the App. */
  readonly since: number;
}

/** What a token may see, and wants to. Throws a Refusal if it may not see the wanted App. */
export function visibleHistory({ store }: Context, { app }: Caller, wanted?: string): Visible {
  if (app === null) return { app: wanted, since: 0 };
  const own = store.get<{ name: string; created_at: number }>("SELECT name, created_at FROM apps WHERE id = ?", app);
  if (!own || (wanted !== undefined && wanted !== own.name)) throw refuse(404, "app not found");
  return { app: own.name, since: own.created_at };
}

// Which part of the history a token may see.
import type { Context } from "../context.ts";
import type { OnlyApps } from "../history/entry.ts";
import { refuse } from "../refusal.ts";
import type { Caller } from "../rules/rule.ts";
import { appsParameter, isForAll, onlyApps } from "../store/tokens.ts";

/**
 * What a token may see of the history of its organization, and wants to: names of the only Apps, each with the moment before which
 * nothing is shown, because an App that was deleted may have had its name. Undefined for everything. Throws a Refusal if it may not see
 * the wanted App.
 */
export function visibleHistory({ store }: Context, caller: Caller, wanted?: string): OnlyApps | undefined {
  if (isForAll(caller)) return wanted === undefined ? undefined : { [wanted]: 0 };
  const own = store.all<{ name: string; created_at: number }>(
    `SELECT name, created_at FROM apps WHERE ${onlyApps("id", 1)} AND deleting < 2`,
    appsParameter(caller),
  );
  const seen = own.filter(({ name }) => wanted === undefined || name === wanted);
  if (wanted !== undefined && seen.length === 0) throw refuse(404, "app not found");
  return Object.fromEntries(seen.map(({ name, created_at }) => [name, created_at]));
}

// Which part of the history a token may see.
import type { Context } from "../context.ts";
import type { OnlyApps } from "../history/entry.ts";
import { refuse } from "../refusal.ts";
import type { Caller } from "../rules/rule.ts";
import { ownApps } from "../store/tokens.ts";

/**
 * What a token may see of the history of its organization, and wants to: names of the only Apps, each with the moment before which
 * nothing is shown, because an App that was deleted may have had its name. Undefined for everything. Throws a Refusal if it may not see
 * the wanted App.
 */
export function visibleHistory({ store }: Context, caller: Caller, wanted?: string): OnlyApps | undefined {
  const own = ownApps(store, caller);
  if (!own) return wanted === undefined ? undefined : { [wanted]: 0 };
  const seen = own.filter(({ name }) => wanted === undefined || name === wanted);
  if (wanted !== undefined && seen.length === 0) throw refuse(404, "app not found");
  return Object.fromEntries(seen.map(({ name, created_at }) => [name, created_at]));
}

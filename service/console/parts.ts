// Reads the Machines of an App in parts, so that other requests are served in between.
import type { Store } from "../store/database.ts";
import type { Work } from "../time/costly.ts";

/** Number of Machines in a part. */
const size = 2000;
/** Sorts after every name. */
const end = "\u{10ffff}";

/** The condition of a part's Machines, whose table is `m`. Its values are the App and the two names of {@link partsOf}. */
export const inPart = "m.app = ?1 AND m.destroyed_at IS NULL AND m.name > ?2 AND m.name <= ?3";

/** The parts of an App's Machines by name: after the first name, up to the second one. */
export async function* partsOf(
  { store }: { readonly store: Pick<Store, "get"> },
  app: string,
  work: Work,
): AsyncGenerator<readonly [after: string, last: string]> {
  const boundary = `SELECT name FROM machines WHERE app = ? AND destroyed_at IS NULL AND name > ?
    ORDER BY name LIMIT 1 OFFSET ${size - 1}`;
  for (let after = ""; ;) {
    const last = store.get<{ name: string }>(boundary, app, after)?.name;
    yield [after, last ?? end];
    await work.pause();
    if (last === undefined) return;
    after = last;
  }
}

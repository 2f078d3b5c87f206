// Creating exactly once what can carry no tag: addresses, snapshots and volumes. A lost answer is settled by comparing the
// lists of before and after.
import { ApiError, isAmbiguous, MachinesError } from "../core/errors.ts";
import type { Api, Shared } from "./api.ts";
import { growingPause } from "./clock.ts";

/** What was just made may show up this much later (spec 4.6 rule 2). */
const shownWithin = 10_000;
const attempts = 3;

/** How one thing without a tag is made and found. */
export interface Unmarked<Item, Made> {
  /** What the things are made in: one after the other there, or one create would find what another one made. */
  readonly place: string;
  readonly list: () => Promise<readonly Item[]>;
  readonly keyOf: (item: Item) => string | undefined;
  /** Asks for it; answers what was made where the service tells. */
  readonly send: () => Promise<Made | undefined>;
  /** What was made, among the items that were not there before; undefined while it does not show. */
  readonly pick: (fresh: readonly Item[]) => Made | undefined;
}

/** Makes it, and never twice: a request is repeated only after a look that shows nothing. */
export const makeUnmarked = <Item, Made>(api: Api, thing: Unmarked<Item, Made>): Promise<Made> =>
  inTurn(api.shared, thing.place, async () => {
    const before = new Set((await thing.list()).map((item) => thing.keyOf(item)));
    for (let attempt = 1; ; attempt++) {
      let lost: Error | undefined;
      try {
        const made = await thing.send();
        if (made !== undefined) return made;
      } catch (error) {
        // A second request is refused when the first one was applied after all.
        const refusedAsDouble = attempt > 1 && error instanceof ApiError;
        if (!isAmbiguous(error) && !refusedAsDouble) throw error;
        lost = error as Error;
      }
      const made = await look(api, thing, before);
      if (made !== undefined) return made;
      if (lost === undefined)
        throw new MachinesError("api", `what was made in ${thing.place} does not show within ${shownWithin / 1000} s`);
      if (!isAmbiguous(lost) || attempt === attempts) throw lost;
    }
  });

async function look<Item, Made>(
  api: Api,
  { list, keyOf, pick }: Unmarked<Item, Made>,
  before: ReadonlySet<string | undefined>,
): Promise<Made | undefined> {
  const until = Math.min(api.deadline.at, api.clock.now() + shownWithin);
  const pause = growingPause(100, 2000);
  for (;;) {
    const made = pick((await list()).filter((item) => !before.has(keyOf(item))));
    if (made !== undefined || api.clock.now() >= until) return made;
    await api.clock.sleep(pause(), api.deadline.signal);
  }
}

const turns = new WeakMap<Shared, Map<string, Promise<unknown>>>();

function inTurn<T>(shared: Shared, place: string, work: () => Promise<T>): Promise<T> {
  const places = turns.get(shared) ?? new Map<string, Promise<unknown>>();
  turns.set(shared, places);
  const mine = (places.get(place) ?? Promise.resolve()).then(work, work);
  places.set(place, mine);
  return mine;
}

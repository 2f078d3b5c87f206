// Creating exactly once what can carry no tag. The interface has no idempotency key: what a lost answer or a killed run has
// made is found by comparing what there is with what was there before.
import { randomBytes } from "node:crypto";
import { ApiError, isAmbiguous, MachinesError } from "../core/errors.ts";
import type { Call } from "../core/resource.ts";
import type { Api, Shared } from "./api.ts";
import type { Intent } from "./intents.ts";
import { lookUntil, shownWithin } from "./visibility.ts";

const attempts = 3;
/** What a run that was cut off has made was made no longer than this after it was begun; the clocks' difference included. */
const madeWithin = 5 * 60_000;

/** Of what tells no time of its own: how long a run that was cut off is believed to have made what is there. */
const believedFor = 60 * 60_000;

/** How one thing without a tag is made and found. */
export interface Making<Item, Made> {
  /** The thing in words, for messages: `volume data`. */
  readonly what: string;
  /** Whose it is; without one, a run that is cut off leaves no trace. */
  readonly owner: string | undefined;
  /** What the things are made in, and of which kind: `volumes of App shop`. */
  readonly place: string;
  readonly name: string;
  /** The service refuses a second one of the name: then many can be made at a time. */
  readonly unique: boolean;
  /** Those that are there now; of what has a name of its own, that one alone is enough. */
  readonly list: () => Promise<readonly Item[]>;
  readonly keyOf: (item: Item) => string;
  /** Keys of what was made, of what has no name of its own. */
  readonly keysOf?: (made: Made) => readonly string[];
  /** Asks for it; answers what was made where the service tells. */
  readonly send: () => Promise<Made | undefined>;
  /** What was made, among the items that were not there before; undefined while it does not show. */
  readonly pick: (fresh: readonly Item[]) => Made | undefined;
  /** RFC 3339 time of creation, where it is told: what is older or newer than the request is not taken over. */
  readonly createdAt?: (item: Item) => string | undefined;
  /** Why what is there already is not taken over; the service decides when left out. */
  readonly taken?: (item: Item) => MachinesError | undefined;
  /** Makes what a run that was cut off left behind what is wanted now; it is taken as it is when left out. */
  readonly takeUp?: (made: Made) => Promise<Made>;
  /** Failures after which nobody knows whether it was made; those that are ambiguous when left out. */
  readonly unclear?: (error: unknown) => boolean;
}

/**
 * Makes it, and never twice: what a run that was cut off has made is taken over, an answer that was lost is settled by
 * looking, and a request is repeated only after a look that shows nothing.
 */
export const makeOnce = <Item, Made>(call: Pick<Call, "api" | "warn">, thing: Making<Item, Made>): Promise<Made> =>
  thing.unique ? make(call, thing) : inTurn(call.api.shared, thing.place, () => makeOwn(call, thing));

/** Makes one among others that look like it: what one of them has made is never taken for another one's. */
async function makeOwn<Item, Made>(call: Pick<Call, "api" | "warn">, thing: Making<Item, Made>): Promise<Made> {
  const { shared } = call.api;
  const ours = own.get(shared) ?? new Set<string>();
  own.set(shared, ours);
  const keyIn = (key: string) => `${thing.place}/${key}`;
  const list = async () => (await thing.list()).filter((item) => !ours.has(keyIn(thing.keyOf(item))));
  const made = await make(call, { ...thing, list });
  const keys = thing.keysOf?.(made) ?? [];
  for (const key of keys) ours.add(keyIn(key));
  shared.intents.notTheirs(thing.owner, thing.place, keys);
  return made;
}

/** What this process has made, by place. */
const own = new WeakMap<Shared, Set<string>>();

/** Something is gone from a place, and what gets the same key next is another one: addresses are given out again. */
export const isFree = (shared: Shared, place: string, key: string): void =>
  void own.get(shared)?.delete(`${place}/${key}`);

async function make<Item, Made>(call: Pick<Call, "api" | "warn">, thing: Making<Item, Made>): Promise<Made> {
  const { api } = call;
  const { owner, place, name, unclear = isAmbiguous } = thing;
  const { intents } = api.shared;
  const left = intents.find(owner);
  if (left?.endpoint === api.config.endpoint) {
    const made = await leftBehind(call, thing, left);
    if (made !== undefined) return made;
    intents.settle(owner);
  }
  const there = await thing.list();
  for (const item of there) {
    const taken = thing.taken?.(item);
    if (taken) throw taken;
  }
  const before = there.map((item) => thing.keyOf(item));
  const op = randomBytes(16).toString("hex");
  const { endpoint } = api.config;
  if (owner !== undefined) await intents.write({ owner, op, endpoint, place, name, before, at: api.clock.now() });
  for (let attempt = 1; ; attempt++) {
    let failure: Error | undefined;
    try {
      const made = await thing.send();
      if (made !== undefined) return made;
    } catch (error) {
      // A second request is refused when the first one was applied after all.
      const refusedAsDouble = attempt > 1 && error instanceof ApiError;
      if (!unclear(error) && !refusedAsDouble) {
        if (attempt === 1) intents.settle(owner);
        throw error;
      }
      failure = error as Error;
    }
    const isLast = failure === undefined || !unclear(failure) || attempt === attempts;
    // Where a double is refused, sending again is as good as waiting for it to show.
    const made = await look(api, thing, before, api.clock.now() + (thing.unique && !isLast ? 0 : shownWithin));
    if (made !== undefined) return made;
    if (failure === undefined)
      throw new MachinesError("api", `${thing.what} was made and does not show within ${shownWithin / 1000} s`);
    if (isLast) throw failure;
  }
}

/** What a create that was cut off has made, where that is what is wanted now. What else may be there is told. */
async function leftBehind<Item, Made>(
  { api, warn }: Pick<Call, "api" | "warn">,
  thing: Making<Item, Made>,
  left: Intent,
): Promise<Made | undefined> {
  const { before = [], at = 0 } = left;
  const now = api.clock.now();
  const isOfThen = (item: Item) =>
    thing.createdAt ? Math.abs(Date.parse(thing.createdAt(item) ?? "") - at) < madeWithin : now - at < believedFor;
  // Where things are made one after the other, what the next create that was cut off has found there was made by then.
  const next = thing.unique ? undefined : api.shared.intents.openIn(thing.place).find((one) => (one.at ?? 0) > at);
  const wasThere = (item: Item) => next === undefined || (next.before ?? []).includes(thing.keyOf(item));
  const pick: typeof thing.pick = (fresh) => thing.pick(fresh.filter((item) => isOfThen(item) && wasThere(item)));
  const isSame = left.place === thing.place && left.name === thing.name;
  if (isSame) {
    const made = await look(api, { ...thing, pick }, before, at + shownWithin);
    if (made !== undefined) {
      warn(`${thing.what} was made by a run that was cut off; it is taken over`);
      return thing.takeUp ? thing.takeUp(made) : made;
    }
  }
  // Of what has a name of its own, the list shows that of the name which is wanted now.
  const isListed = isSame || (left.place === thing.place && !thing.unique);
  const fresh = isListed ? (await thing.list()).map(thing.keyOf).filter((key) => !before.includes(key)) : [];
  if (fresh.length > 0) warn(suspects(thing, left, fresh));
  else if (!isListed) warn(notLookedFor(thing, left));
  return undefined;
}

const suspects = (
  { place }: Pick<Making<unknown, unknown>, "place">,
  { name }: Intent,
  keys: readonly string[],
): string =>
  `a run was cut off while it made ${name}, and since then these came to be among the ${place}: ${keys.join(", ")}. ` +
  "None of them is sure to be what it made and what is wanted now, so another one is made; npx pulumi-machines orphans shows what nobody's state holds.";

const notLookedFor = ({ what }: Pick<Making<unknown, unknown>, "what">, { name, place }: Intent): string =>
  `a run was cut off while it made ${name} among the ${place}. That is no longer what is wanted, and ${what} is made in its stead; npx pulumi-machines orphans shows whether it is there.`;

const look = <Item, Made>(
  api: Api,
  { list, keyOf, pick }: Making<Item, Made>,
  before: readonly string[],
  until: number,
): Promise<Made | undefined> =>
  lookUntil(api, until, async () => pick((await list()).filter((item) => !before.includes(keyOf(item)))));

const turns = new WeakMap<Shared, Map<string, Promise<unknown>>>();

/** One after the other in a place: one create would find what another one made. */
function inTurn<T>(shared: Shared, place: string, work: () => Promise<T>): Promise<T> {
  const places = turns.get(shared) ?? new Map<string, Promise<unknown>>();
  turns.set(shared, places);
  const mine = (places.get(place) ?? Promise.resolve()).then(work, work);
  places.set(place, mine);
  return mine;
}

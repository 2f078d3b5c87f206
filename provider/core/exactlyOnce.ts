// Creates an object exactly once where it cannot carry a tag. The interface has no idempotency key. After a lost answer or a
// killed run, the new object is found by comparing the list with the list from before the request.
import { createHmac, randomBytes } from "node:crypto";
import { MachinesError } from "../client/errors.ts";
import { retryUnlessApplied } from "./retryUnlessApplied.ts";
import type { Call } from "./resource.ts";
import type { Api } from "../client/api.ts";
import type { Intent } from "./journal.ts";
import { pollUntil, consistencyWindow } from "../client/poll.ts";
import { stable } from "./values.ts";

/** An interrupted request created its object within this time of the request. It includes the difference of the clocks. */
const createdWithin = 5 * 60_000;

/** For objects without a creation time: an object found within this time may come from the interrupted request. */
const adoptableFor = 60 * 60_000;

/** How to create one object without a tag, and how to recognise it afterwards. */
export interface CreateSpec<Item, Created> {
  /** The object in messages: `volume data`. */
  readonly what: string;
  /** Owner of the object. Without one, an interrupted run leaves no journal entry. */
  readonly owner: string | undefined;
  /** Kind of the objects, and their location: `volumes of App shop`. */
  readonly place: string;
  readonly name: string;
  /** True if the service refuses a second object of the name. Then several can be created at a time. */
  readonly unique: boolean;
  /** The inputs that nothing can change or show later. An object of an interrupted run that had others is not adopted. */
  readonly fixedInputs?: Readonly<Record<string, unknown>>;
  /** The existing objects. If names are unique, the object of this name is sufficient. */
  readonly list: () => Promise<readonly Item[]>;
  readonly keyOf: (item: Item) => string;
  /** Keys of the created objects, if names are not unique. */
  readonly keysOf?: (created: Created) => readonly string[];
  /** Sends the request. It returns the created object if the answer contains it. */
  readonly send: () => Promise<Created | undefined>;
  /** Picks the created object among the new items. It returns undefined while the object is not visible. */
  readonly pick: (fresh: readonly Item[]) => Created | undefined;
  /** RFC 3339 time of creation, if the service reports one. An object that is older or newer than the request is not adopted. */
  readonly createdAt?: (item: Item) => string | undefined;
  /** The error if an existing object prevents the create. Without this member, the service decides. */
  readonly conflictWith?: (item: Item) => MachinesError | undefined;
  /** Changes an object of an interrupted run to the wanted state. Without it, the object is adopted unchanged. */
  readonly adopt?: (created: Created) => Promise<Created>;
  /** Whether an error leaves unknown if the object exists. Default: it does if it is ambiguous. */
  readonly isUncertain?: (error: unknown) => boolean;
}

/**
 * Creates the object, never twice. The object of an interrupted run is adopted. After a lost answer the list decides, and the
 * request is repeated only if the list shows nothing new.
 */
export const createExactlyOnce = <Item, Created>(
  call: Pick<Call, "api" | "run" | "warn">,
  thing: CreateSpec<Item, Created>,
): Promise<Created> =>
  thing.unique
    ? create(call, thing)
    : // In parallel, one would find the object of another.
      call.run.creates.run(`${call.api.config.endpoint} ${thing.place}`, () => createAmongOthers(call, thing));

/** Creates one of several objects that look alike. An object of one request is never adopted for another request. */
async function createAmongOthers<Item, Created>(
  call: Pick<Call, "api" | "run" | "warn">,
  thing: CreateSpec<Item, Created>,
): Promise<Created> {
  const { createdKeys, journal } = call.run;
  const keyIn = (key: string) => createdKey(call.api, thing.place, key);
  const list = async () => (await thing.list()).filter((item) => !createdKeys.has(keyIn(thing.keyOf(item))));
  const created = await create(call, { ...thing, list });
  const keys = thing.keysOf?.(created) ?? [];
  for (const key of keys) createdKeys.add(keyIn(key));
  journal.excludeKeys(thing.owner, thing.place, keys);
  return created;
}

const createdKey = ({ config: { endpoint } }: Api, place: string, key: string): string => `${endpoint} ${place}/${key}`;

/** Forgets a key after its object was deleted: the service gives addresses out again, so the next one is another object. */
export const releaseKey = ({ api, run }: Pick<Call, "api" | "run">, place: string, key: string): void =>
  void run.createdKeys.delete(createdKey(api, place, key));

async function create<Item, Created>(
  call: Pick<Call, "api" | "run" | "warn">,
  thing: CreateSpec<Item, Created>,
): Promise<Created> {
  const { api } = call;
  const { journal } = call.run;
  const { owner, place, name } = thing;
  const interrupted = journal.find(owner);
  if (interrupted?.endpoint === api.config.endpoint) {
    const created = await adoptInterrupted(call, thing, interrupted);
    if (created !== undefined) return created;
    journal.settle(owner);
  }
  const existing = await thing.list();
  for (const item of existing) {
    const conflict = thing.conflictWith?.(item);
    if (conflict) throw conflict;
  }
  const before = existing.map((item) => thing.keyOf(item));
  const op = randomBytes(16).toString("hex");
  const { endpoint } = api.config;
  const at = api.clock.now();
  if (owner !== undefined)
    await journal.write({ ...{ owner, op, endpoint, place, name, before, at }, ...fixedInputsOf(thing, op) });
  return retryUnlessApplied(api, {
    send: () => thing.send(),
    // If the service refuses duplicates, sending again is as good as waiting until the object is visible.
    look: (isLast) =>
      findCreated(api, thing, before, api.clock.now() + (thing.unique && !isLast ? 0 : consistencyWindow)),
    isUncertain: thing.isUncertain,
    refused: () => journal.settle(owner),
    invisible: () =>
      new MachinesError("api", `${thing.what} was created, but is not visible within ${consistencyWindow / 1000} s`),
  });
}

/**
 * The object of an interrupted create, if it matches the wanted one. The user is warned of other objects that may
 * exist.
 */
async function adoptInterrupted<Item, Created>(
  { api, run, warn }: Pick<Call, "api" | "run" | "warn">,
  thing: CreateSpec<Item, Created>,
  interrupted: Intent,
): Promise<Created | undefined> {
  const { before = [], at = 0, again = [] } = interrupted;
  const now = api.clock.now();
  const isOfThen = (item: Item) => {
    if (!thing.createdAt) return now - at < adoptableFor;
    const created = Date.parse(thing.createdAt(item) ?? "");
    return [at, ...again].some((time) => Math.abs(created - time) < createdWithin);
  };
  // If creates run one after the other, the next interrupted create had listed this one's object already.
  const next = thing.unique ? undefined : run.journal.openIn(thing.place).find((one) => (one.at ?? 0) > at);
  const wasThere = (item: Item) => next === undefined || (next.before ?? []).includes(thing.keyOf(item));
  const pick: typeof thing.pick = (fresh) => thing.pick(fresh.filter((item) => isOfThen(item) && wasThere(item)));
  const isNamed = interrupted.place === thing.place && interrupted.name === thing.name;
  const others = otherInputs(thing, interrupted);
  const isSame = isNamed && others.length === 0;
  const until = at + consistencyWindow;
  if (isNamed && !isSame && thing.unique) {
    const { list, keyOf } = thing;
    const found = await findCreated(api, { list, keyOf, pick: (fresh) => fresh.find(isOfThen) }, before, until);
    // The entry stays: with the inputs of that run, the object is adopted.
    if (found !== undefined) throw otherInputsError(thing, others);
  }
  if (isSame) {
    const created = await findCreated(api, { ...thing, pick }, before, until);
    if (created !== undefined) {
      warn(`${thing.what} was created by an interrupted run; it is adopted`);
      if (!thing.adopt) return created;
      // The service may show the time of this request as that of the object. If its answer is lost, the next run needs that time too.
      const op = randomBytes(16).toString("hex");
      await run.journal.write({ ...interrupted, ...fixedInputsOf(thing, op), op, again: [...again, now] });
      return thing.adopt(created);
    }
  }
  // If names are unique, the list shows only the object of the wanted name.
  const isListed = isNamed || (interrupted.place === thing.place && !thing.unique);
  const fresh = isListed ? (await thing.list()).map(thing.keyOf).filter((key) => !before.includes(key)) : [];
  if (fresh.length > 0) warn(candidatesMessage(thing, interrupted, fresh));
  else if (!isListed) warn(notSearchedMessage(thing, interrupted));
  return undefined;
}

/** The journal gets digests: an input may be secret. */
const digestsOf = ({ fixedInputs = {} }: Pick<CreateSpec<unknown, unknown>, "fixedInputs">, op: string) =>
  Object.fromEntries(
    Object.entries(fixedInputs)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, createHmac("sha256", op).update(stable(value)).digest("hex").slice(0, 32)]),
  );

const fixedInputsOf = (thing: Pick<CreateSpec<unknown, unknown>, "fixedInputs">, op: string) =>
  thing.fixedInputs === undefined ? {} : { fixedInputs: JSON.stringify(digestsOf(thing, op)) };

/** The inputs that nothing can change or show later, and of which the interrupted run had other values. */
function otherInputs(
  thing: Pick<CreateSpec<unknown, unknown>, "fixedInputs">,
  { op, fixedInputs }: Intent,
): readonly string[] {
  // An older version did not note them.
  if (fixedInputs === undefined) return [];
  const had = JSON.parse(fixedInputs) as Readonly<Record<string, unknown>>;
  const has = digestsOf(thing, op);
  return Object.keys({ ...had, ...has }).filter((name) => had[name] !== has[name]);
}

/** The error if a name is taken by the object of an interrupted run, which cannot become the wanted one. */
const otherInputsError = ({ what }: Pick<CreateSpec<unknown, unknown>, "what">, names: readonly string[]) =>
  new MachinesError(
    "refused",
    `${what} was created by an interrupted run with other values of ${names.join(", ")}, which cannot be changed later. Restore them in the program and run up again; or delete it first, as npx pulumi-machines orphans --delete does.`,
  );

const candidatesMessage = (
  { place }: Pick<CreateSpec<unknown, unknown>, "place">,
  { name }: Intent,
  keys: readonly string[],
): string =>
  `an interrupted run was creating ${name}, and these are new among the ${place}: ${keys.join(", ")}. ` +
  "None can be identified with certainty, so a new one is created; npx pulumi-machines orphans lists what no state has.";

const notSearchedMessage = ({ what }: Pick<CreateSpec<unknown, unknown>, "what">, { name, place }: Intent): string =>
  `an interrupted run was creating ${name} among the ${place}. The program no longer wants it, so ${what} is created instead; npx pulumi-machines orphans shows whether it exists.`;

const findCreated = <Item, Found>(
  api: Api,
  { list, keyOf, pick }: Pick<CreateSpec<Item, Found>, "list" | "keyOf" | "pick">,
  before: readonly string[],
  until: number,
): Promise<Found | undefined> =>
  pollUntil(api, until, async () => pick((await list()).filter((item) => !before.includes(keyOf(item)))));

// What a preview saw of the objects that it changes, and whether an update still finds the same (docs/plans.md). Nothing here runs
// unless a variable names the file.
import { createHmac } from "node:crypto";
import { MachinesError } from "../../client/errors.ts";
import { orUndefined } from "../../client/existence.ts";
import { readOneByOne } from "../../client/listCache.ts";
import { contextOf, type Call, type Resource, type Values } from "../resource.ts";
import { forHandler, toSend } from "../state.ts";
import { canonical, stable, withoutUndefined } from "../values.ts";
import { callOf, placeOf, type Caller } from "../verbs/caller.ts";
import type { Facts } from "./planFile.ts";

/** An object as the run knows it. */
interface Known {
  /** Its id; undefined if it is not known before the object exists. */
  readonly id: string | undefined;
  /** Its inputs in the program; undefined if it is deleted. */
  readonly inputs: Values | undefined;
  /** Its state; undefined if it has none. */
  readonly state: Values | undefined;
}

const advice = "Preview again, and apply the new plan.";

/** The name of an object in the file. */
const nameOf = (resource: Resource, id: string, { api }: Caller): string =>
  `${resource.name} ${id} at ${api.config.endpoint}`;

/**
 * The digest of a value for the file. Its key is the random id of the state, which `plan.json` and the metadata of Machines have, too.
 * Null without a state, because a digest without a key reveals a value that is easy to guess.
 */
const digests =
  (state: Values | undefined) =>
  (value: unknown): string | null => {
    const { stack } = contextOf(state ?? {});
    if (stack === undefined) return null;
    return createHmac("sha256", stack).update(stable(value)).digest("hex").slice(0, 32);
  };

/** The facts in a state, or in what a read has found. Only outputs that cannot be secret are in clear text. */
function factsIn(resource: Resource, values: Values, digest: (value: unknown) => string | null): Facts {
  const facts = resource.observed.map((name): [string, Facts[string]] => {
    const field = resource.inputFields[name] ?? resource.outputFields[name];
    const value = field === undefined ? undefined : canonical(field, values[name]);
    if (value === undefined) return [name, "none"];
    const isClear =
      resource.inputFields[name] === undefined &&
      field?.meta.secret !== true &&
      field?.meta.sensitive !== true &&
      !Object.hasOwn(resource.derivedFrom, name) &&
      (typeof value === "string" || typeof value === "number" || typeof value === "boolean");
    return [name, isClear ? value : digest(value)];
  });
  return Object.fromEntries(facts);
}

/** The digest that the service has of each claimed object; undefined for one that does not exist. */
type Claimed = Map<string, string | undefined>;

/** What the service has of an object now; null if it does not exist. `claims` gets what it has of its claims. */
async function observed(
  resource: Resource,
  id: string,
  { inputs, state }: Known,
  caller: Caller,
  claims: Claimed = new Map(),
): Promise<Facts | null> {
  const quiet: Caller = { ...caller, api: caller.api, warn: () => undefined, progress: () => undefined };
  const call = callOf(resource, "read", {}, quiet);
  const digest = digests(state);
  const parts = resource.id.parse(id);
  const known = {
    inputs: inputs && toSend(caller.run, resource, inputs),
    state: state && forHandler(resource, state),
    owner: contextOf(inputs ?? state ?? {}).owner,
    mayShareLists: caller.run.planFile.note !== undefined,
  };
  const claimed = (claim: string, found: string | undefined): string => {
    const { claimedBefore } = caller.run;
    const value = claimedBefore.has(claim) ? claimedBefore.get(claim) : found;
    claims.set(claim, value);
    return value === undefined ? "none" : (digest(value) ?? "set");
  };
  const { observe } = resource;
  if (observe !== undefined)
    return (await orUndefined(() => observe({ ...call, ...known, id: parts, claimed }))) ?? null;
  const live = await orUndefined(() => resource.read({ ...call, id: parts, state: known.state }));
  // A value that a read leaves out is the state's.
  return live === undefined ? null : factsIn(resource, { ...known.state, ...withoutUndefined(live) }, digest);
}

/** The facts that a state remembers of an object that the preview did not look at: the engine does not send it what is deleted. */
function remembered(resource: Resource, state: Values): Facts | undefined {
  const values = forHandler(resource, state);
  if (resource.observe !== undefined) return resource.remember?.(values, digests(state));
  const facts = Object.entries(factsIn(resource, values, digests(state)));
  return Object.fromEntries(facts.filter(([, fact]) => fact !== "none"));
}

/**
 * The differences between what was seen and what is found, as text. `isPart`: only these facts were looked for, and those of the same
 * kind, which begin with the same word.
 */
function differences(seen: Facts, found: Facts, isPart: boolean): string[] {
  const kindOf = (name: string): string => name.split(" ")[0] ?? name;
  const kinds = new Set(Object.keys(found).map(kindOf));
  const names = new Set([
    ...Object.keys(found),
    ...Object.keys(seen).filter((name) => !isPart || kinds.has(kindOf(name))),
  ]);
  return [...names].flatMap((name) => {
    const [before = "none", now = "none"] = [seen[name], found[name]];
    if (before === null || now === null || before === now) return [];
    const isDigest = [before, now].some((one) => typeof one === "string" && /^[0-9a-f]{32}$/.test(one));
    return [isDigest ? `${name} differs` : `${name} was ${String(before)} and is ${String(now)}`];
  });
}

const changed = (name: string, what: string, since = "since the preview of this plan"): MachinesError =>
  new MachinesError("stale-plan", `${name} has changed ${since}: ${what}. Nothing of it was changed. ${advice}`);

/** Refuses an object that differs from what was seen. */
function compare(name: string, seen: Facts, found: Facts, isPart = false, since?: string): void {
  const all = differences(seen, found, isPart);
  if (all.length > 0) throw changed(name, all.join("; "), since);
}

/**
 * In a preview of a plan, notes what the service has of an object that will be created or changed. In an update with the plan, refuses
 * an object that has changed since.
 */
export async function observePlanned(resource: Resource, known: Known, caller: Caller): Promise<void> {
  const { planFile, changedObjects } = caller.run;
  const { id } = known;
  if ((planFile.note === undefined && !planFile.isUsed) || id === undefined) return;
  const object = nameOf(resource, id, caller);
  if (planFile.note) return planFile.note(object, await observed(resource, id, known, caller));
  if (!changedObjects.has(object)) await requireSeen(resource, known, caller);
}

/**
 * Before an object is created, changed or deleted: refuses one that has changed since the preview of the plan, and notes that from now
 * on this run changes it. Returns how a handler asks again, with what it finds under a lease.
 */
export async function confirmSeen(resource: Resource, known: Known, caller: Caller): Promise<Pick<Call, "confirm">> {
  const { planFile, changedObjects, claimedBefore } = caller.run;
  const { id } = known;
  if (!planFile.isUsed || id === undefined) return {};
  const object = nameOf(resource, id, caller);
  // What this run has changed is not what the preview saw.
  if (changedObjects.has(object)) return {};
  const claims: Claimed = new Map();
  const seen = await requireSeen(resource, known, caller, claims);
  changedObjects.add(object);
  for (const [claim, digest] of claims) claimedBefore.set(claim, digest);
  const name = `${resource.name} ${id}`;
  return seen ? { confirm: (found) => compare(name, seen.facts, found, true, seen.since) } : {};
}

interface Seen {
  readonly facts: Facts;
  readonly since?: string;
}

/** @param claims given right before a change: gets what the service has of the object's claims */
async function requireSeen(
  resource: Resource,
  known: Known,
  caller: Caller,
  claims?: Claimed,
): Promise<Seen | undefined> {
  const { id = "", inputs, state } = known;
  const name = `${resource.name} ${id}`;
  const isCreated = state === undefined;
  const isDeleted = inputs === undefined;
  const { planFile } = caller.run;
  const seen = isDeleted && !planFile.exists() ? undefined : planFile.seen(nameOf(resource, id, caller));
  if (seen === undefined && isCreated) {
    // The preview did not know its App or cluster yet, so that one is new, too. What it claims may be older.
    if (claims && resource.claims && resource.observe) await observed(resource, id, known, caller, claims);
    return undefined;
  }
  if (seen === undefined && !isDeleted)
    throw new MachinesError(
      "stale-plan",
      `the preview of this plan has noted nothing of ${name}, which this update changes. ${advice}`,
    );
  const memory = seen === undefined && state !== undefined ? remembered(resource, state) : undefined;
  if (seen === undefined && memory === undefined) return undefined;
  // An answer from a list may be older than the preview.
  if (claims) readOneByOne(caller.api, placeOf(resource, resource.id.parse(id)).name);
  const found = await observed(resource, id, known, caller, claims);
  if (memory !== undefined) {
    const since = "since the state was last written or refreshed";
    if (found) compare(name, memory, found, true, since);
    return { facts: memory, since };
  }
  if (found === null) {
    // What is to be deleted, or created, need not exist.
    if (seen === null || isDeleted || isCreated) return undefined;
    throw changed(name, "it was deleted");
  }
  if (seen === null || seen === undefined) throw changed(name, "it was created");
  compare(name, seen, found);
  return { facts: seen };
}

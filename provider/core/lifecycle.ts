// Runs every handler in both bindings: it builds the state, proves absence, and keeps the id after partial failures.
import type { Api } from "../client/api.ts";
import { confirmAnyPlace, confirmPlaces, orUndefined, ignoreIfDeleted, type Place } from "../client/existence.ts";
import type { Deadline } from "../client/clock.ts";
import { formatDuration, parseDuration } from "../../api/schema.ts";
import { deleteBeforeReplaceAdvice, inputChangeRefusal, mayLoseData } from "./dataLoss.ts";
import { diff, isSent, type Diff } from "./diff.ts";
import { ApiError, MachinesError, messageForUser } from "../client/errors.ts";
import { PartialStateError } from "./partialState.ts";
import { programLines } from "./redaction.ts";
import { formerOwnersIn, type Run } from "./run.ts";
import { CONTEXT, contextOf, kindOf, type Call, type Context, type Resource, type Values } from "./resource.ts";
import { inSpellingOf, pathText, same, withBareIds, withoutUndefined } from "./values.ts";

/** How a binding calls core: with the client, the deadline and the run. */
export interface Caller {
  readonly api: Api;
  readonly run: Run;
  readonly progress: (message: string) => void;
  readonly warn: (message: string) => void;
  readonly signal?: AbortSignal | undefined;
  /** Seconds that the engine allows; undefined if it set no limit. */
  readonly timeoutSeconds?: number | undefined;
}

/** An object with its id, as create and read give it to the engine. */
export interface Found {
  readonly id: string;
  readonly state: Values;
}

/** The object exists, but a step after its creation or change failed: the engine's "initialization failed". */
export class InitializationFailed extends MachinesError {
  readonly id: string;
  readonly properties: Values;
  readonly reasons: readonly string[];
  constructor(id: string, properties: Values, cause: Error) {
    super(cause instanceof MachinesError ? cause.code : "api", messageForUser(cause), { cause });
    this.name = "InitializationFailed";
    this.id = id;
    this.properties = { ...properties, [CONTEXT]: { ...contextOf(properties), unfinished: true } };
    this.reasons = [this.message];
  }
}

/**
 * The diff, with the one refusal that check cannot make (R9). Check does not see the service's choice for an omitted input.
 * After an import, it does not see that the state lacks the value.
 */
export function guardedDiff(run: Run, resource: Resource, id: string, state: Values, news: Values): Diff {
  const found = withRecreation(diff(resource, state, news), run.recreatedParentInput(resource, id));
  run.noteState(state);
  run.noteDiff(resource, id, state, news, found.replaces.length > 0);
  const lost = run.dataLossByParent(resource, state, news);
  if (lost) throw new MachinesError("refused", `${pathText(lost.path)}: ${lost.message}`);
  const leftOut = contextOf(state).left ?? [];
  const moved = found.replaces.find(
    (name) => leftOut.includes(name) || (isComputed(resource, name) && state[name] === undefined),
  );
  if (moved !== undefined && resource.losesData !== undefined && !mayLoseData(resource, news)) {
    throw new MachinesError("refused", `${moved}: ${inputChangeRefusal(resource, moved)}`);
  }
  return found;
}

/**
 * Whether an alias renamed the resource. A deletion gets only the state, and its guard reads the owner there (R11). So an
 * update has to write the new owner into the state; it sends nothing.
 */
const isRenamed = ({ losesData }: Resource, olds: Values, news: Values): boolean =>
  losesData !== undefined && contextOf(olds).owner !== undefined && contextOf(olds).owner !== contextOf(news).owner;

/**
 * Whether an update has to rewrite the state although no input changed: a step after the last change failed, an alias
 * renamed the resource, or the protection of its cluster changed. A state of an earlier version lacks the protection; it
 * gets it with the next update.
 */
export function mustRewriteState(run: Run, resource: Resource, state: Values, news: Values): boolean {
  const { unfinished, inProtected: before } = contextOf(state);
  const now = run.isInProtected(resource, news);
  const isChanged = now !== undefined && before !== undefined && now !== before;
  return unfinished === true || isRenamed(resource, state, news) || isChanged;
}

/** The diff of an object that was deleted with its parent: it has to be created again. */
function withRecreation(found: Diff, parent: string | undefined): Diff {
  if (parent === undefined || found.replaces.includes(parent)) return found;
  const change = { path: [parent], kind: "update", unknown: false, replaces: true } as const;
  return { ...found, changes: [...found.changes, change], replaces: [...found.replaces, parent] };
}

/**
 * R11: refuses a replacement for a reason that only the service knows. Check cannot ask, and a create would be too
 * late. In an update without a preview, the diff is the last moment. A refresh declares nothing, so it is never
 * refused.
 */
export async function refuseToReplace(
  run: Run,
  resource: Resource,
  id: string,
  news: Values,
  { replaces }: Diff,
  caller: () => Promise<Caller>,
): Promise<void> {
  if (replaces.length === 0 || !resource.refuseToReplace || !run.isInState(contextOf(news).owner)) return;
  const { api } = callOf(resource, "read", {}, await caller());
  const why = await resource
    .refuseToReplace(resource.id.parse(id), forHandler(resource, news), api)
    .catch(() => undefined);
  if (why !== undefined) throw new MachinesError("refused", `${replaces[0] ?? "id"}: ${why}`);
}

const isComputed = (resource: Resource, name: string): boolean => {
  const field = resource.inputFields[name];
  return field !== undefined && kindOf(field) === "computed";
};

/** Creates the object. @throws InitializationFailed if it exists and a later step failed. */
export async function create(resource: Resource, inputs: Values, caller: Caller): Promise<Found> {
  const { run } = caller;
  const { owner } = contextOf(inputs);
  const before = run.reportedFor(resource, owner);
  // R13: after an `onError` hook, the engine sends a create again although this run reported the object.
  if (before) return { id: before.id, state: await update(resource, before.id, before.properties, inputs, caller) };
  run.refuseReplacement(resource, inputs);
  const call = callOf(resource, "create", inputs, caller);
  await confirmAnyPlace(call.api, run.parentsInState());
  await reportLeftover(run, resource, owner, call);
  const context = inStateOf(run, resource, inputs, { formerOwners: run.formerOwnersOf(owner) });
  const found = (live: Values): Found => {
    const state = stateFrom(resource, inputs, live, context);
    const id = resource.id.render(state);
    // An answer without a valid id is an error here: such an object could be neither read nor deleted.
    resource.id.parse(id);
    run.noteCreated(id, owner);
    // From here on the engine has the id.
    run.journal.settle(owner, id, context.stack);
    return { id, state };
  };
  try {
    const create = () => resource.create({ ...call, inputs: toSend(run, resource, inputs), owner });
    return found(await quotingPrograms(run, create));
  } catch (error) {
    if (!(error instanceof PartialStateError)) throw withForce(run, resource, owner, error);
    const { id, state } = found(error.live);
    throw reporting(run, resource, owner, new InitializationFailed(id, state, error));
  }
}

/** Removes the secrets of the run from what a failed program wrote, before a message ends with it. */
async function quotingPrograms<T>(run: Run, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    for (let at = error; at instanceof MachinesError; at = at.cause) at.lastLines = programLines(run, at.lastLines);
    throw error;
  }
}

/** The context as the state keeps it. Without an owner there is no state; former owners matter only where data is guarded. */
const inStateOf = (
  run: Run,
  resource: Resource,
  inputs: Values,
  kept: Pick<Context, "stack" | "formerOwners" | "inProtected">,
): Context => {
  const context = contextOf(inputs);
  if (context.owner === undefined) return context;
  const { stack = run.stateId(), formerOwners = [] } = kept;
  const inProtected = run.isInProtected(resource, inputs) ?? kept.inProtected;
  return {
    ...context,
    stack,
    ...(inProtected === undefined ? {} : { inProtected }),
    ...(resource.losesData !== undefined && formerOwners.length > 0 ? { formerOwners } : {}),
  };
};

/** The original may hold the taken name or volume. The engine does not mention it in a forced replacement. */
function withForce(run: Run, resource: Resource, owner: string | undefined, error: unknown): unknown {
  const isTaken = error instanceof ApiError && [409, 412, 422].includes(error.status);
  const mayBeOwn = resource.uniqueBy.length > 0 || resource.sharesWith !== undefined;
  if (!isTaken || !mayBeOwn || run.isInState(owner)) return error;
  return new MachinesError(error.code, `${error.message} ${deleteBeforeReplaceAdvice}`, { cause: error });
}

/** Remembers the state that an error reports to the engine, so that a retry in this run continues from it (R13). */
function reporting(
  run: Run,
  resource: Resource,
  owner: string | undefined,
  failed: InitializationFailed,
): InitializationFailed {
  run.noteReported(resource, owner, { id: failed.id, properties: failed.properties });
  return failed;
}

/**
 * Warns of an object that an earlier run reported for this owner and that still exists. If the engine was killed before
 * it saved the id, no state knows the object. It may also be in a state, so it is never changed, only reported. Objects
 * of the same name in another state are ignored.
 */
async function reportLeftover(
  run: Run,
  resource: Resource,
  owner: string | undefined,
  { api, warn }: Call,
): Promise<void> {
  if (resource.noImport !== undefined) return;
  for (const { id, endpoint, stack } of run.journal.delivered(owner)) {
    const isOfOthers = endpoint !== api.config.endpoint || (stack !== undefined && !run.isStateId(stack));
    if (isOfOthers || id === run.idInState(owner)) continue;
    // A warning must not fail the create. If the read fails, the next create asks again.
    const found = await resource
      .read({ api, run, warn, progress: () => undefined, id: resource.id.parse(id), state: undefined })
      .catch(() => undefined);
    if (found !== undefined)
      warn(
        `${resource.name} ${id} was created for this resource by an earlier run and still exists. Unless this run replaces it, no state may know of it: ` +
          "npx pulumi-machines orphans shows that; import it or delete it.",
      );
  }
}

/**
 * R14: called if the endpoint or the organization differs from the last run. The App or cluster of each object in the
 * state must exist there too.
 */
export function confirmStillThere(resource: Resource, id: string, caller: Caller): Promise<void> {
  const call = callOf(resource, "read", {}, caller);
  return confirmPlaces(call.api, [placeOf(resource, resource.id.parse(id))]);
}

/** An object that was read, with its inputs. */
export interface Seen extends Found {
  readonly inputs: Values;
}

/** Reads the object; undefined when it is proved to be gone (R8). Without a state it is an import or a get. */
export async function read(
  resource: Resource,
  id: string,
  state: Values | undefined,
  caller: Caller,
): Promise<Seen | undefined> {
  const parts = resource.id.parse(id);
  if (state === undefined && resource.noImport !== undefined)
    throw new MachinesError("refused", `a ${resource.name} cannot be imported or looked up: ${resource.noImport}`);
  const call = callOf(resource, "read", state ?? {}, caller);
  caller.run.noteState(state ?? {});
  // A get or an import has no state that a wrong 404 could remove, so a 404 needs no proof.
  const readIt = () => resource.read({ ...call, id: parts, state });
  const live = await (state === undefined
    ? orUndefined(readIt)
    : ignoreIfDeleted(call.api, placeOf(resource, parts), readIt));
  if (!live) return undefined;
  const found = stateFrom(resource, state ?? {}, live, contextOf(state ?? {}));
  return { id, state: found, inputs: state ? inputsOf(resource, found) : importedInputs(resource, found) };
}

/**
 * The inputs that a program would declare for an imported object: no defaults, behaviour inputs or transient values.
 */
function importedInputs(resource: Resource, state: Values): Values {
  const reported = Object.entries(resource.inputFields).filter(
    ([name, field]) =>
      state[name] !== undefined &&
      kindOf(field) !== "behaviour" &&
      field.meta["passing"] !== true &&
      !(field.default !== undefined && same(field, state[name], field.default)),
  );
  return Object.fromEntries(reported.map(([name]) => [name, state[name]]));
}

/** Warns of side effects that a change does not show, in preview and in the update. */
export function warnOf(resource: Resource, old: Values, inputs: Values, warn: (message: string) => void): void {
  for (const message of resource.warnings?.(old, inputs) ?? []) warn(`${resource.name}: ${message}`);
}

/**
 * Updates the object and returns its whole new state.
 * @throws InitializationFailed if it was changed and a later step failed.
 */
export async function update(
  resource: Resource,
  id: string,
  stored: Values,
  inputs: Values,
  caller: Caller,
): Promise<Values> {
  const { run } = caller;
  const { owner } = contextOf(inputs);
  run.noteState(stored);
  // R13: changes that this run already applied are missing from the state that the engine stored before it.
  const reported = run.reportedFor(resource, owner);
  const isAgain = reported?.id === id;
  try {
    const state = await change(resource, id, isAgain ? reported.properties : stored, inputs, caller);
    run.noteReported(resource, owner, undefined);
    return state;
  } catch (error) {
    if (error instanceof InitializationFailed) throw reporting(run, resource, owner, error);
    // A later failure of another kind does not discard the state that this run reported.
    if (isAgain && error instanceof Error) throw new InitializationFailed(id, reported.properties, error);
    throw error;
  }
}

async function change(resource: Resource, id: string, old: Values, inputs: Values, caller: Caller): Promise<Values> {
  const parts = resource.id.parse(id);
  const before = { ...outputsOf(resource, old), ...noLongerSet(resource, old, inputs) };
  const { owner } = contextOf(inputs);
  const kept = { ...contextOf(old), formerOwners: formerOwnersIn(old, owner) };
  const context = inStateOf(caller.run, resource, inputs, kept);
  const found = (live: Values) => stateFrom(resource, inputs, { ...before, ...live }, context);
  warnOf(resource, old, inputs, caller.warn);
  // The program's inputs override the stored state, because an input may change how the update is done.
  if (!isWork(resource, old, inputs))
    return found(Object.fromEntries(Object.entries(old).filter(([name]) => inputs[name] === undefined)));
  try {
    const call = callOf(resource, "update", inputs, caller);
    const update = () =>
      resource.update({
        ...call,
        id: parts,
        inputs: toSend(caller.run, resource, inputs),
        old: forHandler(resource, old),
        unfinished: contextOf(old).unfinished ?? false,
        owner,
        otherClaimant: (claim) => caller.run.remainingClaimant(claim, owner),
      });
    return found(await quotingPrograms(caller.run, update));
  } catch (error) {
    if (!(error instanceof PartialStateError)) throw error;
    throw new InitializationFailed(id, found(error.live), error);
  }
}

/**
 * R1: a change of only behaviour inputs sends nothing. It only rewrites the state, because delete reads the inputs there.
 * The same applies if only the engine's encoding of an input changed.
 */
const isWork = (resource: Resource, old: Values, inputs: Values): boolean =>
  contextOf(old).unfinished === true || diff(resource, old, inputs).changes.some((change) => isSent(resource, change));

/**
 * Deletes the object; if it is proved to be gone, nothing is left to do (R8). It is kept if another resource of the
 * program claims it (R12), and the deletion is refused if it is guarded and still in the program (R11).
 */
export async function remove(resource: Resource, id: string, stored: Values, caller: Caller): Promise<void> {
  const { run } = caller;
  const { owner, name } = contextOf(stored);
  run.noteState(stored);
  const holder = resource.claims === undefined ? run.remainingResource(resource, id) : undefined;
  if (holder !== undefined) {
    if (holder !== name)
      caller.warn(`${resource.name} ${id} is kept: ${JSON.stringify(holder)} of this program has it.`);
    return;
  }
  run.refuseGuardedDeletion(resource, stored, id);
  const state = run.withCurrentOptions(resource, id, stored);
  const parts = resource.id.parse(id);
  const call = callOf(resource, "delete", state, caller);
  const place = placeOf(resource, parts);
  const endDeletion = run.beginDeletion(call.api, place.name);
  try {
    const otherClaimant = (claim: string) => run.remainingClaimant(claim, owner);
    const args = { id: parts, state: forHandler(resource, state), owner, otherClaimant };
    const work = () => resource.delete({ ...call, ...args });
    await ignoreIfDeleted(call.api, place, work);
    run.noteDeleted(resource, id, owner);
    run.journal.forget(owner, id);
  } finally {
    endDeletion();
  }
}

/** The inputs in a state: those of the program, with their drift. */
function inputsOf(resource: Resource, state: Values): Values {
  const leftOut = contextOf(state).left ?? [];
  const inputs: Values = {};
  for (const name of Object.keys(resource.inputFields)) {
    if (state[name] !== undefined && !leftOut.includes(name)) inputs[name] = state[name];
  }
  const { stack: _stack, formerOwners: _formerOwners, inProtected: _inProtected, ...context } = contextOf(state);
  if (Object.keys(context).length > 0) inputs[CONTEXT] = context;
  return inputs;
}

const placeOf = ({ within }: Resource, parts: Record<string, string>): Place => ({
  kind: within.kind,
  name: parts[within.part] ?? "",
});

const outputsOf = (resource: Resource, state: Values): Values =>
  Object.fromEntries(
    Object.entries(state).filter(
      ([name]) => Object.hasOwn(resource.outputFields, name) && !Object.hasOwn(resource.inputFields, name),
    ),
  );

/** Computed inputs that the program no longer sets keep their previous values (R1). */
const noLongerSet = (resource: Resource, old: Values, inputs: Values): Values =>
  Object.fromEntries(Object.entries(old).filter(([name]) => isComputed(resource, name) && inputs[name] === undefined));

/**
 * Builds the state from inputs and outputs: live values in the program's spelling; behaviour inputs, and those that no read
 * returns, unchanged; no write-only ones.
 */
function stateFrom(resource: Resource, written: Values, live: Values, context: Context): Values {
  const state: Values = {};
  for (const [name, field] of Object.entries(resource.inputFields)) {
    if (field.meta.writeOnly) continue;
    const reported = kindOf(field) !== "behaviour" && live[name] !== undefined;
    const before = written[name] ?? field.default;
    if (live[name] === null) continue;
    state[name] = reported ? (inSpellingOf(field, before, live[name]) ?? before) : before;
  }
  for (const name of Object.keys(resource.outputFields)) {
    const field = resource.inputFields[name];
    // Inputs of the program already have its spelling in the state.
    const isTold = field !== undefined && kindOf(field) !== "behaviour" && state[name] !== undefined;
    if (live[name] !== undefined && !isTold) state[name] = live[name];
  }
  if (Object.keys(context).length > 0) state[CONTEXT] = context;
  return withoutUndefined(state);
}

/** The values for handlers: without bookkeeping, with bare ids (R5). */
function forHandler(resource: Resource, values: Values): Values {
  return Object.fromEntries(
    Object.entries(values)
      .filter(([name]) => !name.startsWith("__"))
      .map(([name, value]) => {
        const field = resource.inputFields[name];
        return [name, field ? withBareIds(field, value) : value];
      }),
  );
}

/** The inputs of a create or an update, with those that the engine does not store. */
const toSend = (run: Run, resource: Resource, inputs: Values): Values =>
  forHandler(resource, { ...inputs, ...run.writeOnlyOf(contextOf(inputs).owner) });

function callOf(
  resource: Resource,
  verb: "create" | "read" | "update" | "delete",
  values: Values,
  caller: Caller,
): Call {
  const asked = verb === "read" ? undefined : contextOf(values).timeouts?.[verb];
  const nanoseconds = asked === undefined ? undefined : parseDuration(asked);
  const seconds =
    caller.timeoutSeconds ??
    (nanoseconds === undefined ? (verb === "read" ? 2 : (resource.minutes[verb] ?? 10)) * 60 : nanoseconds / 1e9);
  const deadline: Deadline = {
    at: caller.api.clock.now() + seconds * 1000,
    allowed: formatDuration(seconds * 1e9),
    // Far more than any operation needs; it ends an operation that would never stop.
    requests: Math.ceil(1000 + 4 * seconds),
    signal: caller.signal,
  };
  return { api: caller.api.within(deadline), run: caller.run, progress: caller.progress, warn: caller.warn };
}

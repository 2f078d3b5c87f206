// The verb read: a refresh, an import or a get.
import { ignoreIfDeleted, orUndefined } from "../../client/existence.ts";
import { MachinesError } from "../../client/errors.ts";
import { contextOf, type Resource, type Values } from "../resource.ts";
import { importedInputs, inputsOf, stateFrom } from "../state.ts";
import { withStoredConfiguration } from "../storedConfiguration.ts";
import { callOf, placeOf, type Caller } from "./caller.ts";
import type { Found } from "./create.ts";

/** An object that was read, with its inputs. */
export interface Seen extends Found {
  readonly inputs: Values;
}

/** Reads the object; undefined when it is proved to be gone (R8). Without a state it is an import or a get. */
export const read = (
  resource: Resource,
  id: string,
  state: Values | undefined,
  caller: Caller,
): Promise<Seen | undefined> =>
  withStoredConfiguration(caller, `${resource.name} ${id}`, () => readNow(resource, id, state, caller));

/** The error if a program, a get or an import names an object that does not exist. */
export const notFound = ({ name, id: { form } }: Resource, id: string): MachinesError =>
  new MachinesError("invalid-input", `there is no ${name} ${JSON.stringify(id)}; its id has the form ${form}`);

async function readNow(
  resource: Resource,
  id: string,
  state: Values | undefined,
  caller: Caller,
): Promise<Seen | undefined> {
  const parts = resource.id.parse(id);
  if (state === undefined && resource.noImport !== undefined)
    throw new MachinesError("refused", `a ${resource.name} cannot be imported or looked up: ${resource.noImport}`);
  const call = callOf(resource, "read", state ?? {}, caller);
  caller.run.stateIds.note(contextOf(state ?? {}).stack);
  // A get or an import has no state that a wrong 404 could remove, so a 404 needs no proof.
  const readIt = () => resource.read({ ...call, id: parts, state });
  const live = await (state === undefined
    ? orUndefined(readIt)
    : ignoreIfDeleted(call.api, placeOf(resource, parts), readIt));
  if (!live) return undefined;
  const found = stateFrom(resource, state ?? {}, live, contextOf(state ?? {}));
  return { id, state: found, inputs: state ? inputsOf(resource, found) : importedInputs(resource, found) };
}

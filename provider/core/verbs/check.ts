// The verb check: notes what the program declares, and judges its inputs.
import { checkInputs, type Checked, type Surroundings } from "../check.ts";
import { messageForUser, MachinesError } from "../../client/errors.ts";
import { observePlanned } from "../observations/observations.ts";
import { problemsWithValues } from "../previewChecks.ts";
import { contextOf, type Resource, type Values } from "../resource.ts";
import { idFrom } from "../run/program.ts";
import type { Run } from "../run/run.ts";
import { hasInputs, located } from "../values.ts";
import { asking, type Caller } from "./caller.ts";

/** How a binding calls check. */
export interface Checking extends Omit<Surroundings, "run"> {
  readonly run: Run;
  /** Asks the service about values of refused changes; undefined if nothing can be asked. */
  readonly caller?: Caller | undefined;
  /** Looks at what a plan creates; undefined if nothing can be asked. */
  readonly observer?: Caller | undefined;
}

/** Checks the inputs of a resource that the program declares. */
export async function check(
  resource: Resource,
  olds: Values,
  news: Values,
  { caller, observer, ...around }: Checking,
): Promise<Pick<Checked, "inputs" | "problems">> {
  const { run, state = {} } = around;
  run.program.declare(resource, olds, news);
  run.planFile.begin();
  run.stateIds.note(contextOf(state).stack);
  const { inputs, problems: found, refusedChanges } = checkInputs(resource, olds, news, around);
  const problems = [...found];
  const refused = [...refusedChanges.keys()];
  if (problems.length === 0 && observer && !hasInputs(olds))
    problems.push(...(await planProblems(resource, inputs, observer)));
  if (refused.length === 0 || !caller) return { inputs, problems };
  // That a value cannot be used at all matters more than the refusal of the change. A preview asks only about accepted changes.
  const unusable = await problemsWithValues(refused, resource, olds, inputs, asking(caller));
  const others = problems.filter(
    (problem) => !unusable.some(({ path }) => refusedChanges.get(String(path[0])) === problem),
  );
  return { inputs, problems: [...unusable.map(({ path, message }) => located(path, message)), ...others] };
}

/** Why an update with a plan must not create an object. A replacement is observed by the diff, with the state of the original. */
async function planProblems(resource: Resource, inputs: Values, caller: Caller): Promise<readonly string[]> {
  const id = idFrom(resource, inputs);
  if (caller.run.program.idInState(contextOf(inputs).owner) === id) return [];
  try {
    await observePlanned(resource, { id, inputs, state: undefined }, caller);
    return [];
  } catch (error) {
    if (!(error instanceof MachinesError)) throw error;
    return [messageForUser(error)];
  }
}

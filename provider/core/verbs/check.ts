// The verb check: notes what the program declares, and judges its inputs.
import { checkInputs, type Checked, type Surroundings } from "../check.ts";
import { problemsWithValues } from "../previewChecks.ts";
import { contextOf, type Resource, type Values } from "../resource.ts";
import type { Run } from "../run/run.ts";
import { located } from "../values.ts";
import { asking, type Caller } from "./caller.ts";

/** How a binding calls check. */
export interface Checking extends Omit<Surroundings, "run"> {
  readonly run: Run;
  /** Asks the service about values of refused changes; undefined if nothing can be asked. */
  readonly caller?: Caller | undefined;
}

/** Checks the inputs of a resource that the program declares. */
export async function check(
  resource: Resource,
  olds: Values,
  news: Values,
  { caller, ...around }: Checking,
): Promise<Pick<Checked, "inputs" | "problems">> {
  const { run, state = {} } = around;
  run.program.declare(resource, olds, news);
  run.stateIds.note(contextOf(state).stack);
  const { inputs, problems, refusedChanges } = checkInputs(resource, olds, news, around);
  const refused = [...refusedChanges.keys()];
  if (refused.length === 0 || !caller) return { inputs, problems };
  // That a value cannot be used at all matters more than the refusal of the change. A preview asks only about accepted changes.
  const unusable = await problemsWithValues(refused, resource, olds, inputs, asking(caller));
  const others = problems.filter(
    (problem) => !unusable.some(({ path }) => refusedChanges.get(String(path[0])) === problem),
  );
  return { inputs, problems: [...unusable.map(({ path, message }) => located(path, message)), ...others] };
}

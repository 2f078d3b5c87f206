// Previews of create and update. They send only reads.
import { MachinesError } from "../../client/errors.ts";
import { predictCreate, predictUpdate, type Predicted } from "../predict.ts";
import { runPreviewChecks } from "../previewChecks.ts";
import { contextOf, type Resource, type Values } from "../resource.ts";
import { located, pathText } from "../values.ts";
import { asking, type Caller } from "./caller.ts";
import { warnOf } from "./update.ts";

/** Predicts the result of a create. The id is known only if the object exists, because it is replaced. */
export async function previewCreate(resource: Resource, inputs: Values, caller: Caller): Promise<Predicted> {
  const { program, guards } = caller.run;
  const { owner } = contextOf(inputs);
  guards.refuseReplacement(resource, inputs);
  await refuseFindings(resource, program.inputsInState(owner), inputs, caller);
  const { id, state } = predictCreate(resource, inputs);
  // A call that depends on the id of an object that does not exist yet must not run. This mainly concerns functions.
  const known = program.isInState(owner) ? id : undefined;
  if (known !== undefined) program.noteCreated(known, owner);
  return { id: known, state };
}

/** Predicts the result of an update. */
export async function previewUpdate(resource: Resource, old: Values, inputs: Values, caller: Caller): Promise<Values> {
  await refuseFindings(resource, old, inputs, caller);
  warnOf(resource, old, inputs, caller.warn);
  return predictUpdate(resource, old, inputs);
}

/** Reports findings of the service about new or changed inputs: warnings, notes, and the error of the preview. */
async function refuseFindings(resource: Resource, olds: Values, inputs: Values, caller: Caller): Promise<void> {
  const nameInState = caller.run.program.nameInState(contextOf(inputs).owner);
  const found = await runPreviewChecks(resource, olds, inputs, nameInState, asking(caller));
  for (const { path, message } of found.filter(({ isWarning }) => isWarning))
    caller.warn(path.length > 0 ? `${resource.name} ${pathText(path)}: ${message}` : message);
  for (const { message } of found.filter(({ isNote }) => isNote)) caller.note?.(message);
  const problems = found.filter(({ isWarning, isNote }) => !isWarning && !isNote);
  if (problems.length > 0)
    throw new MachinesError(
      problems.find(({ code }) => code)?.code ?? "invalid-input",
      problems.map(({ path, message }) => located(path, message)).join("; "),
    );
}

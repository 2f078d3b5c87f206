// Previews of create and update. They send only reads.
import { MachinesError } from "../../client/errors.ts";
import { predictCreate, predictUpdate, type Predicted } from "../predict.ts";
import { patient, runPreviewChecks } from "../previewChecks.ts";
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
  await publishViews(resource, inputs, caller);
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
  await publishViews(resource, inputs, caller);
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

/** Reports how the views of the resource will change. A service that does not answer is warned of with the findings. */
async function publishViews(resource: Resource, inputs: Values, { api, run, signal, views }: Caller): Promise<void> {
  if (resource.previewViews === undefined || views === undefined) return;
  const around = { api: patient(api.within({ ...api.deadline, signal })), owner: contextOf(inputs).owner, run };
  const steps = await resource.previewViews(inputs, views.old, around).catch((error: unknown) => {
    if (signal?.aborted || !(error instanceof MachinesError)) throw error;
    return [];
  });
  await views.publish(steps);
}

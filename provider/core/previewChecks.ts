// Asks the service at preview for facts that only it knows. It only reads, and a failed request is no reason to fail.
import type { Api } from "../client/api.ts";
import { ApiError, messageOf } from "../client/errors.ts";
import { contextOf, type Problem, type PreviewCheck, type Resource, type Values } from "./resource.ts";
import type { Run } from "./run.ts";
import { hasUnknown, same, valueAt } from "./values.ts";

/** Milliseconds a question may take: an answer that is late is no answer. */
const askedFor = 10_000;

/** How the checks reach the service, and whom they warn if that fails. */
export interface Checker {
  readonly api: Api;
  readonly run: Pick<Run, "journal" | "unasked">;
  readonly warn: (message: string) => void;
}

/** The result of a check: a problem, or a warning after which preview continues. */
export interface CheckFinding extends Problem {
  readonly isWarning: boolean;
}

/**
 * Runs one check and returns why the inputs cannot work, or may not. It returns undefined also if the service does not
 * answer.
 */
export async function runPreviewCheck(
  resource: Resource,
  question: PreviewCheck,
  inputs: Values,
  owner: string | undefined,
  { api, run, warn }: Checker,
): Promise<CheckFinding | undefined> {
  const about = question.needs[0] ?? "";
  // An interrupted create of the same resource may have created the object that the check would report as a conflict.
  if (run.journal.find(owner)) return undefined;
  try {
    const patient = api.within({ ...api.deadline, at: api.clock.now() + askedFor, allowed: `${askedFor / 1000}s` });
    const found = await question.ask(inputs, patient, owner);
    if (found === undefined) return undefined;
    const isWarning = typeof found !== "string";
    return { path: [about], message: isWarning ? found.warning : found, isWarning };
  } catch (error) {
    if (api.deadline.signal?.aborted) throw error;
    // Ten resources with the same wrong token are one thing to say.
    const why = error instanceof ApiError ? `answer ${error.status}` : "no answer";
    if (!run.unasked.has(why))
      warn(
        `${resource.name} ${about}: could not be checked against the service, nor what else of this preview it would answer so: ${messageOf(error)}`,
      );
    run.unasked.add(why);
    return undefined;
  }
}

/** Asks everything whose answer could matter: about inputs that are known and new or changed. */
export async function runPreviewChecks(
  resource: Resource,
  olds: Values,
  inputs: Values,
  nameInState: unknown,
  asker: Checker,
): Promise<CheckFinding[]> {
  const { autonamed, owner } = contextOf(inputs);
  const open = resource.previewChecks.filter(({ needs, uses = [] }) => {
    const [about = ""] = needs;
    const field = resource.inputFields[about];
    if (!field || needs.some((need) => inputs[need] === undefined || hasUnknown(inputs[need]))) return false;
    if (uses.some((path) => hasUnknown(valueAt(inputs, path)))) return false;
    const isName = about === resource.autoname?.property;
    // A generated name ends in random characters. The name of a replaced object is free by then.
    if (isName && (autonamed || nameInState === inputs[about])) return false;
    return !same(field, olds[about], inputs[about]);
  });
  const answers = await Promise.all(open.map((question) => runPreviewCheck(resource, question, inputs, owner, asker)));
  return answers.filter((answer) => answer !== undefined);
}

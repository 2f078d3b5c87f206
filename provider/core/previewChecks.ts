// Asks the service at preview for facts that only it knows. Preview sends only requests that read.
import type { Api } from "../client/api.ts";
import { configKeys } from "../client/config.ts";
import { ApiError, MachinesError, messageOf, NetworkError } from "../client/errors.ts";
import { contextOf, type Finding, type PreviewCheck, type PreviewRun, type Resource, type Values } from "./resource.ts";
import { configuredOrganizationProblem } from "./organization.ts";
import type { Run } from "./run/run.ts";
import { hasInputs, hasUnknown, same, valueAt } from "./values.ts";
import { oncePerInput } from "./oncePerInput.ts";

/** Milliseconds that a preview waits for an answer. */
const patience = 10_000;

/** How the checks reach the service, and whom they warn if one request fails. */
export interface Checker {
  readonly api: Api;
  readonly run: Pick<Run, "journal" | "memo" | "problems"> & PreviewRun;
  readonly warn: (message: string) => void;
}

/** The service, with the time that a preview waits for an answer. */
export const patient = (api: Api): Api =>
  api.within({ ...api.deadline, at: api.clock.now() + patience, allowed: `${patience / 1000}s` });

const isRefused = (error: unknown): error is ApiError =>
  error instanceof ApiError && (error.status === 401 || error.status === 403);

/** Whether the answer to the list of regions shows another server: every Machines Control Service has the list. */
const isOtherServer = (error: MachinesError): error is ApiError | NetworkError =>
  (error instanceof ApiError && error.status === 404) || (error instanceof NetworkError && error.isNotJson);

/**
 * Why this run cannot use the service, asked once for each run. A refused token or an endpoint that can never work is a
 * problem. No answer is a warning, unless the configuration makes it a problem, because a preview may run offline.
 * @param consequence the part of that warning that says what is not checked
 */
export function checkConnection(
  { api, run }: Pick<Checker, "api" | "run">,
  consequence = ", so this preview checks no names, regions, capacity or organization",
): Promise<Finding | undefined> {
  // The embedded service needs no token, and a preview without questions does not start it.
  const { endpoint, organization } = api.config;
  if (endpoint === "local" && organization === configKeys.organization.default) return Promise.resolve(undefined);
  return run.memo.get("connection", () => connectionFinding(patient(api), consequence));
}

async function connectionFinding(api: Api, consequence: string): Promise<Finding | undefined> {
  try {
    await api.session.answers.get("regions", () => api.platform.regions({}));
    const message = await configuredOrganizationProblem(api);
    return message === undefined ? undefined : { path: [], message, code: "configuration", isWarning: false };
  } catch (error) {
    if (api.deadline.signal?.aborted || !(error instanceof MachinesError)) throw error;
    const { code } = error;
    const message = messageOf(error);
    if (isOtherServer(error))
      return {
        path: [],
        message: `${api.config.endpoint} is probably no Machines Control Service: check machines:endpoint. ${error instanceof ApiError ? `${error.operation} answered ${error.status}: ${error.reason}` : message}`,
        code: "configuration",
        isWarning: false,
      };
    if (isRefused(error) || code === "configuration") return { path: [], message, code, isWarning: false };
    if (api.config.previewRequiresService)
      return {
        path: [],
        message: `the service cannot be asked, and machines:previewRequiresService is true: ${message}`,
        code,
        isWarning: false,
      };
    return {
      path: [],
      message: `the service cannot be asked${consequence}: ${message}`,
      isWarning: true,
    };
  }
}

/** The input that an answer is about. */
const subjectOf = ({ needs, uses = [] }: Pick<PreviewCheck, "needs" | "uses">): string =>
  (needs[0] ?? uses[0] ?? "").split(".")[0] ?? "";

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
): Promise<Finding | undefined> {
  const about = subjectOf(question);
  // An interrupted create of the same resource may have created the object that the check would report as a conflict.
  if (run.journal.find(owner)) return undefined;
  if (await checkConnection({ api, run })) return undefined;
  try {
    const found = await question.ask(inputs, patient(api), owner, run);
    if (found === undefined) return undefined;
    if (typeof found === "string") return { path: [about], message: found, isWarning: false };
    if ("note" in found) return { path: [about], message: found.note, isWarning: false, isNote: true };
    return { path: [about], message: found.warning, isWarning: true };
  } catch (error) {
    if (api.deadline.signal?.aborted) throw error;
    if (isRefused(error)) return { path: [about], message: messageOf(error), code: error.code, isWarning: false };
    if (run.problems.isFirst(error instanceof ApiError ? `answer ${error.status}` : "no answer"))
      warn(`${resource.name} ${about}: the service did not answer this preview's question: ${messageOf(error)}`);
    return undefined;
  }
}

/** Runs all relevant checks: those about known inputs that are new or changed. */
export async function runPreviewChecks(
  resource: Resource,
  olds: Values,
  inputs: Values,
  nameInState: unknown,
  asker: Checker,
): Promise<Finding[]> {
  const { autonamed, owner } = contextOf(inputs);
  const connection = await checkConnection(asker);
  if (connection) return asker.run.problems.isFirst(connection.message) ? [connection] : [];
  const open = resource.previewChecks.filter((question) => {
    const { needs, uses = [] } = question;
    const about = subjectOf(question);
    const field = resource.inputFields[about];
    if (!field || needs.some((need) => inputs[need] === undefined || hasUnknown(inputs[need]))) return false;
    if (uses.some((path) => hasUnknown(valueAt(inputs, path)))) return false;
    const isName = about === resource.autoname?.property;
    // A generated name ends in random characters. The name of a replaced object is free by then.
    if (isName && (autonamed || nameInState === inputs[about])) return false;
    return question.isAboutAll || !hasInputs(olds) || !same(field, olds[about], inputs[about]);
  });
  const answers = await Promise.all(open.map((question) => runPreviewCheck(resource, question, inputs, owner, asker)));
  return oncePerInput(answers.filter((answer) => answer !== undefined));
}

/** Why the new values of some inputs cannot be used, whatever else is wrong with them. */
export async function problemsWithValues(
  names: readonly string[],
  resource: Resource,
  olds: Values,
  inputs: Values,
  asker: Checker,
): Promise<Finding[]> {
  const previewChecks = resource.previewChecks.filter((question) => names.includes(subjectOf(question)));
  if (previewChecks.length === 0) return [];
  const found = await runPreviewChecks({ ...resource, previewChecks }, olds, inputs, undefined, asker);
  return found.filter(({ path, isWarning, isNote }) => path.length > 0 && !isWarning && !isNote);
}

// `pulumi-machines drift`: compares the state of a stack with the service. It changes neither, and does not lock the stack.
import { didYouMean } from "../../api/didYouMean.ts";
import { bareId } from "../../api/names.ts";
import type { Api } from "../../provider/client/api.ts";
import { MachinesError, messageForUser } from "../../provider/client/errors.ts";
import { fewAtATime } from "../../provider/client/fewAtATime.ts";
import { processJournal } from "../../provider/core/journal.ts";
import { configuredOrganizationProblem } from "../../provider/core/organization.ts";
import { Run } from "../../provider/core/run/run.ts";
import { resources } from "../../provider/registry.ts";
import { comparedTypes } from "../orphans/compare.ts";
import { grouped } from "../organization/grouped.ts";
import { findOrphans } from "../orphans/orphans.ts";
import type { Streams } from "../terminal.ts";
import { appsOfResource } from "../orphans/scopes.ts";
import type { PlaceReport } from "../orphans/report.ts";
import { exportStack, stackConfig } from "../pulumi.ts";
import { readState, type StateResource } from "../stackState.ts";
import { clientOf } from "../targets.ts";
import { checkResource, unchecked, type Checked } from "./comparison.ts";
import { openState, type OpenResource, type OpenState } from "./openState.ts";
import { jsonOf, textOf, type DriftReport, type Unmanaged } from "./report.ts";

/** Options of the command. */
export interface DriftOptions {
  readonly stack?: string;
  readonly only?: readonly string[];
  readonly app?: readonly string[];
  /** Whether to look for objects that no stack manages, too. */
  readonly unmanaged?: true;
  readonly json?: true;
}

/** Milliseconds in which a service has to answer at all. */
const firstAnswer = 30_000;

/**
 * Compares and reports. Returns the exit code: 0 without drift, 1 if something has drifted, 2 if nothing has but not
 * everything could be checked.
 * @throws MachinesError `invalid-input` or `configuration` for invalid arguments
 */
export async function drift(options: DriftOptions, { out, err }: Streams, now: Date = new Date()): Promise<0 | 1 | 2> {
  refuseUnknownTypes(options);
  const own = await stackConfig(options.stack);
  // Another stack's secrets cannot be compared while they are encrypted.
  const state = openState(readState(await exportStack(options.stack, "clear"), "the output of `pulumi stack export`"));
  const wanted = wantedIn(state, options);
  const { checked, failures } = await checkAll(wanted.resources, state, own, err);
  const unmanaged = options.unmanaged ? await unmanagedIn(state, options, err) : undefined;
  const report: DriftReport = {
    state,
    checkedAt: now.toISOString(),
    checked,
    unmanaged: unmanaged?.found,
    notes: [...wanted.notes, ...(unmanaged?.notes ?? [])],
    failures: [...new Set([...failures, ...(unmanaged?.failures ?? [])])],
  };
  out(options.json ? jsonOf(report) : textOf(report));
  for (const failure of report.failures) err(`Not checked: ${failure}`);
  const isDrift = ({ status }: Checked): boolean => status === "changed" || status === "missing";
  if (checked.some(isDrift) || (report.unmanaged ?? []).length > 0) return 1;
  return report.failures.length > 0 ? 2 : 0;
}

function refuseUnknownTypes({ only = [] }: DriftOptions): void {
  const known = Object.keys(resources);
  for (const type of only) {
    if (known.includes(type)) continue;
    const meant = didYouMean(type, known);
    throw new MachinesError(
      "invalid-input",
      `--only ${type}: there is no such type${meant === undefined ? `; there are ${known.join(", ")}` : `; did you mean ${meant}?`}`,
    );
  }
}

/** The resources to check, and sentences about those that are left out. */
function wantedIn(
  { resources: all, stack }: OpenState,
  { only = [], app = [] }: DriftOptions,
): { readonly resources: readonly OpenResource[]; readonly notes: readonly string[] } {
  const apps = [...new Set(all.flatMap(appsOfResource))].sort();
  for (const name of app) {
    if (apps.includes(name)) continue;
    const meant = didYouMean(name, apps);
    throw new MachinesError(
      "invalid-input",
      `--app ${name}: ${stack === undefined ? "the empty state" : `stack ${stack}`} has no resource in such an App${meant === undefined ? (apps.length === 0 ? "" : `; its Apps are ${apps.join(", ")}`) : `; did you mean ${meant}?`}`,
    );
  }
  const isAsked = (held: OpenResource): boolean =>
    (only.length === 0 || only.includes(held.type)) &&
    (app.length === 0 || appsOfResource(held).some((name) => app.includes(name)));
  const asked = all.filter(isAsked);
  const read = asked.filter(({ isExternal }) => isExternal);
  const replaced = asked.filter(({ isExternal, isReplaced }) => isReplaced && !isExternal);
  const names = (some: readonly StateResource[]): string => some.map(({ type, name }) => `${type} ${name}`).join(", ");
  return {
    resources: asked.filter(({ isExternal, isReplaced }) => !isExternal && !isReplaced),
    notes: [
      ...(read.length > 0 ? [`Only read by the program, so not checked: ${names(read)}.`] : []),
      ...(replaced.length > 0 ? [`Replaced, and deleted by the next \`pulumi up\`: ${names(replaced)}.`] : []),
    ],
  };
}

/** Checks resources at the endpoints of their providers. */
async function checkAll(
  wanted: readonly OpenResource[],
  { providers }: OpenState,
  own: ReadonlyMap<string, string>,
  warn: (message: string) => void,
): Promise<{ readonly checked: readonly Checked[]; readonly failures: readonly string[] }> {
  const results = new Map<OpenResource, Checked>();
  const failures: string[] = [];
  const clients = new Set<Api>();
  try {
    for (const [provider, members] of grouped(wanted, ({ provider }) => provider)) {
      try {
        const api = clientOf(provider, own, providers, warn);
        clients.add(api);
        await requireAnswer(api);
        const run = new Run(() => processJournal(warn));
        // What a read warns of is among its differences.
        const caller = { api, run, progress: () => undefined, warn: () => undefined };
        await fewAtATime(8, members, async (held) => void results.set(held, await checkResource(held, caller)));
      } catch (error) {
        if (!(error instanceof MachinesError)) throw error;
        const reason = messageForUser(error);
        for (const held of members) results.set(held, unchecked(held, reason));
        failures.push(provider === undefined ? reason : `the objects of provider ${nameIn(provider)}: ${reason}`);
        continue;
      }
      const open = members.flatMap((held) => results.get(held) ?? []).filter(({ status }) => status === "unchecked");
      failures.push(
        ...open.map(
          ({ resource: { type, name, id }, reason }) =>
            `${type} ${name}${id === "" ? "" : ` (${id})`}: ${reason ?? ""}`,
        ),
      );
    }
  } finally {
    await Promise.all([...clients].map((api) => api.close()));
  }
  return { checked: wanted.flatMap((held) => results.get(held) ?? []), failures };
}

const nameIn = (urn: string): string => urn.slice(urn.lastIndexOf("::") + 2);

/** Asks once, because otherwise every resource would wait for a service that does not answer. */
async function requireAnswer(api: Api): Promise<void> {
  const soon = api.within({ at: api.clock.now() + firstAnswer, allowed: "30s" });
  await soon.platform.regions({});
  const problem = await configuredOrganizationProblem(soon);
  if (problem !== undefined) throw new MachinesError("configuration", problem);
}

/** The objects that no stack manages, as `orphans` finds them. */
async function unmanagedIn(
  state: OpenState,
  { stack, only = [], app = [] }: DriftOptions,
  warn: (message: string) => void,
): Promise<{
  readonly found: readonly Unmanaged[];
  readonly notes: readonly string[];
  readonly failures: readonly string[];
}> {
  const listed = only.filter((type) => comparedTypes.includes(type));
  const isNothing = (only.length > 0 && listed.length === 0) || state.resources.length === 0;
  if (isNothing) return { found: [], notes: [], failures: [] };
  const wanted = { apps: [], isAll: false, hasSnapshots: false, only: listed };
  const compared = await findOrphans(stack === undefined ? {} : { stack }, { state, besides: [], wanted }, warn);
  await compared.close();
  const isAsked = (id: string): boolean => app.length === 0 || app.includes(bareId(id.split("/")[0] ?? ""));
  return {
    found: compared.findings.flatMap((finding: PlaceReport) =>
      finding.orphans.flatMap(({ orphan }) =>
        isAsked(orphan.id) ? [{ orphan, provider: finding.place.provider?.name }] : [],
      ),
    ),
    notes: compared.findings.flatMap(({ notes }) => notes),
    failures: compared.refused,
  };
}

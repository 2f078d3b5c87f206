// One Machine, with everything that a person asks about it.
import type { MachineConfig } from "../../api/machineConfig.ts";
import { injectedSecrets, lastLines } from "../lifecycle/lastLines.ts";
import { configOf, findMachine, storedConfig, subjectOf } from "../lifecycle/machines.ts";
import { refuse } from "../refusal.ts";
import { machineOf } from "../rules/find.ts";
import { withMetadata } from "../rules/machineAnswer.ts";
import type { EventRow, MachineRow } from "../store/rows.ts";
import { secretsOf } from "../store/secretValues.ts";
import { rfc3339 } from "../time/clock.ts";
import { decodeTime } from "ulid";
import { ask, askFor, type Asker } from "./ask.ts";
import { sentenceOf, type MachineEvent } from "./eventText.ts";
import { failureOf, versionBefore, type CheckedCheck } from "./failure.ts";
import type { Failure } from "./types.ts";

type Params = Readonly<Record<"app_name" | "machine_id", string>>;

interface VersionItem {
  readonly version: string;
  readonly created_at: string;
  readonly image: string;
}

/** The versions that are kept, newest first. */
function versionsOf({ context }: Asker, machine: string): readonly VersionItem[] {
  return context.store
    .all<{ version: string; image: string | null }>(
      "SELECT version, config ->> '$.image' AS image FROM machine_versions WHERE machine = ? ORDER BY version DESC",
      machine,
    )
    .map(({ version, image }) => ({ version, image: image ?? "", created_at: rfc3339(decodeTime(version)) }));
}

/** Events that are listed. */
const mostEvents = 50;

/** The kept events of a Machine, newest first. */
const eventsOf = ({ store }: Asker["context"], machine: string): readonly MachineEvent[] =>
  store
    .all<EventRow>("SELECT * FROM events WHERE machine = ? ORDER BY id DESC", machine)
    .map(({ machine: _machine, moved: _moved, request, ...event }) => ({
      ...event,
      request: request === null ? null : (JSON.parse(request) as MachineEvent["request"]),
    }));

/** The results of the checks of a Machine that runs; they have one time. */
const checksIn = (
  machine: Pick<Awaited<ReturnType<typeof machineOfAnswer>>, "checks">,
  row: MachineRow | undefined,
): readonly CheckedCheck[] =>
  row?.state === "started"
    ? (machine.checks ?? []).map(({ name = "", status = "", output = "" }) => ({
        ...{ name, status, output },
        at: row.checked_at,
      }))
    : [];

const machineOfAnswer = (asker: Asker, params: Params) => ask(asker, "machines", "get", { ...params });

/** The events as sentences, newest first; a check that is critical now is one of them. */
function sentences(events: readonly MachineEvent[], checks: readonly CheckedCheck[]) {
  const shown = events
    .slice(0, mostEvents)
    .map((event, i) => ({ ...event, text: sentenceOf(event, events.slice(i + 1)) }));
  const critical = checks
    .filter(({ status }) => status === "critical")
    .map(({ name, at, output }) => ({
      ...{ id: `check ${name}`, type: "check", status: "critical", source: "flyd", timestamp: at, request: null },
      text: `Check ${name} is critical${output === "" ? "" : `: ${output}`}`,
    }));
  return [...critical, ...shown].sort((a, b) => b.timestamp - a.timestamp);
}

/** Why a Machine does not do what it should; undefined if it does. */
export async function failureIn(asker: Asker, params: Params): Promise<Failure | undefined> {
  const { context } = asker;
  const { id } = machineOf({ ...asker, params });
  const row = findMachine(context, id);
  const machine = row?.state === "started" ? await machineOfAnswer(asker, params) : {};
  const checks = checksIn(machine, row);
  return row && failureOf({ state: row.state, events: eventsOf(context, id), checks, now: context.clock.now() });
}

/** The state of a Machine, why it has failed, its events and versions, its lease, and the requests that wait for it. */
export async function machineView(asker: Asker, params: Params) {
  const { context } = asker;
  const { id } = machineOf({ ...asker, params });
  const machine = await machineOfAnswer(asker, params);
  const row = findMachine(context, id);
  const [events, versions] = [eventsOf(context, id), versionsOf(asker, id)];
  const checks = checksIn(machine, row);
  const failure = row && failureOf({ state: row.state, events, checks, now: context.clock.now() });
  return {
    machine,
    failure: failure ? { ...failure, before: versionBefore(versions, row.version, events) ?? null } : null,
    events: sentences(events, checks),
    versions,
    lease: (await askFor(ask(asker, "machines", "getLease", { ...params })))?.data ?? null,
    waits: context.waits.heldOn(id),
    volumes: context.store.all<{ id: string; name: string; state: string; size_gb: number }>(
      "SELECT id, name, state, size_gb FROM volumes WHERE machine = ? ORDER BY name",
      id,
    ),
    canLog: context.runtime.logs !== undefined,
    hasTerminals: context.runtime.terminal !== undefined,
  };
}

/** What the page gets of a Machine. */
export type MachineView = Awaited<ReturnType<typeof machineView>>;

/** The processes and the memory of a Machine that runs. */
export async function insideView(asker: Asker, params: Params) {
  machineOf({ ...asker, params });
  const [processes, memory] = await Promise.all([
    askFor(ask(asker, "machines", "processes", { ...params })),
    askFor(ask(asker, "machines", "getMemory", { ...params })),
  ]);
  return { processes: processes ?? null, memory: memory ?? null };
}

/** What the page gets of the inside of a Machine. */
export type InsideView = Awaited<ReturnType<typeof insideView>>;

/** Lines of a Machine that has failed. */
const mostLines = 20;
const longestRead = 5000;

/** The last lines that the programs of a Machine wrote, with the App's secrets masked; none if the runtime cannot tell. */
export async function linesView(asker: Asker, params: Params): Promise<{ readonly lines: readonly string[] }> {
  const { context } = asker;
  const { id } = machineOf({ ...asker, params });
  const machine = findMachine(context, id);
  if (!machine || !context.runtime.logs) return { lines: [] };
  const query = { since: undefined, lines: mostLines, follow: false, signal: AbortSignal.timeout(longestRead) };
  const lines: string[] = [];
  try {
    for await (const { text } of context.runtime.logs(subjectOf(context, machine), query)) lines.push(text);
  } catch (error) {
    context.log.warn({ err: error, machine: id }, "the last lines of a Machine cannot be read");
  }
  const secrets = () => injectedSecrets(configOf(context, machine), secretsOf(context, machine));
  return { lines: lastLines(lines, secrets, mostLines) };
}

/** What the page gets of the last lines. */
export type LinesView = Awaited<ReturnType<typeof linesView>>;

/** The configuration of a version. */
export function versionView(asker: Asker, params: Params, version: string): MachineConfig {
  const { id } = machineOf({ ...asker, params });
  const found = asker.context.store.get<{ metadata: string | null }>(
    "SELECT metadata FROM machine_versions WHERE machine = ? AND version = ?",
    id,
    version,
  );
  if (!found) throw refuse(404, "no such version");
  const live = findMachine(asker.context, id);
  const metadata = live?.version === version ? live.metadata : found.metadata;
  const { text } = storedConfig(asker.context, { id, version });
  return JSON.parse(withMetadata(text, metadata)) as MachineConfig;
}

// One Machine, with everything that a person asks about it.
import type { MachineConfig } from "../../api/machineConfig.ts";
import { findMachine, storedConfig } from "../lifecycle/machines.ts";
import { refuse } from "../refusal.ts";
import { machineOf } from "../rules/find.ts";
import { withMetadata } from "../rules/machineAnswer.ts";
import { rfc3339 } from "../time/clock.ts";
import { decodeTime } from "ulid";
import { ask, askFor, type Asker } from "./ask.ts";

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

/** The state of a Machine, its events and versions, its lease, and the requests that wait for it. */
export async function machineView(asker: Asker, params: Params) {
  const { context } = asker;
  const { id } = machineOf({ ...asker, params });
  const machine = await ask(asker, "machines", "get", { ...params });
  return {
    machine,
    events: await ask(asker, "machines", "events", { ...params }, { limit: 50 }),
    versions: versionsOf(asker, id),
    lease: (await askFor(ask(asker, "machines", "getLease", { ...params })))?.data ?? null,
    waits: context.waits.heldOn(id),
    volumes: context.store.all<{ id: string; name: string; state: string; size_gb: number }>(
      "SELECT id, name, state, size_gb FROM volumes WHERE machine = ? ORDER BY name",
      id,
    ),
    canLog: context.runtime.logs !== undefined,
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

// One App: its Machines in groups, what changed them lately, and everything else that it has.
import { findMachine } from "../lifecycle/machines.ts";
import { count } from "../rules/counts.ts";
import { appOf } from "../rules/find.ts";
import { volumeAnswer } from "../rules/volumeAnswer.ts";
import type { AppRow, VolumeRow } from "../store/rows.ts";
import type { Audit, Audited } from "../http/audit.ts";
import { ask, type Asker } from "./ask.ts";
import type { Work } from "./costly.ts";
import { logged } from "./requests.ts";
import type { Some, Step } from "./types.ts";

/** Changes of Machines that are shown. */
const stepsShown = 100;
/** Volumes, addresses and the like that are shown. */
const mostShown = 200;

/** Where a service of an App can be opened. */
interface Address {
  readonly port: number;
  readonly url: string;
  /** The address of the App, if the URL has it. */
  readonly ip?: string;
}

const some = <T>(all: readonly T[], total = all.length): Some<T> => ({ total, first: all.slice(0, mostShown) });

/** The oldest volumes of an App. The rule would list all of them, and an App may have any number. */
function volumesOf({ context }: Asker, app: string) {
  const rows = context.store.all<VolumeRow>(
    `SELECT * FROM volumes WHERE app = ? ORDER BY created_at, id LIMIT ${mostShown}`,
    app,
  );
  const total = count(context, "SELECT count(*) AS n FROM volumes WHERE app = ?", app);
  return some(
    rows.map((row) => volumeAnswer(row)),
    total,
  );
}

/** Everything of an App besides its Machines. */
export async function appView(
  asker: Asker,
  name: string,
  audit: Audit,
  addresses: (app: AppRow) => Promise<readonly Address[]>,
  work: Work,
) {
  const params = { app_name: name };
  const app = appOf({ ...asker, params });
  const shown = await ask(asker, "apps", "get", params);
  const urls = (await addresses(app)).slice(0, mostShown);
  const volumes = volumesOf(asker, app.id);
  const { ips } = await ask(asker, "ipAssignments", "list", params);
  await work.pause();
  const hostnames = await ask(asker, "certificates", "list", params, { limit: mostShown });
  await work.pause();
  const { secrets } = await ask(asker, "secrets", "list", params);
  const { secret_keys } = await ask(asker, "secretKeys", "list", params);
  await work.pause();
  const steps = await stepsOf(audit, asker, name, work);
  return {
    app: shown,
    urls,
    volumes,
    addresses: some(ips),
    certificates: some(hostnames.certificates, hostnames.total_count),
    secrets: some(secrets),
    secretKeys: some(secret_keys),
    steps,
  };
}

/** The latest requests that changed Machines of an App, oldest first. */
async function stepsOf(audit: Audit, { context, caller }: Asker, name: string, work: Work): Promise<readonly Step[]> {
  const start = `/v1/apps/${encodeURIComponent(name)}/machines`;
  const found: Audited[] = [];
  // One search for each method is much faster than reading the many lines of requests that only read.
  for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
    let ofMethod = 0;
    for (const entry of audit.newestFirst({ text: `"${method}","${start}` })) {
      if (entry && entry.org === caller.slug && isStep(entry, method, start)) {
        found.push(entry);
        if (++ofMethod >= stepsShown) break;
      }
      if (work.isDue) await work.pause();
    }
  }
  return found
    .sort((a, b) => a.seq - b.seq)
    .slice(-stepsShown)
    .map((entry) => {
      const machine = findMachine(context, entry.path.slice(start.length + 1).split("/")[0] ?? "");
      return { ...logged(entry), machine: machine ? { id: machine.id, name: machine.name } : null };
    });
}

/** Whether a request changes a Machine: leases, waits and commands do not. */
const isStep = (entry: Audited, method: string, start: string): boolean =>
  entry.method === method && entry.path.startsWith(start) && !/\/(lease|wait|exec)$/.test(entry.path);

/** What the page gets of an App. */
export type AppView = Awaited<ReturnType<typeof appView>>;

// One App: its Machines in groups, what changed them lately, and everything else that it has.
import { findMachine } from "../lifecycle/machines.ts";
import { appOf } from "../rules/find.ts";
import type { AppRow } from "../store/rows.ts";
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
}

const some = <T>(all: readonly T[]): Some<T> => ({
  total: all.length,
  first: all.slice(0, mostShown),
});

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
  const urls = await addresses(app);
  const volumes = some(await ask(asker, "volumes", "list", params));
  await work.pause();
  const ips = some((await ask(asker, "ipAssignments", "list", params)).ips);
  const certificates = some((await ask(asker, "certificates", "list", params)).certificates);
  await work.pause();
  const secrets = some((await ask(asker, "secrets", "list", params)).secrets);
  await work.pause();
  const secretKeys = some((await ask(asker, "secretKeys", "list", params)).secret_keys);
  await work.pause();
  const steps = await stepsOf(audit, asker, name, work);
  return { app: shown, urls, volumes, addresses: ips, certificates, secrets, secretKeys, steps };
}

/** The latest requests that changed Machines of an App, oldest first. */
async function stepsOf(audit: Audit, { context, caller }: Asker, name: string, work: Work): Promise<readonly Step[]> {
  const start = `/v1/apps/${encodeURIComponent(name)}/machines`;
  const found: Step[] = [];
  for (const entry of audit.newestFirst({ text: `"${start}` })) {
    if (entry?.org === caller.slug && isStep(entry, start)) {
      const machine = findMachine(context, entry.path.slice(start.length + 1).split("/")[0] ?? "");
      found.push({ ...logged(entry), machine: machine ? { id: machine.id, name: machine.name } : null });
    }
    if (found.length >= stepsShown) break;
    if (work.isDue) await work.pause();
  }
  return found.reverse();
}

/** Whether a request changes a Machine: leases, waits and commands do not. */
const isStep = ({ method, path }: Audited, start: string): boolean =>
  method !== "GET" && path.startsWith(start) && !/\/(lease|wait|exec)$/.test(path);

/** What the page gets of an App. */
export type AppView = Awaited<ReturnType<typeof appView>>;

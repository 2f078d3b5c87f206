// One App: its Machines in groups, what changed them lately, and everything else that it has.
import { findMachine } from "../lifecycle/machines.ts";
import { appOf } from "../rules/find.ts";
import type { AppRow } from "../store/rows.ts";
import type { Audit } from "../http/audit.ts";
import { ask, type Asker } from "./ask.ts";
import { groupsOf } from "./machines.ts";
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

/** The groups of an App, which may take long to count. */
export const groupsIn = (asker: Asker, name: string) => ({
  groups: groupsOf(asker, appOf({ ...asker, params: { app_name: name } }).id),
});

/** Everything of an App besides its Machines. */
export async function appView(
  asker: Asker,
  name: string,
  audit: Audit,
  addresses: (app: AppRow) => Promise<readonly Address[]>,
) {
  const params = { app_name: name };
  const app = appOf({ ...asker, params });
  const [shown, volumes, { ips }, { certificates }, { secrets }, { secret_keys }] = [
    await ask(asker, "apps", "get", params),
    await ask(asker, "volumes", "list", params),
    await ask(asker, "ipAssignments", "list", params),
    await ask(asker, "certificates", "list", params),
    await ask(asker, "secrets", "list", params),
    await ask(asker, "secretKeys", "list", params),
  ];
  return {
    app: shown,
    urls: await addresses(app),
    volumes: some(volumes),
    addresses: some(ips),
    certificates: some(certificates),
    secrets: some(secrets),
    secretKeys: some(secret_keys),
    steps: stepsOf(audit, asker, name),
  };
}

/** The latest requests that changed Machines of an App, oldest first. */
function stepsOf(audit: Audit, { context, caller }: Asker, name: string): readonly Step[] {
  const start = `/v1/apps/${encodeURIComponent(name)}/machines`;
  const found: Step[] = [];
  for (const entry of audit.newestFirst()) {
    const isChange = entry.method !== "GET" && entry.path.startsWith(start) && !/\/(lease|wait|exec)$/.test(entry.path);
    if (!isChange || entry.org !== caller.slug) continue;
    const machine = findMachine(context, entry.path.slice(start.length + 1).split("/")[0] ?? "");
    found.push({ ...logged(entry), machine: machine ? { id: machine.id, name: machine.name } : null });
    if (found.length >= stepsShown) break;
  }
  return found.reverse();
}

/** What the page gets of an App. */
export type AppView = Awaited<ReturnType<typeof appView>>;

// One App: everything that it has besides its Machines.
import { count } from "../rules/counts.ts";
import { appOf } from "../rules/find.ts";
import { volumeAnswer } from "../rules/volumeAnswer.ts";
import type { AppRow, VolumeRow } from "../store/rows.ts";
import { ask, type Asker } from "./ask.ts";
import type { Work } from "../time/costly.ts";
import type { Some } from "./types.ts";

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
  return {
    app: shown,
    urls,
    volumes,
    addresses: some(ips),
    certificates: some(hostnames.certificates, hostnames.total_count),
    secrets: some(secrets),
    secretKeys: some(secret_keys),
  };
}

/** What the page gets of an App. */
export type AppView = Awaited<ReturnType<typeof appView>>;

// What an organization has: Apps, regions, clusters, and an estimate of the cost.
import { addressCost, clusterCost, volumeCost } from "../../api/cost.ts";
import type { MachineConfig } from "../../api/machineConfig.ts";
import { prices } from "../../api/prices.ts";
import type { Context } from "../context.ts";
import { checks } from "../rules/counts.ts";
import type { Caller } from "../rules/rule.ts";
import type { MachineState } from "../states/machineStates.ts";
import type { ClusterRow } from "../store/rows.ts";
import { version } from "../version.ts";
import type { Asker } from "./ask.ts";
import { addCertificates } from "./certificateProblems.ts";
import type { Work } from "../time/costly.ts";
import { inPart, partsOf } from "./parts.ts";
import {
  addMachines,
  AppProblems,
  backupProblem,
  clustersWithProblems,
  lately,
  problemsOf,
  regionsWithProblems,
  restartedLately,
  type Found,
} from "./problems.ts";
import { machineCost } from "./size.ts";
import type { AppSummary, ClusterSummary, Overview, RegionSummary, States } from "./types.ts";
import { appsParameter, isForAll, onlyApps } from "../store/tokens.ts";

interface CountRow {
  readonly state: MachineState;
  readonly checks: "passing" | "warning" | "critical" | null;
  readonly region: string;
  /** JSON. */
  readonly guest: string | null;
  readonly size: string | null;
  readonly cpu_kind: string;
  readonly restarted: number;
  readonly n: number;
}

interface ListedApp {
  readonly number: number;
  readonly id: string;
  readonly name: string;
  readonly network: string;
  readonly deleting: number;
  readonly created_at: number;
  readonly volumes: number;
  readonly volumeGb: number;
  readonly hostnames: number;
}

/** An App with the costs of its parts. */
interface Counted extends AppSummary {
  readonly costs: { readonly machines: number; readonly volumes: number; readonly addresses: number };
  /** Number of its Machines by region. */
  readonly byRegion: ReadonlyMap<string, number>;
  readonly problems: readonly Found[];
}

/** Number of Apps that are read at once. */
const appsAtOnce = 100;

// A token of some Apps sees only those.
const appsSql = `SELECT a.number, a.id, a.name, a.network, a.deleting, a.created_at,
    (SELECT count(*) FROM volumes v WHERE v.app = a.id) AS volumes,
    (SELECT coalesce(sum(size_gb), 0) FROM volumes v WHERE v.app = a.id) AS volumeGb,
    (SELECT count(*) FROM hostnames h WHERE h.app = a.id) AS hostnames
  FROM apps a WHERE a.org = ?1 AND a.number > ?2 AND a.deleting < 2 AND ${onlyApps("a.id", 3)}
  ORDER BY a.number LIMIT ${appsAtOnce}`;

/** The caller's Apps, in parts. */
async function* appsOf({ store }: Context, caller: Caller, work: Work): AsyncGenerator<ListedApp> {
  for (let after = 0; ;) {
    const listed = store.all<ListedApp>(appsSql, caller.org, after, appsParameter(caller));
    for (const one of listed) {
      yield one;
      await work.pause();
    }
    const last = listed.at(-1);
    if (!last || listed.length < appsAtOnce) return;
    after = last.number;
  }
}

const countsSql = `SELECT m.state, ${checks} AS checks, m.region, m.brief -> '$.guest' AS guest, m.size, m.cpu_kind,
    ${restartedLately} AS restarted, count(*) AS n
  FROM machines m WHERE ${inPart} GROUP BY 1, 2, 3, 4, 5, 6, 7`;

const sum = <T>(all: readonly T[], of: (one: T) => number): number => all.reduce((total, one) => total + of(one), 0);

function add<K>(counts: Map<K, number>, key: K, n: number): void {
  counts.set(key, (counts.get(key) ?? 0) + n);
}

async function counted(context: Context, listed: ListedApp, work: Work): Promise<Counted> {
  const { id, name, network, deleting, created_at, volumes, volumeGb, hostnames } = listed;
  const states = new Map<MachineState, number>();
  const results = new Map<CountRow["checks"], number>();
  const byRegion = new Map<string, number>();
  const problems = new AppProblems(name);
  let machines = 0;
  for await (const names of partsOf(context, id, work)) {
    const rows = context.store.all<CountRow>(countsSql, id, ...names, lately(context));
    for (const row of rows) {
      add(states, row.state, row.n);
      add(results, row.checks, row.n);
      add(byRegion, row.region, row.n);
      const guest = row.guest === null ? undefined : (JSON.parse(row.guest) as MachineConfig["guest"]);
      machines += row.n * machineCost({ ...row, guest });
    }
    const of = (is: (row: CountRow) => boolean): number => sum(rows.filter(is), ({ n }) => n);
    const bad = {
      failed: of(({ state }) => state === "failed"),
      critical: of((row) => row.checks === "critical"),
      restarted: of(({ restarted }) => restarted === 1),
    };
    await addMachines(context, { id, name }, names, bad, problems, work);
  }
  if (hostnames > 0) await addCertificates(context, { id, name }, problems, work);
  const addresses = context.store.all<{ type: string; n: number }>(
    "SELECT type, count(*) AS n FROM ips WHERE app = ? GROUP BY type",
    id,
  );
  const costs = {
    machines,
    volumes: volumeCost(volumeGb, prices),
    addresses: sum(addresses, ({ type, n }) => n * addressCost(type, prices)),
  };
  return {
    ...{ name, network, deleting: deleting === 1, created: created_at, volumes, hostnames },
    machines: sum([...states.values()], (n) => n),
    states: Object.fromEntries(states) as States,
    critical: results.get("critical") ?? 0,
    warning: results.get("warning") ?? 0,
    regions: [...byRegion.keys()].sort(),
    cost: costs.machines + costs.volumes + costs.addresses,
    costs,
    byRegion,
    problems: problems.all,
  };
}

function regionsOf(context: Context, apps: readonly Counted[]): readonly RegionSummary[] {
  const own = new Map<string, number>();
  for (const { byRegion } of apps) for (const [region, n] of byRegion) add(own, region, n);
  const used = new Map(
    context.store
      .all<{ region: string; n: number }>("SELECT region, sum(machines) AS n FROM region_use GROUP BY region")
      .map(({ region, n }) => [region, n]),
  );
  return [...context.regions.values()].map(({ code, name, latitude, longitude, capacity }) => ({
    ...{ code, name, latitude, longitude },
    machines: own.get(code) ?? 0,
    used: used.get(code) ?? 0,
    capacity: capacity.total,
  }));
}

/** The clusters of an organization; a token of some Apps sees none. */
const clusterRows = ({ store }: Context, caller: Caller): readonly ClusterRow[] =>
  isForAll(caller)
    ? store.all<ClusterRow>(
        "SELECT * FROM clusters WHERE org = ? AND status <> 'deleted' ORDER BY name, number",
        caller.org,
      )
    : [];

function clustersOf({ store }: Context, { org }: Caller, rows: readonly ClusterRow[]): readonly ClusterSummary[] {
  const attached = store.all<{ cluster: string; name: string }>(
    `SELECT t.cluster, a.name FROM attachments t JOIN apps a ON a.id = t.app
     WHERE a.org = ? AND a.deleting < 2 ORDER BY a.name`,
    org,
  );
  const names = new Map<string, string[]>();
  for (const { cluster, name } of attached) {
    const known = names.get(cluster);
    if (known) known.push(name);
    else names.set(cluster, [name]);
  }
  return rows.map(({ id, name, status, region, plan, disk_size_gb, storage_used_bytes, pg_major_version }) => ({
    ...{ id, name, status, region, plan },
    diskGb: disk_size_gb,
    usedBytes: storage_used_bytes,
    version: pg_major_version,
    attachments: names.get(id) ?? [],
  }));
}

/** What the caller's organization has. */
export async function overviewOf(asker: Asker, work: Work): Promise<Overview> {
  const { context, caller } = asker;
  const { store, runtime } = context;
  const counts: Counted[] = [];
  for await (const app of appsOf(context, caller, work)) counts.push(await counted(context, app, work));
  counts.sort((a, b) => (a.name < b.name ? -1 : 1));
  const rows = clusterRows(context, caller);
  const clusters = clustersOf(context, caller, rows);
  const found = [
    ...counts.flatMap(({ problems }) => problems),
    ...(await clustersWithProblems(context, rows, work)),
    ...regionsWithProblems(context, counts),
    ...backupProblem(context, caller),
  ];
  const organization = store.get<{ slug: string; name: string }>(
    "SELECT slug, name FROM orgs WHERE id = ?",
    caller.org,
  ) ?? { slug: caller.slug, name: caller.slug };
  return {
    ...{ organization, runtime: runtime.name, version, clusters },
    problems: await problemsOf(asker, found, work),
    apps: counts.map(({ costs: _costs, byRegion: _byRegion, problems: _problems, ...app }) => app),
    regions: regionsOf(context, counts),
    cost: {
      currency: prices.currency,
      machines: sum(counts, ({ costs }) => costs.machines),
      volumes: sum(counts, ({ costs }) => costs.volumes),
      addresses: sum(counts, ({ costs }) => costs.addresses),
      clusters: sum(clusters, ({ plan, diskGb }) => clusterCost(plan, diskGb, prices)),
    },
  };
}

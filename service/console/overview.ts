// What an organization has: Apps, regions, clusters, and an estimate of the cost.
import { sizeOf, type MachineConfig } from "../../api/machineConfig.ts";
import { prices } from "../../api/prices.ts";
import type { Context } from "../context.ts";
import type { Caller } from "../rules/rule.ts";
import type { ClusterRow } from "../store/rows.ts";
import { version } from "../version.ts";
import type { Asker } from "./ask.ts";
import type { AppSummary, ClusterSummary, Cost, Overview, RegionSummary, States } from "./types.ts";

interface CountRow {
  readonly app: string;
  readonly state: string;
  readonly checks: string;
  readonly region: string;
  readonly guest: string | null;
  readonly cpu_kind: string;
  readonly n: number;
}

interface ListedApp {
  readonly id: string;
  readonly name: string;
  readonly network: string;
  readonly deleting: number;
  readonly created_at: number;
  readonly volumes: number;
  readonly volumeGb: number;
  readonly hostnames: number;
}

// A token of one App sees that App only.
const ownApps = "a.org = ?1 AND a.deleting < 2 AND (?2 IS NULL OR a.id = ?2)";

/** Machines of the caller's Apps, counted by what the overview shows. */
const countsOf = ({ store }: Context, { org, app }: Caller): readonly CountRow[] =>
  store.all<CountRow>(
    `SELECT m.app, m.state, m.checks, m.region, m.brief ->> '$.guest' AS guest, m.cpu_kind, count(*) AS n
     FROM apps a CROSS JOIN machines m ON m.app = a.id
     WHERE ${ownApps} AND m.destroyed_at IS NULL GROUP BY m.app, m.state, m.checks, m.region, guest, m.cpu_kind`,
    org,
    app,
  );

/** Cost of a Machine per month; one that does not run costs nothing. */
function machineCost({ state, guest, cpu_kind }: Pick<CountRow, "state" | "guest" | "cpu_kind">): number {
  if (["stopped", "suspended"].includes(state)) return 0;
  const given = guest === null ? {} : (JSON.parse(guest) as NonNullable<MachineConfig["guest"]>);
  const { kind, cpus, memoryMb } = sizeOf({ guest: { cpu_kind: cpu_kind as "shared" | "performance", ...given } });
  const gpus = given.gpu_kind === undefined ? 0 : (given.gpus ?? 1);
  const gpu = prices.gpu[given.gpu_kind ?? ""] ?? Math.max(...Object.values(prices.gpu));
  return (
    cpus * (kind === "performance" ? prices.performanceCpu : prices.sharedCpu) +
    (memoryMb / 1024) * prices.memoryGb +
    gpus * gpu
  );
}

const sum = <T>(all: readonly T[], of: (one: T) => number): number => all.reduce((total, one) => total + of(one), 0);

function statesOf(counts: readonly CountRow[]): States {
  const states: Record<string, number> = {};
  for (const { state, n } of counts) states[state] = (states[state] ?? 0) + n;
  return states;
}

const checked = (counts: readonly CountRow[], result: string): number =>
  sum(
    counts.filter(({ checks, state }) => checks === result && state === "started"),
    ({ n }) => n,
  );

/** Cost of each App's addresses per month. */
function addressCosts({ store }: Context, { org, app }: Caller): ReadonlyMap<string, number> {
  const rows = store.all<{ app: string; type: string; n: number }>(
    `SELECT i.app, i.type, count(*) AS n FROM ips i JOIN apps a ON a.id = i.app WHERE ${ownApps} GROUP BY i.app, i.type`,
    org,
    app,
  );
  const costs = new Map<string, number>();
  for (const { app: of, type, n } of rows) costs.set(of, (costs.get(of) ?? 0) + n * (prices.address[type] ?? 0));
  return costs;
}

function regionsOf(context: Context, counts: readonly CountRow[]): readonly RegionSummary[] {
  const used = new Map(
    context.store
      .all<{ region: string; n: number }>("SELECT region, sum(machines) AS n FROM region_use GROUP BY region")
      .map(({ region, n }) => [region, n]),
  );
  return [...context.regions.values()].map(({ code, name, latitude, longitude, capacity }) => ({
    ...{ code, name, latitude, longitude },
    machines: sum(
      counts.filter(({ region }) => region === code),
      ({ n }) => n,
    ),
    used: used.get(code) ?? 0,
    capacity: capacity.total,
  }));
}

function clustersOf({ store }: Context, { org, app }: Caller): readonly ClusterSummary[] {
  if (app !== null) return [];
  const attached = store.all<{ cluster: string; name: string }>(
    `SELECT t.cluster, a.name FROM attachments t JOIN apps a ON a.id = t.app
     WHERE a.org = ? AND a.deleting < 2 ORDER BY a.name`,
    org,
  );
  return store
    .all<ClusterRow>("SELECT * FROM clusters WHERE org = ? AND status <> 'deleted' ORDER BY name, number", org)
    .map(({ id, name, status, region, plan, disk_size_gb, storage_used_bytes, pg_major_version }) => ({
      ...{ id, name, status, region, plan },
      diskGb: disk_size_gb,
      usedBytes: storage_used_bytes,
      version: pg_major_version,
      attachments: attached.filter(({ cluster }) => cluster === id).map((one) => one.name),
    }));
}

/** What the caller's organization has. */
export function overviewOf({ context, caller }: Asker): Overview {
  const { store, runtime } = context;
  const counts = countsOf(context, caller);
  const byApp = new Map<string, CountRow[]>();
  for (const row of counts) {
    const known = byApp.get(row.app);
    if (known) known.push(row);
    else byApp.set(row.app, [row]);
  }
  const addresses = addressCosts(context, caller);
  const listed = store.all<ListedApp>(
    `SELECT a.id, a.name, a.network, a.deleting, a.created_at,
       (SELECT count(*) FROM volumes v WHERE v.app = a.id) AS volumes,
       (SELECT coalesce(sum(size_gb), 0) FROM volumes v WHERE v.app = a.id) AS volumeGb,
       (SELECT count(*) FROM hostnames h WHERE h.app = a.id) AS hostnames
     FROM apps a WHERE ${ownApps} ORDER BY a.name`,
    caller.org,
    caller.app,
  );
  const machineCosts = new Map<string, number>();
  const apps = listed.map(({ id, name, network, deleting, created_at, volumes, volumeGb, hostnames }): AppSummary => {
    const own = byApp.get(id) ?? [];
    const machines = sum(own, (row) => row.n * machineCost(row));
    machineCosts.set(id, machines);
    return {
      ...{ name, network, deleting: deleting === 1, created: created_at, volumes, hostnames },
      machines: sum(own, ({ n }) => n),
      states: statesOf(own),
      critical: checked(own, "critical"),
      warning: checked(own, "warning"),
      regions: [...new Set(own.map(({ region }) => region))].sort(),
      cost: machines + volumeGb * prices.volumeGb + (addresses.get(id) ?? 0),
    };
  });
  const clusters = clustersOf(context, caller);
  const cost: Cost = {
    currency: prices.currency,
    machines: sum([...machineCosts.values()], (one) => one),
    volumes: sum(listed, ({ volumeGb }) => volumeGb) * prices.volumeGb,
    addresses: sum([...addresses.values()], (one) => one),
    clusters: sum(clusters, ({ plan, diskGb }) => (prices.postgres[plan] ?? 0) + diskGb * prices.postgresDiskGb),
  };
  const organization = store.get<{ slug: string; name: string }>(
    "SELECT slug, name FROM orgs WHERE id = ?",
    caller.org,
  ) ?? { slug: caller.slug, name: caller.slug };
  return {
    ...{ organization, runtime: runtime.name, version, apps, clusters, cost },
    regions: regionsOf(context, counts),
  };
}

// Metrics of Postgres clusters: which ones work, how full they are, and their connections.
import type { Context } from "../context.ts";
import type { ServerLoad } from "../runtime/postgresEngine.ts";
import type { ClusterRow } from "../store/rows.ts";
import { operatorOrg } from "../store/tokens.ts";
import { clusterMetrics as of } from "../watch/catalogue.ts";
import type { Measured, Sample } from "../watch/exposition.ts";

// ASSUMED: metrics name the first 200 Postgres clusters of organization `personal`. All others, also of other organizations, are one:
// down if any of them is, with the fullest disk, the fewest free connections, and the most slow queries among them.
const mostNamed = 200;
/** The label of all other clusters, which is no name that a cluster can have. */
const otherClusters = "other clusters";

type Row = Pick<ClusterRow, "id" | "name" | "status" | "disk_size_gb" | "storage_used_bytes"> & {
  readonly own: number;
};

const all = `SELECT c.id, c.name, c.status, c.disk_size_gb, c.storage_used_bytes, o.slug = ? AS own
  FROM clusters c JOIN orgs o ON o.id = c.org WHERE c.status IN ('ready', 'failed') ORDER BY c.number`;

/** What was measured last, by cluster; undefined for one whose server did not answer. */
export type Loads = ReadonlyMap<string, ServerLoad | undefined>;

/** The numbers of a cluster. */
interface Numbers {
  readonly name: string;
  readonly isUp: boolean;
  readonly disk: number;
  readonly used: number | null;
  readonly load: ServerLoad | undefined;
}

const numbersOf = ({ id, name, status, disk_size_gb, storage_used_bytes }: Row, loads: Loads): Numbers => ({
  name,
  // One that was not measured yet has just become ready.
  isUp: status === "ready" && (!loads.has(id) || loads.get(id) !== undefined),
  disk: disk_size_gb * 1e9,
  used: storage_used_bytes,
  load: loads.get(id),
});

/** Of several, the one that has the most. */
const most = (several: readonly Numbers[], share: (one: Numbers) => number): Numbers | undefined =>
  several.reduce<Numbers | undefined>((worst, one) => (worst && share(worst) >= share(one) ? worst : one), undefined);

/** Several clusters as one, so that each kind of trouble shows. */
function together(several: readonly Numbers[]): Numbers[] {
  const fullest = most(several, ({ used, disk }) => (used ?? -1) / disk);
  const busiest = most(several, ({ load }) => (load ? load.connections / load.most : -1));
  if (!fullest) return [];
  const slow = Math.max(...several.map(({ load }) => load?.slow ?? 0));
  const isUp = several.every((one) => one.isUp);
  return [{ ...fullest, name: otherClusters, isUp, load: busiest?.load && { ...busiest.load, slow } }];
}

/** The metrics. */
export function clusterMetrics({ store }: Pick<Context, "store">, loads: Loads): readonly Measured[] {
  const statuses = store.all<{ status: string; n: number }>(
    "SELECT status, count(*) AS n FROM clusters WHERE status <> 'deleted' GROUP BY status ORDER BY status",
  );
  const [named, others]: [Numbers[], Numbers[]] = [[], []];
  for (const row of store.all<Row>(all, operatorOrg))
    (row.own === 1 && named.length < mostNamed ? named : others).push(numbersOf(row, loads));
  const shown = [...named, ...together(others)];
  const each = (value: (one: Numbers) => number | null | undefined): Sample[] =>
    shown.flatMap((one) => {
      const found = value(one);
      return found == null ? [] : [[{ cluster: one.name }, found] as const];
    });
  return [
    [of.clusters, statuses.map(({ status, n }) => [{ status }, n])],
    [of.up, each(({ isUp }) => (isUp ? 1 : 0))],
    [of.used, each(({ used }) => used)],
    [of.disk, each(({ disk }) => disk)],
    [of.connections, each(({ load }) => load?.connections)],
    [of.mostConnections, each(({ load }) => load?.most)],
    [of.slow, each(({ load }) => load?.slow)],
  ];
}

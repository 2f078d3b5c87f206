// The simulated Postgres engine. The contents of clusters are in the store. A cluster whose name ends in `-simulate-fail` fails,
// with `-simulate-stuck` it is never ready, and with `-simulate-refuse` it is refused.
import {
  isOffered,
  type Cluster,
  type EngineHost,
  type ExtensionOffer,
  type NewCluster,
  type PostgresEngine,
  type RunningQuery,
  type SlowQuery,
} from "./postgresEngine.ts";

const offers: readonly ExtensionOffer[] = [
  { name: "plpgsql", version: "1.0", description: "PL/pgSQL procedural language", system: true },
  { name: "pg_stat_statements", version: "1.10", description: "track planning and execution statistics", system: true },
  { name: "citext", version: "1.6", description: "data type for case-insensitive character strings", system: false },
  { name: "hstore", version: "1.8", description: "data type for storing sets of (key, value) pairs", system: false },
  { name: "pg_trgm", version: "1.6", description: "text similarity by trigrams", system: false },
  { name: "pgcrypto", version: "1.3", description: "cryptographic functions", system: false },
  { name: "postgis", version: "3.4.2", description: "geometry and geography types and functions", system: false },
  { name: "unaccent", version: "1.1", description: "text search dictionary that removes accents", system: false },
  { name: "uuid-ossp", version: "1.1", description: "generate universally unique identifiers", system: false },
  { name: "vector", version: "0.7.0", description: "vector data type with similarity search", system: false },
];

// ASSUMED: an empty cluster stores 32 MiB, for plausible numbers.
const emptyBytes = 32 * 2 ** 20;

const simulates = (name: string, what: string): boolean => name.endsWith(`simulate-${what}`);

/** An engine that runs nothing. */
export class SimulatedPostgres implements PostgresEngine {
  readonly name = "simulated";
  readonly version = "16";
  readonly #host: EngineHost;

  constructor(host: EngineHost) {
    this.#host = host;
  }

  problem({ name, version }: NewCluster): { status: 400 | 422; message: string } | undefined {
    if (!isOffered(version))
      return {
        status: 422,
        message: `invalid pg_major_version, got ${JSON.stringify(version)}, allowed are "16", "17"`,
      };
    return simulates(name, "refuse") ? { status: 400, message: "the cluster could not be created" } : undefined;
  }

  create({ id }: Cluster): void {
    this.#step(id);
  }

  destroy({ id }: Cluster): void {
    this.#step(id);
  }

  change(): undefined {
    // The store holds the contents of clusters.
  }

  extensions(): readonly ExtensionOffer[] {
    return offers;
  }

  activeQueries(_cluster?: Cluster, _database?: string): Promise<readonly RunningQuery[]> {
    return Promise.resolve([]); // no client can connect, so there are no queries
  }

  slowQueries(_cluster?: Cluster, _withinMs?: number): Promise<readonly SlowQuery[]> {
    return Promise.resolve([]);
  }

  measure({ id }: Cluster): void {
    this.#host.events.measured(id, emptyBytes);
  }

  backUp(_: Cluster, backup: string): void {
    this.#host.timers.after(this.#host.delays.backup, "backup.done", backup);
  }

  due(kind: "cluster.step" | "backup.done", id: string): void {
    const { events } = this.#host;
    if (kind === "backup.done") return events.backedUp(id, emptyBytes);
    const cluster = this.#host.cluster(id);
    if (cluster?.status === "creating") {
      events.initializing(id);
      if (!simulates(cluster.name, "stuck")) this.#step(id);
    } else if (cluster?.status === "initializing") {
      if (simulates(cluster.name, "fail")) events.failed(id, "the name of the cluster asks for a failure");
      else events.ready(id, endpointsOf(cluster));
    } else if (cluster?.status === "deleting") events.destroyed(id);
  }

  #step(id: string): void {
    this.#host.timers.cancel(id, "cluster.step");
    this.#host.timers.after(this.#host.delays.cluster, "cluster.step", id);
  }
}

// Names below `.test` are reserved (RFC 2606).
const endpointsOf = ({ id }: Cluster) => ({
  primary: {
    direct: { host: `direct.${id}.postgres.machines.test`, port: 5432 },
    pooler: { host: `pgbouncer.${id}.postgres.machines.test`, port: 5432 },
  },
});

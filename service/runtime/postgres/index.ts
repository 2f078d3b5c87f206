// The engine with real PostgreSQL servers for a service: `createService({ postgres: await embeddedPostgres({ folder }) })`.
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { EngineFactory } from "../postgresEngine.ts";
import { findAccounts } from "./account.ts";
import { findBinaries, type Binaries } from "./binaries.ts";
import { EmbeddedPostgres } from "./embeddedPostgres.ts";
import { findPooler } from "./pooler.ts";

export { PostgresError } from "./postgresError.ts";

const loopback = "127.0.0.1";

/** Options of the engine. */
export interface EmbeddedPostgresOptions {
  /** The data folder of the service; clusters are in its folder `postgres`. */
  readonly data: string;
  /** An address of this computer at which Machines reach servers too. Default: none, so servers listen at 127.0.0.1 alone. */
  readonly machinesReach?: string | undefined;
  /** The program of PgBouncer, or `none`. Default: the installed one, if there is one. */
  readonly pgbouncer?: string | undefined;
  /** Whether servers continue to run when the service stops. Default: false. */
  readonly outlive?: boolean;
  /** The versions of PostgreSQL, by major version. Default: those that are installed. */
  readonly versions?: ReadonlyMap<string, Binaries>;
}

/**
 * Finds the installed PostgreSQL, and returns an engine that runs each cluster as a server of its own below the data folder.
 * @throws PostgresError if PostgreSQL is not installed, or cannot run as this user.
 */
export async function embeddedPostgres({
  data,
  machinesReach,
  pgbouncer,
  outlive = false,
  versions: chosen,
}: EmbeddedPostgresOptions): Promise<EngineFactory> {
  const versions = chosen ?? (await findBinaries());
  const pooler = findPooler(pgbouncer);
  const folder = join(resolve(data), "postgres");
  mkdirSync(resolve(data), { recursive: true, mode: 0o700 });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const programs = [...versions.values()].flatMap(({ initdb, postgres }) => [initdb, postgres]);
  const accounts = await findAccounts(folder, programs);
  const addresses = [loopback, ...(machinesReach === undefined ? [] : [machinesReach])];
  const publicHost = machinesReach ?? loopback;
  return (host) => {
    // The service has closed its folder meanwhile.
    accounts.reach();
    if (!pooler)
      host.log.info({}, "without PgBouncer: the pooler's address of each Postgres cluster is that of its server");
    return new EmbeddedPostgres(host, {
      ...{ accounts, addresses, publicHost, folder, versions, pooler, outlive },
      certificate: host.certificate,
      // Each pooler has its own: another program at its port could use it for another one.
      poolerPassword: (cluster) => host.secret(`postgres/pooler/${cluster}`),
    });
  };
}

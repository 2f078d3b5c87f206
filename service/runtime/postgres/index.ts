// The engine with real PostgreSQL servers for a service: `createService({ postgres: await embeddedPostgres({ folder }) })`.
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { EngineFactory } from "../postgresEngine.ts";
import { findAccounts } from "./account.ts";
import { findBinaries, type Binaries } from "./binaries.ts";
import { EmbeddedPostgres } from "./embeddedPostgres.ts";
import { pathsOf } from "./paths.ts";
import * as pooler from "./pooler.ts";
import * as servers from "./server.ts";

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
  /** Whether the service is backed up. Default: false. */
  readonly keepsForBackups?: boolean;
  /** The versions of PostgreSQL, by major version. Default: those that are installed. */
  readonly versions?: ReadonlyMap<string, Binaries>;
}

const folderOf = (data: string): string => join(resolve(data), "postgres");

/** Ends the servers of a data folder that run, and keeps what they have. Returns their number. */
export async function endServers(data: string): Promise<number> {
  const folder = folderOf(data);
  let ended = 0;
  for (const id of existsSync(folder) ? readdirSync(folder) : []) {
    const paths = pathsOf(join(folder, id));
    await pooler.stop(paths);
    if (await servers.end(paths)) ended++;
  }
  return ended;
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
  keepsForBackups = false,
  versions: chosen,
}: EmbeddedPostgresOptions): Promise<EngineFactory> {
  const versions = chosen ?? (await findBinaries());
  const program = pooler.findPooler(pgbouncer);
  const folder = folderOf(data);
  mkdirSync(resolve(data), { recursive: true, mode: 0o700 });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const programs = [...versions.values()].flatMap(({ initdb, postgres }) => [initdb, postgres]);
  const accounts = await findAccounts(folder, programs);
  const addresses = [loopback, ...(machinesReach === undefined ? [] : [machinesReach])];
  const publicHost = machinesReach ?? loopback;
  return (host) => {
    // The service has closed its folder meanwhile.
    accounts.reach();
    if (!program)
      host.log.info({}, "without PgBouncer: the pooler's address of each Postgres cluster is that of its server");
    return new EmbeddedPostgres(host, {
      ...{ accounts, addresses, publicHost, folder, versions, pooler: program, outlive, keepsForBackups },
      certificate: host.certificate,
      // Each pooler has its own: another program at its port could use it for another one.
      poolerPassword: (cluster) => host.secret(`postgres/pooler/${cluster}`),
    });
  };
}

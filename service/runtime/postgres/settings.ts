// The configuration files of a server. They are written before every start.
import { totalmem } from "node:os";
import type { Cluster } from "../postgresEngine.ts";

/** The role of the service in every server, and the name of its own database there. */
export const superuser = "postgres";

/** The role of the service in the databases of clients. No user can have its name. */
export const visitor = "_visitor";

/** Roles of the operator CloudNativePG: of replicas, and of poolers, which ask a server for the verifiers of passwords. */
export const operatorRoles: readonly string[] = ["streaming_replica", "cnpg_pooler_pgbouncer"];

/** Databases that no client can enter. */
export const systemDatabases: readonly string[] = [superuser, "template0", "template1"];

const mib = 2 ** 20;

/** What a server is started with. */
export interface ServerSettings {
  readonly cluster: Pick<Cluster, "id" | "cpus" | "memoryMb">;
  readonly port: number;
  /** Addresses to listen at. */
  readonly addresses: readonly string[];
  /** Folder for the log of changes (WAL) that is kept for backups. */
  readonly walFolder: string;
  /** Files for clients that ask for TLS. */
  readonly certificate: string;
  readonly key: string;
  /** The certificate with which the service enters. */
  readonly entry: string;
  /** File that says who may connect. */
  readonly rules: string;
  /** How a copy gets its data: from the changes in that folder, until the end of the backup or until a time. */
  readonly recovery?: Recovery;
}

/** Where a copy finds the changes since its backup, and where it stops. */
export interface Recovery {
  readonly walFolder: string;
  /** In milliseconds since 1970; the end of the backup if left out. */
  readonly time?: number;
  /** Whether it gets all changes that there are. */
  readonly toEnd?: boolean;
}

const quoted = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;

const inShell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

// ASSUMED: a server takes a quarter of the memory of its plan for its cache, but at most an eighth of this computer's memory.
const cacheMb = (memoryMb: number): number =>
  Math.max(32, Math.min(Math.floor(memoryMb / 4), Math.floor(totalmem() / mib / 8)));

/** ASSUMED: a server accepts 100 connections for each GB of the plan's memory, at least 100 and at most 500. */
export const connectionsOf = (memoryMb: number): number =>
  Math.min(500, Math.max(100, Math.floor(memoryMb / 1024) * 100));

/** The text of `postgresql.conf`. */
export function configurationOf(options: ServerSettings): string {
  const { cluster, port, addresses, walFolder, certificate, key, entry, rules, recovery } = options;
  const { cpus, memoryMb } = cluster;
  const settings: Readonly<Record<string, string | number>> = {
    cluster_name: quoted(cluster.id),
    listen_addresses: quoted(addresses.join(",")),
    port,
    unix_socket_directories: "''",
    ssl: "on",
    ssl_cert_file: quoted(certificate),
    ssl_key_file: quoted(key),
    ssl_ca_file: quoted(entry),
    hba_file: quoted(rules),
    max_connections: connectionsOf(memoryMb),
    // The service can enter databases also when clients have taken all other connections.
    reserved_connections: 2,
    shared_buffers: `${cacheMb(memoryMb)}MB`,
    effective_cache_size: `${Math.floor((memoryMb * 3) / 4)}MB`,
    max_worker_processes: Math.max(8, cpus),
    max_parallel_workers: cpus,
    wal_level: "replica",
    archive_mode: "on",
    archive_library: "basic_archive",
    "basic_archive.archive_directory": quoted(walFolder),
    shared_preload_libraries: "pg_stat_statements",
    password_encryption: "scram-sha-256",
    timezone: "UTC",
    log_timezone: "UTC",
    // A statement that fails may contain a password.
    log_min_error_statement: "panic",
    // A copy accepts no connection before it is complete.
    hot_standby: "off",
    ...(recovery && {
      restore_command: quoted(`cp ${inShell(recovery.walFolder).replaceAll("%", "%%")}/%f "%p"`),
      recovery_target_action: "promote",
      ...(recovery.toEnd
        ? {}
        : recovery.time === undefined
          ? { recovery_target: "immediate" }
          : {
              recovery_target_time: quoted(new Date(recovery.time).toISOString().replace("T", " ").replace("Z", "+00")),
            }),
    }),
  };
  return Object.entries(settings)
    .map(([name, value]) => `${name} = ${value}\n`)
    .join("");
}

const closed = systemDatabases.join(",");

/**
 * The text of `pg_hba.conf`: who may connect from where. The service has no password, which the superuser of one server could pass
 * on to another one: it enters with its certificate. Also the server keeps the superuser out of the databases of clients, and
 * clients out of those of the superuser.
 */
export const accessRules = [
  `hostssl ${closed} ${superuser} 127.0.0.1/32 cert`,
  `host all ${superuser} all reject`,
  `host ${closed} all all reject`,
  // The only certificate that the server accepts is the service's.
  `hostssl all ${visitor} 127.0.0.1/32 trust clientcert=verify-ca`,
  `host all ${visitor} all reject`,
  "host all all all scram-sha-256",
  "",
].join("\n");

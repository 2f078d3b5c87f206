// Options of a service, and the same as arguments of `start`.
import { resolve } from "node:path";
import { isFolder } from "../backup/isFolder.ts";
import type { ConsoleMode } from "../console/sessions.ts";
import { dataVariable, usualFolder } from "../ownCommand.ts";
import type { DelayProfile } from "../time/delays.ts";
import type { RateLimitProfile } from "../http/rateLimits.ts";

/** The runtimes to choose from. */
export const runtimeNames = ["simulated", "docker", "kubernetes"] as const;

/** Name of a runtime. */
export type RuntimeName = (typeof runtimeNames)[number];

/** The engines of Postgres clusters to choose from. */
export const postgresNames = ["simulated", "embedded", "cnpg"] as const;

/** Name of an engine of Postgres clusters. */
export type PostgresName = (typeof postgresNames)[number];

/** What can issue certificates instead of the service. */
export const certificatesNames = ["cert-manager"] as const;

/** An issuer of certificates to choose. */
export type CertificatesName = (typeof certificatesNames)[number];

/** Selects a service, and says how to start it if it is not running. */
export interface LocalOptions {
  /** Folder of the data. Default: `MACHINES_SERVICE_DATA` or `~/.machines-service`. */
  readonly data?: string;
  /** Address to listen at, `host:port`; port 0 picks a free one. */
  readonly listen?: string;
  /** File with the certificate for HTTPS and its intermediates, in PEM. Needs `tlsKey`. */
  readonly tlsCert?: string;
  /** File with the certificate's private key, in PEM. */
  readonly tlsKey?: string;
  readonly delays?: DelayProfile;
  /** Whether requests are limited as the platform documents. Default: `off`. */
  readonly rateLimits?: RateLimitProfile;
  /** File with the regions (local/regionsFile.ts). */
  readonly regions?: string;
  /** What runs the Machines: a simulation (the default), containers of a Docker engine, or Pods of a Kubernetes cluster. */
  readonly runtime?: RuntimeName;
  /** With `kubernetes`: the clusters of regions, each as `REGION=FILE`. Default: the cluster of `KUBECONFIG` has all regions. */
  readonly kubeconfig?: readonly string[];
  /** With `kubernetes`: the class of Ingresses, or `none` for no Ingresses. Default: that of the cluster. */
  readonly ingressClass?: string;
  /** With `docker`: registries that images may come from; `public`, the default, means all that are on the internet. */
  readonly registries?: readonly string[];
  /** With `docker`: capabilities of containers beside the usual ones. Default: none. */
  readonly capabilities?: readonly string[];
  /** With `docker`: private networks that Machines reach, such as 10.1.2.0/24. Default: none. */
  readonly reach?: readonly string[];
  /** What runs Postgres clusters: `simulated` (the default), `embedded` for servers on this computer, or `cnpg` for CloudNativePG. */
  readonly postgres?: PostgresName;
  /** With `cnpg`: the ClusterImageCatalog with the images of servers. Default: the images of the operator's project. */
  readonly postgresCatalog?: string;
  /** With `cnpg`: where backups and an archive of all changes are kept, such as `s3:https://s3.example.com/bucket`. Default: nowhere. */
  readonly postgresBackup?: string;
  /** With `postgresBackup`: file with the credentials as variables. Default: the environment has them. */
  readonly postgresBackupEnvironment?: string;
  /** Directory of the ACME authority that issues certificates. Default: the service's own authority, or a simulation. */
  readonly acme?: string;
  /** With `acme` on `kubernetes`: where the cluster reaches this service, `SERVICE:PORT` of its own namespace or `IP:PORT`. */
  readonly acmeAddress?: string;
  /** With `kubernetes`: what issues certificates instead. */
  readonly certificates?: CertificatesName;
  /** With `cert-manager`: the name of its ClusterIssuer. */
  readonly clusterIssuer?: string;
  /** What reads the DNS: `simulated`, `system`, or the address of a resolver. Default: `simulated`; with `acme`, `system`. */
  readonly dns?: string;
  /** PgBouncer, which pools connections to these servers, or `none`. Default: the installed one. */
  readonly pgbouncer?: string;
  /** Port of the proxy for HTTP; another one if it is taken. */
  readonly http?: string;
  /** Port of the proxy for HTTPS; another one if it is taken. */
  readonly https?: string;
  /** Addresses at which the proxy listens for other computers, at exactly its ports: 80 and 443 unless `http` and `https` differ. */
  readonly public?: readonly string[];
  /** With public addresses: the host name at which the API and the console answer by HTTPS. */
  readonly hostname?: string;
  /** With public addresses: the domain below which each App answers at its name. */
  readonly appsDomain?: string;
  /** Networks of proxies in front of the service, whose `X-Forwarded-For` and `X-Forwarded-Proto` count. Default: none. */
  readonly trustProxy?: readonly string[];
  /** Whether connections of these networks to the proxy begin with the PROXY protocol. */
  readonly proxyProtocol?: boolean;
  /** Connections of clients of the proxy at once. */
  readonly proxyConnections?: string;
  /** The number of them from one address. */
  readonly proxyConnectionsOfAddress?: string;
  /** Seconds without a byte after which the proxy closes a connection in use. */
  readonly proxyIdle?: string;
  /** Seconds that clients get at the end of the service. Default: 3. */
  readonly drain?: string;
  readonly strict?: boolean;
  /** URL of the PostgreSQL database that several members share. Default: one process with its data folder. */
  readonly store?: string;
  /** With `store`: file with the key that seals the data, as `key new` makes it. */
  readonly keyFile?: string;
  /** With `store`: URL at which the other members reach this one. Default: the address that it listens at. */
  readonly advertise?: string;
  /** With `store`: for how long any past moment can be exported, such as `7d`. Default: `24h`. */
  readonly keepLog?: string;
  /** Where backups are made on schedule: a folder, or an address such as `s3:https://s3.example.com/bucket`. Default: none are. */
  readonly backup?: string;
  /** Time from one backup to the next, such as `12h`. Default: `24h`. */
  readonly backupEvery?: string;
  /** Which backups are kept, such as `7d,4w,12m`. Default: `7d,4w,6m`. */
  readonly backupKeep?: string;
  /** File with the passphrase that seals the backups. */
  readonly backupPassphraseFile?: string;
  /** Command that prints the passphrase. */
  readonly backupPassphraseCommand?: string;
  /** File with variables for restic, such as credentials of S3. */
  readonly backupEnvironment?: string;
  /** The program restic. Default: the one on PATH. */
  readonly restic?: string;
  /** For how long the history is kept, or `off`. */
  readonly keepHistory?: string;
  /** Host names to accept in addition to those of this computer. */
  readonly allowHosts?: readonly string[];
  readonly allowRemote?: boolean;
  /** Address of the admin listener, `host:port`. Default: none. */
  readonly admin?: string;
  /** Whether there is a console at `/`, and whether it may also operate Machines and clusters. Default: `read`. */
  readonly console?: ConsoleMode;
  /** URL of the OpenID Connect provider at which people sign in to the console. */
  readonly oidcIssuer?: string;
  /** Id of the service at that provider. */
  readonly oidcClient?: string;
  /** File with the secret of the service at that provider. */
  readonly oidcSecretFile?: string;
  /** The claim that lists the groups of a person. Default: `groups`. */
  readonly oidcGroups?: string;
  /** What is requested of that provider. Default: `openid profile email`. */
  readonly oidcScope?: string;
  /** URL of an OpenTelemetry collector that gets the spans. Default: none are recorded. */
  readonly otlpEndpoint?: string;
}

const flags: { readonly [K in keyof Required<LocalOptions>]: string } = {
  data: "--data",
  listen: "--listen",
  tlsCert: "--tls-cert",
  tlsKey: "--tls-key",
  delays: "--delays",
  rateLimits: "--rate-limits",
  regions: "--regions",
  runtime: "--runtime",
  kubeconfig: "--kubeconfig",
  ingressClass: "--ingress-class",
  registries: "--registries",
  capabilities: "--capabilities",
  reach: "--reach",
  postgres: "--postgres",
  postgresCatalog: "--postgres-catalog",
  postgresBackup: "--postgres-backup",
  postgresBackupEnvironment: "--postgres-backup-environment",
  acme: "--acme",
  acmeAddress: "--acme-address",
  certificates: "--certificates",
  clusterIssuer: "--cluster-issuer",
  dns: "--dns",
  pgbouncer: "--pgbouncer",
  http: "--http",
  https: "--https",
  public: "--public",
  hostname: "--hostname",
  appsDomain: "--apps-domain",
  trustProxy: "--trust-proxy",
  proxyProtocol: "--proxy-protocol",
  proxyConnections: "--proxy-connections",
  proxyConnectionsOfAddress: "--proxy-connections-of-address",
  proxyIdle: "--proxy-idle",
  drain: "--drain",
  strict: "--strict",
  store: "--store",
  keyFile: "--key-file",
  advertise: "--advertise",
  keepLog: "--keep-log",
  keepHistory: "--keep-history",
  backup: "--backup",
  backupEvery: "--backup-every",
  backupKeep: "--backup-keep",
  backupPassphraseFile: "--backup-passphrase-file",
  backupPassphraseCommand: "--backup-passphrase-command",
  backupEnvironment: "--backup-environment",
  restic: "--restic",
  allowHosts: "--allow-host",
  allowRemote: "--allow-remote",
  admin: "--admin",
  console: "--console",
  oidcIssuer: "--oidc-issuer",
  oidcClient: "--oidc-client",
  oidcSecretFile: "--oidc-secret-file",
  oidcGroups: "--oidc-groups",
  oidcScope: "--oidc-scope",
  otlpEndpoint: "--otlp-endpoint",
};

/** An option as an argument of `start`. */
export const optionOf = (name: keyof LocalOptions): string => flags[name];

/** The data folder, as an absolute path. */
export function dataFolder(data: string | undefined): string {
  const named = data ?? process.env[dataVariable];
  return resolve(named !== undefined && named !== "" ? named : usualFolder());
}

/** The options with absolute paths: a background service has another working folder. */
export function settled(options: LocalOptions): LocalOptions & { readonly data: string } {
  const { data, tlsCert, tlsKey, keyFile, oidcSecretFile, regions, kubeconfig, pgbouncer, ...others } = options;
  const { backup, backupPassphraseFile, backupEnvironment, postgresBackupEnvironment, restic, ...rest } = others;
  return {
    ...rest,
    data: dataFolder(data),
    ...(tlsCert === undefined ? {} : { tlsCert: resolve(tlsCert) }),
    ...(tlsKey === undefined ? {} : { tlsKey: resolve(tlsKey) }),
    ...(keyFile === undefined ? {} : { keyFile: resolve(keyFile) }),
    ...(oidcSecretFile === undefined ? {} : { oidcSecretFile: resolve(oidcSecretFile) }),
    ...(regions === undefined ? {} : { regions: resolve(regions) }),
    ...(kubeconfig === undefined
      ? {}
      : { kubeconfig: kubeconfig.map((one) => one.replace(/(?<==).+/, (file) => resolve(file))) }),
    ...(backup === undefined ? {} : { backup: isFolder(backup) ? resolve(backup) : backup }),
    ...(backupPassphraseFile === undefined ? {} : { backupPassphraseFile: resolve(backupPassphraseFile) }),
    ...(backupEnvironment === undefined ? {} : { backupEnvironment: resolve(backupEnvironment) }),
    ...(postgresBackupEnvironment === undefined
      ? {}
      : { postgresBackupEnvironment: resolve(postgresBackupEnvironment) }),
    // A name without a folder is looked for on PATH.
    ...(restic === undefined ? {} : { restic: restic.includes("/") ? resolve(restic) : restic }),
    ...(pgbouncer === undefined ? {} : { pgbouncer: pgbouncer.includes("/") ? resolve(pgbouncer) : pgbouncer }),
  };
}

/** The options as arguments of `start`. */
export function startArguments(options: LocalOptions): string[] {
  const names = Object.keys(flags) as (keyof LocalOptions)[];
  return names.flatMap((name) => {
    const value = options[name];
    if (value === undefined || value === false) return [];
    if (value === true) return [flags[name]];
    return [value].flat().flatMap((one) => [flags[name], one]);
  });
}

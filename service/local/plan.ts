// What the options of `start` ask for, checked, and the service that they make.
import { randomBytes } from "node:crypto";
import { isIP } from "node:net";
import type { Tls } from "../http/connections.ts";
import type { IssuerFactory } from "../runtime/certificateIssuer.ts";
import type { ObjectStore } from "../runtime/cnpg/objectStore.ts";
import type { EngineFactory } from "../runtime/postgresEngine.ts";
import type * as Docker from "../runtime/docker/index.ts";
import type { ChallengeTarget } from "../runtime/kubernetes/challenges.ts";
import type * as Kubernetes from "../runtime/kubernetes/index.ts";
import { isIssuerUrl } from "../identity/issuerKeys.ts";
import { isResolver } from "../runtime/resolver.ts";
import type { RuntimeFactory } from "../runtime/runtime.ts";
import { prepareFolder } from "../store/prepareFolder.ts";
import { createService, type Service, type ServiceOptions } from "../service.ts";
import { dataIdOf } from "../store/dataId.ts";
import { readCertificate } from "./certificate.ts";
import { clearPending, readPending, type Pending } from "../backup/pending.ts";
import type { Backups } from "../backup/backups.ts";
import { backupsOf } from "./backupOptions.ts";
import { parseListen, type Address } from "./listen.ts";
import { Log } from "./log.ts";
import { readFile } from "./files.ts";
import type { SignInFactory } from "../identity/person.ts";
import { clustersOf } from "./kubeconfigs.ts";
import { dataFolder, optionOf, type LocalOptions } from "./options.ts";
import { Problem } from "./problem.ts";
import { drainOf, portOf, proxyOf } from "./proxyOptions.ts";
import { periodOf } from "./period.ts";
import { postgresStoreOf } from "./postgresBackup.ts";
import { isPublic, reachedOf, type Reached } from "./reached.ts";
import { readRegions } from "./regionsFile.ts";
import { noSockets, type Sockets } from "./sockets.ts";
import { startTracing } from "./tracing.ts";

/** Options of `start`, with the address to listen at. */
export type StartOptions = LocalOptions & { readonly listen: string };

/** A service that is about to start. */
export interface Plan {
  readonly options: StartOptions;
  readonly folder: string;
  readonly address: Address;
  readonly admin: Address | undefined;
  /** Ports of the proxy. */
  readonly ports: { readonly http: number; readonly https: number };
  /** How other computers reach the proxy. */
  readonly reached: Reached;
  /** Sockets that were given to this process. */
  readonly sockets: Sockets;
  /** Milliseconds that clients get at the end. */
  readonly drainMs: number;
  readonly tls: Tls | undefined;
  readonly log: Log;
  /** For how many milliseconds the log of several members is kept. */
  readonly keepMs: number;
  /** How much history is kept. */
  readonly history: NonNullable<ServiceOptions["history"]>;
  readonly backups: Backups;
  /** Creates the service, once, with further options. Connects to what runs its Machines. */
  create(more?: Partial<ServiceOptions>): Promise<Created>;
}

/** A service that does not listen yet. */
export interface Created {
  readonly service: Service;
  /** Sends the last spans. */
  readonly closeTracing: () => Promise<void>;
}

/** Checks the options. Throws a Problem for the first that is wrong. */
export async function planOf(options: StartOptions, sockets: Sockets = noSockets): Promise<Plan> {
  const folder = dataFolder(options.data);
  const address = parseListen(options.listen);
  const admin = options.admin === undefined ? undefined : parseListen(options.admin, "--admin");
  if (admin?.loopback === false)
    throw new Problem(
      `--admin needs an address that only this computer can reach, got ${JSON.stringify(options.admin)}`,
    );
  const [http, https] = isPublic(options, sockets) ? [80, 443] : [4281, 4282];
  const ports = {
    http: portOf(options.http, "--http", http),
    https: portOf(options.https, "--https", https),
  };
  const reached = reachedOf(options, sockets);
  const proxy = proxyOf(options);
  const drainMs = drainOf(options.drain);
  const signIn = await signInOf(options);
  const tls = readCertificate(options.tlsCert, options.tlsKey);
  if (!address.loopback && !options.allowRemote && !tls) {
    throw new Problem(
      `${options.listen} can be reached from other computers, and the service speaks plain HTTP; add --tls-cert and --tls-key, or --allow-remote if that is what you want`,
    );
  }
  if (options.ingressClass !== undefined && options.runtime !== "kubernetes")
    throw new Problem("--ingress-class needs --runtime kubernetes: other runtimes have no Ingresses");
  if (options.kubeconfig !== undefined && options.runtime !== "kubernetes")
    throw new Problem("--kubeconfig needs --runtime kubernetes: other runtimes use no cluster");
  if (options.postgres === "cnpg" && options.runtime !== "kubernetes")
    throw new Problem("--postgres cnpg needs --runtime kubernetes: CloudNativePG runs in that cluster");
  if (options.postgresCatalog !== undefined && options.postgres !== "cnpg")
    throw new Problem("--postgres-catalog needs --postgres cnpg: other engines run no images");
  const postgresStore = postgresStoreOf(options);
  requireOneCluster(options);
  const issuer = await acmeIssuer(options);
  const challengeTarget = challengeTargetOf(options);
  requireCertManager(options);
  const dns = dnsOf(options);
  requireDockerFor(options);
  const regions: Pick<ServiceOptions, "regions" | "nearest"> =
    options.regions === undefined ? {} : readRegions(options.regions);
  const clusters = options.kubeconfig && clustersOf(options.kubeconfig, regions.regions);
  const keepMs = periodOf(options.keepLog ?? "24h", "--keep-log");
  const history = historyOf(options.keepHistory);
  const backups = backupsOf(options, folder);
  const pending = pendingOf(options, folder);
  for (const name of ["keyFile", "advertise", "keepLog"] as const)
    if (options.store === undefined && options[name] !== undefined)
      throw new Problem(`${optionOf(name)} needs --store: one process has its data in a folder`);
  const log = new Log(folder);
  const create = async (more: Partial<ServiceOptions> = {}): Promise<Created> => {
    // Loaded only when it is used: it has many modules.
    const docker = options.runtime === "docker" ? await import("../runtime/docker/index.ts") : undefined;
    const cluster =
      options.runtime === "kubernetes"
        ? await kubernetes(folder, options, { clusters, challengeTarget, postgresStore })
        : undefined;
    const runtime = docker ? await dockerRuntime(docker, options) : cluster?.runtime;
    const postgres = cluster?.postgres ?? (await postgresEngine(options, folder, await docker?.machinesReach()));
    const tracing = await startTracing(options.otlpEndpoint, ({ message }) =>
      service.app.log.warn({ reason: message }, "spans could not be sent"),
    );
    const service = createService({
      data: folder,
      log,
      delays: options.delays ?? "believable",
      rateLimits: options.rateLimits ?? "off",
      strict: options.strict ?? false,
      console: options.console ?? "read",
      ...(signIn ? { signIn } : {}),
      history,
      ...(runtime ? { runtime } : {}),
      ...(postgres ? { postgres } : {}),
      ...(issuer ? { issuer } : {}),
      ...(dns === "simulated" ? {} : { dns }),
      ...regions,
      ...(tls ? { tls } : {}),
      proxy,
      publicNames: reached.names,
      ...(reached.trusted ? { trustProxy: reached.trusted } : {}),
      allowHosts: options.allowHosts ?? (address.loopback ? [] : "any"),
      onRequest: (seen) => service.app.log.info(seen, "request"),
      backups,
      ...(pending ? { restored: pending } : {}),
      ...more,
    });
    if (pending) {
      await service.context.store.unsettled;
      clearPending(folder);
    }
    return { service, closeTracing: async () => tracing?.close() };
  };
  return {
    options,
    folder,
    address,
    admin,
    ports,
    reached,
    sockets,
    drainMs,
    tls,
    log,
    keepMs,
    history,
    backups,
    create,
  };
}

const ofDocker = ["registries", "capabilities", "reach"] as const;

function requireDockerFor(options: LocalOptions): void {
  if (options.runtime === "docker") return;
  const given = ofDocker.find((name) => options[name] !== undefined);
  if (given !== undefined)
    throw new Problem(`--${given} needs --runtime docker: other runtimes have no containers of this service`);
}

/** The runtime on a container engine, with what the operator allows Machines. */
async function dockerRuntime(
  { dockerRuntime: connect, EngineError, wallProblem }: typeof Docker,
  { registries, capabilities, reach }: LocalOptions,
): Promise<RuntimeFactory> {
  const walls = { registries, capabilities, reach };
  const problem = wallProblem(walls);
  if (problem !== undefined) throw new Problem(problem);
  return connect(walls).catch((error: unknown) => {
    throw error instanceof EngineError ? new Problem(error.message) : error;
  });
}

/**
 * The runtime on a Kubernetes cluster, and the engine of Postgres clusters if it is there too. A process alone waits until no other service acts for the same data; of several members only
 * the leader creates it, and its leadership replaces the lease.
 */
async function kubernetes(
  folder: string,
  { ingressClass, clusterIssuer, store, postgres, postgresCatalog: catalog }: LocalOptions,
  {
    clusters,
    challengeTarget,
    postgresStore,
  }: Pick<Kubernetes.KubernetesRuntimeOptions, "clusters" | "challengeTarget"> & {
    readonly postgresStore: ObjectStore | undefined;
  },
): Promise<{ readonly runtime: RuntimeFactory; readonly postgres?: EngineFactory }> {
  const module = await import("../runtime/kubernetes/index.ts").catch((error: unknown) => {
    const isMissing = error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";
    throw isMissing
      ? new Problem(
          "--runtime kubernetes needs a package beside machines-service: npm install @kubernetes/client-node@2",
        )
      : error;
  });
  const lease = store === undefined ? { lease: leaseOf(module, folder) } : {};
  try {
    if (clusters) return { runtime: await module.kubernetesRuntime({ ingressClass, clusters, ...lease }) };
    const cluster = module.Cluster.of();
    await cluster.connect();
    // Before the lease: a service that cannot start must not take it.
    const engine =
      postgres === "cnpg"
        ? {
            postgres: (await import("../runtime/cnpg/index.ts")).cnpgPostgres(cluster, {
              catalog,
              store: postgresStore,
            }),
          }
        : {};
    const runtime = await module.kubernetesRuntime({ cluster, ingressClass, clusterIssuer, challengeTarget, ...lease });
    return { runtime, ...engine };
  } catch (error) {
    throw error instanceof module.ClusterError ? new Problem(error.message) : error;
  }
}

function leaseOf({ holderOf }: typeof Kubernetes, folder: string) {
  const name = `machines-service-${dataIdOf(prepareFolder(folder), randomBytes)}`;
  return {
    name,
    holder: holderOf(folder),
    waiting: (holder: string) => printError(`waits for ${holder}, which acts for the same data (lease ${name})`),
    lost: (reason: string) => {
      printError(`has lost its lease ${name}, and ends: ${reason}`);
      // At once: another service may act already.
      process.exit(1);
    },
  };
}

const printError = (text: string): void => void process.stderr.write(`machines-service ${text}\n`);

/** The engine of Postgres clusters; undefined for the simulation. */
async function postgresEngine(
  { postgres, pgbouncer, runtime, backup }: LocalOptions,
  data: string,
  machinesReach: string | undefined,
): Promise<EngineFactory | undefined> {
  if (postgres !== "embedded") return undefined;
  if (runtime === "kubernetes")
    throw new Problem(
      "--postgres embedded cannot be combined with --runtime kubernetes: Pods do not reach its servers",
    );
  const { embeddedPostgres, PostgresError } = await import("../runtime/postgres/index.ts");
  // Containers continue to run while the service is stopped, and need their databases.
  const outlive = runtime === "docker";
  const keepsForBackups = backup !== undefined;
  return embeddedPostgres({ data, machinesReach, pgbouncer, outlive, keepsForBackups }).catch((error: unknown) => {
    throw error instanceof PostgresError ? new Problem(error.message) : error;
  });
}

/** The issuer that asks an ACME authority; undefined for the usual one. */
async function acmeIssuer({ acme, runtime }: LocalOptions): Promise<IssuerFactory | undefined> {
  if (acme === undefined) return undefined;
  if (runtime !== "docker" && runtime !== "kubernetes")
    throw new Problem(
      "--acme needs --runtime docker or kubernetes: the authority checks that hostnames lead to Machines",
    );
  if (!URL.canParse(acme) || new URL(acme).protocol !== "https:")
    throw new Problem(`--acme takes the https address of an ACME directory, got ${JSON.stringify(acme)}`);
  // Loaded only when it is used: it has many modules.
  const { acmeIssuer: create } = await import("../runtime/acme/index.ts");
  return create(acme);
}

/** Where a cluster reaches this service for the checks of an authority; undefined without one. */
function challengeTargetOf({
  acme,
  acmeAddress,
  runtime,
  tlsCert,
  ingressClass,
}: LocalOptions): ChallengeTarget | undefined {
  if (acme === undefined || runtime !== "kubernetes") {
    if (acmeAddress !== undefined)
      throw new Problem(
        "--acme-address needs --acme and --runtime kubernetes: elsewhere the proxy answers the authority",
      );
    return undefined;
  }
  if (ingressClass === "none") {
    if (acmeAddress !== undefined)
      throw new Problem(
        "--acme-address cannot be combined with --ingress-class none: the proxies answer the authority",
      );
    return "proxies";
  }
  if (acmeAddress === undefined)
    throw new Problem(
      "--acme with --runtime kubernetes needs --acme-address, where the cluster reaches this service: SERVICE:PORT of its own namespace, or IP:PORT",
    );
  if (tlsCert !== undefined)
    throw new Problem("--acme with --runtime kubernetes cannot be combined with --tls-cert: an authority asks by HTTP");
  const [, bracketed, plain = "", port = ""] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(acmeAddress) ?? [];
  const host = bracketed ?? plain;
  const isName = /^[a-z]([a-z\d-]{0,61}[a-z\d])?$/.test(host);
  if (Number(port) < 1 || Number(port) > 65535 || !(isName || isIP(host) > 0))
    throw new Problem(
      `--acme-address takes SERVICE:PORT or IP:PORT, such as machines-service:4280, got ${JSON.stringify(acmeAddress)}`,
    );
  return { host, port: Number(port) };
}

/** Refuses what needs all regions in one cluster. */
function requireOneCluster({ kubeconfig, postgres, acme, certificates }: LocalOptions): void {
  if (kubeconfig === undefined) return;
  const [given] = [
    postgres === "cnpg" ? "--postgres cnpg" : [],
    acme ? "--acme" : [],
    certificates ? "--certificates" : [],
  ].flat();
  if (given !== undefined)
    throw new Problem(`${given} cannot be combined with --kubeconfig: it needs all regions in one cluster`);
}

/** Refuses options of cert-manager that do not fit together. */
function requireCertManager({ certificates, clusterIssuer, acme, runtime }: LocalOptions): void {
  if (certificates === undefined) {
    if (clusterIssuer !== undefined)
      throw new Problem("--cluster-issuer needs --certificates cert-manager, which has ClusterIssuers");
    return;
  }
  if (runtime !== "kubernetes")
    throw new Problem("--certificates cert-manager needs --runtime kubernetes: it is a part of a cluster");
  if (acme !== undefined)
    throw new Problem("--certificates cert-manager cannot be combined with --acme: one of them issues");
  if (clusterIssuer === undefined)
    throw new Problem("--certificates cert-manager needs --cluster-issuer, the name of a ClusterIssuer of the cluster");
}

/** What reads the DNS. */
function dnsOf({ dns, acme, certificates }: LocalOptions): string {
  const chosen = dns ?? (acme === undefined && certificates === undefined ? "simulated" : "system");
  if (chosen === "simulated" || chosen === "system" || isResolver(chosen)) return chosen;
  throw new Problem(
    `--dns takes simulated, system, or the address of a resolver such as 127.0.0.1:53, got ${JSON.stringify(dns)}`,
  );
}

/** What a backup had that was restored into this folder; undefined once the service has taken it. */
function pendingOf(
  { runtime = "simulated", postgres = "simulated" }: LocalOptions,
  folder: string,
): Pending | undefined {
  const pending = readPending(folder);
  const given = { runtime, postgres };
  for (const name of ["runtime", "postgres"] as const)
    if (pending && (pending[name] ?? given[name]) !== given[name])
      throw new Problem(
        `--${name} ${given[name]}: the backup that was restored into ${folder} has --${name} ${pending[name]}`,
      );
  return pending;
}

/** How much history is kept. */
function historyOf(text: string | undefined): NonNullable<ServiceOptions["history"]> {
  if (text === "off") return "off";
  return text === undefined ? {} : { ageMs: periodOf(text, "--keep-history", ", or off") };
}

/** The provider at which people sign in; undefined without one. */
async function signInOf(options: LocalOptions): Promise<SignInFactory | undefined> {
  const { oidcIssuer: issuer, oidcClient: clientId, oidcSecretFile: secretFile, console: mode } = options;
  if (issuer === undefined) {
    const names = ["oidcClient", "oidcSecretFile", "oidcGroups", "oidcScope"] as const;
    const given = names.find((name) => options[name] !== undefined);
    if (given !== undefined)
      throw new Problem(`${optionOf(given)} needs --oidc-issuer, the provider at which people sign in`);
    return undefined;
  }
  if (mode === "off") throw new Problem("--oidc-issuer needs a console, and --console is off");
  if (!isIssuerUrl(issuer))
    throw new Problem(`--oidc-issuer takes the https address of a provider, got ${JSON.stringify(issuer)}`);
  if (clientId === undefined)
    throw new Problem("--oidc-issuer needs --oidc-client, the id of this service at the provider");
  if (secretFile !== undefined) readFile("--oidc-secret-file", secretFile);
  const scope = options.oidcScope ?? "openid profile email";
  if (!/(^| )openid( |$)/.test(scope))
    throw new Problem(`--oidc-scope takes scopes with openid among them, got ${JSON.stringify(scope)}`);
  // Loaded only when it is used.
  const { openIdSignIn } = await import("../identity/signIn.ts");
  return openIdSignIn({ issuer, clientId, secretFile, groupsClaim: options.oidcGroups ?? "groups", scope });
}

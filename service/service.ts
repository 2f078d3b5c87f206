// Assembles the service. A test runs it inside its own process; the command (main.ts) makes it listen.
import type { RequestListener, Server } from "node:http";
import type { Socket } from "node:net";
import type { DatabaseSync } from "node:sqlite";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { addRoutes, createServer, record, type AppOptions, type LogStream, type Seen } from "./http/app.ts";
import { senderOf } from "./http/authenticate.ts";
import { Audit, consoleKept } from "./http/audit.ts";
import { connectionLimits, mostHeld, type ConnectionLimits, type Tls } from "./http/connections.ts";
import { addClusterRoutes } from "./console/clusterRoutes.ts";
import { addSignInRoutes } from "./console/signInRoutes.ts";
import type { SignInFactory } from "./identity/person.ts";
import { addRevealRoutes } from "./console/reveal.ts";
import { addSessionRoutes } from "./console/sessionRoutes.ts";
import { Sessions, type ConsoleMode } from "./console/sessions.ts";
import { addCodeRoutes } from "./console/codeRoutes.ts";
import { Faults } from "./faults/faults.ts";
import { hostsOf, type HostParts } from "./hosts.ts";
import { History, type Bounds, type SharedOptions } from "./history/history.ts";
import { createIds, systemRandom, type RandomBytes } from "./ids.ts";
import { MovableClock, systemClock, type Clock } from "./time/clock.ts";
import { followClock, followSince } from "./lifecycle/clockJump.ts";
import { recreateLost, type Lost } from "./lifecycle/lost.ts";
import { takeRestored, type Restored } from "./lifecycle/restored.ts";
import { recoverCertificates } from "./lifecycle/certificates.ts";
import { recoverOwnCertificates } from "./lifecycle/ownCertificates.ts";
import * as clusters from "./lifecycle/clusters.ts";
import { delayProfiles, type DelayProfile, type Delays } from "./time/delays.ts";
import { timerHandlers } from "./lifecycle/timerHandlers.ts";
import { Timers } from "./time/timers.ts";
import * as volumes from "./lifecycle/volumes.ts";
import { Waits } from "./time/waits.ts";
import { Metrics } from "./http/metrics.ts";
import type { Changes } from "./console/changes.ts";
import { sendPage } from "./console/page.ts";
import type { Past } from "./console/past.ts";
import { addConsole } from "./console/routes.ts";
import { addExchangeRoute } from "./http/exchangeRoute.ts";
import { addHistoryRoutes } from "./http/historyRoutes.ts";
import { addFeedRoutes } from "./http/feedRoutes.ts";
import { addLocalRoutes } from "./http/localRoutes.ts";
import { addTerminals } from "./http/terminals.ts";
import { throughProxy } from "./http/throughProxy.ts";
import { addMetaRoutes } from "./http/metaRoutes.ts";
import { proxyLimits, type ProxyLimits } from "./proxy/limits.ts";
import { Autostop } from "./proxy/autostop.ts";
import { Feed } from "./proxy/feed.ts";
import { OwnNames } from "./proxy/ownNames.ts";
import { Proxy } from "./proxy/proxy.ts";
import { RequestQuotas } from "./http/requestQuotas.ts";
import { RateLimits, type RateLimitProfile } from "./http/rateLimits.ts";
import { simulatedIssuer, type IssuerFactory } from "./runtime/certificateIssuer.ts";
import { Draining } from "./runtime/draining.ts";
import { LocalAuthority } from "./runtime/localAuthority.ts";
import { localIssuer } from "./runtime/localIssuer.ts";
import { Networks } from "./runtime/networks.ts";
import { createResolver } from "./runtime/resolver.ts";
import type { EngineFactory } from "./runtime/postgresEngine.ts";
import { SimulatedPostgres } from "./runtime/simulatedPostgres.ts";
import { capacityOf, nearest, regions, type Capacity, type Region } from "./runtime/regions.ts";
import type { Runtime, RuntimeFactory } from "./runtime/runtime.ts";
import { SimulatedRuntime } from "./runtime/simulated.ts";
import { isCopy } from "./replication/changes.ts";
import type { GroupLog } from "./replication/groupLog.ts";
import { copyOfStore, requireHere, requireWhole, Store, storeFile } from "./store/database.ts";
import { lastWritten } from "./store/lastWritten.ts";
import { lockData, type Held } from "./store/lock.ts";
import { requireRestored } from "./store/restoring.ts";
import { Mark } from "./store/mark.ts";
import { readAhead } from "./store/readAhead.ts";
import { BoundedCache, RowCache } from "./store/rowCache.ts";
import { prepareFolder } from "./store/prepareFolder.ts";
import { currentToken, firstToken } from "./store/tokenFile.ts";
import { Tokens } from "./store/tokens.ts";
import { openVault } from "./store/vault.ts";
import { recordWriter } from "./store/writer.ts";
import { FairTurns } from "./time/fairTurns.ts";
import { Usage } from "./usage/usage.ts";
import type { BackupStatus, Context, PublicNames } from "./context.ts";
import { Counted } from "./watch/byApp.ts";
import type { Measured } from "./watch/exposition.ts";

/** Options of a service; all are optional. */
export interface ServiceOptions {
  /** Folder of the data, or `":memory:"`, which is the default. */
  readonly data?: string;
  readonly clock?: Clock;
  /** Randomness behind every identifier, nonce and token. */
  readonly random?: RandomBytes;
  /** Name of a set of delays, or the delays themselves. Default: `believable`. */
  readonly delays?: DelayProfile | Delays;
  /** Refuses unknown fields, and checks the service's own answers. */
  readonly strict?: boolean;
  /** Whether requests are limited as the platform documents. Default: `off`. */
  readonly rateLimits?: RateLimitProfile;
  /** Certificate and key for HTTPS. Default: plain HTTP. */
  readonly tls?: Tls;
  /** Limits of connections that differ from the defaults. */
  readonly connections?: Partial<ConnectionLimits>;
  /** Limits of the proxy that differ from the defaults. */
  readonly proxy?: Partial<ProxyLimits>;
  /** Runs the Machines. Default: a simulation. */
  readonly runtime?: RuntimeFactory;
  /** Runs the Postgres clusters. Default: a simulation. */
  readonly postgres?: EngineFactory;
  /** Issues certificates. Default: the service's own authority, or a simulation with a runtime whose Machines cannot be reached. */
  readonly issuer?: IssuerFactory;
  /** What reads the DNS: `system` for the resolvers of this computer, or the address of a resolver. Default: a simulation. */
  readonly dns?: string;
  /** Capacities of regions, by code, that differ from the defaults: for all kinds of Machines together, or for each. */
  readonly capacity?: Readonly<Record<string, number | Partial<Capacity>>>;
  /** The regions. Default: those of the platform. */
  readonly regions?: readonly Region[];
  /** Code of the region nearest to every caller. Default: `ams`. */
  readonly nearest?: string;
  /** Host names allowed in addition to those of this computer; `"any"` allows all. */
  readonly allowHosts?: readonly string[] | "any";
  /** The names at which other computers reach the service and its Apps, by its proxy. Default: none. */
  readonly publicNames?: PublicNames;
  /** Networks of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` count. Default: none. */
  readonly trustProxy?: readonly string[];
  /** Receives the log lines. Default: none are written. */
  readonly log?: LogStream;
  /** Records 100,000 requests from the start. Default: 10,000 for the console; 100,000 once there is an admin listener. */
  readonly audit?: boolean;
  /** How much history is kept. Default: a million entries and 90 days; 10,000 entries in memory. `off`: none. */
  readonly history?: Partial<Bounds> | "off";
  /** Whether there is a console at `/`, and whether it may also operate Machines. Default: `read`. */
  readonly console?: ConsoleMode;
  /** The provider at which people sign in to the console. Default: none. */
  readonly signIn?: SignInFactory;
  /** Makes it the leader of several members, which has its folder already. */
  readonly leading?: LeadingOptions;
  /** What is known of its backups. */
  readonly backups?: BackupStatus | undefined;
  /** What a backup had that was restored into its folder, at the first start. */
  readonly restored?: Restored | undefined;
  /** Called after every answered request. */
  readonly onRequest?: (request: Seen) => void;
}

/** What the leader of several members gets from its process. */
export interface LeadingOptions {
  /** Makes every transaction of its store durable, before it is acknowledged. */
  readonly log: (db: DatabaseSync) => GroupLog;
  /** The lock of the folder, which the service releases at its end. */
  readonly lock: Held;
  /** Identifies the leadership, for the console. */
  readonly run: string;
  /** Passes requests to the handler, and returns a server that need not listen. Default: a server of its own. */
  readonly serve?: ((handler: RequestListener) => Server) | undefined;
  /** Metrics of the member. */
  readonly metrics?: (() => readonly Measured[]) | undefined;
  /** The store at past moments, for the console. */
  readonly past?: Past | undefined;
  /** The history that members share. */
  readonly history?: SharedOptions | undefined;
  /** What was lost, and is created again here. */
  readonly lost?: Lost | undefined;
  /** Resolves when the requests that were passed are answered. */
  readonly idle?: (() => Promise<void>) | undefined;
}

/** A service that runs inside this process. */
export interface Service {
  /** Call `app.listen` to accept connections, or `app.inject` to send a request without one. */
  readonly app: FastifyInstance;
  /** Token of the organization `personal`. */
  readonly token: string;
  readonly faults: Faults;
  /** The recorded requests. */
  readonly audit: Audit;
  /** Counts requests; `limited` is the number of refused ones. */
  readonly rateLimits: RateLimits;
  /** Measures what runs. */
  readonly usage: Usage;
  readonly context: Context;
  /** Makes services of Machines reachable on this computer; undefined with a runtime whose Machines cannot be reached. */
  readonly proxy: Proxy | undefined;
  /** Folder of the data; undefined in memory. */
  readonly folder: string | undefined;
  /** Identifies this run of the service. */
  readonly run: string;
  /** A one-time code that opens the console, as in `/#code=…`, within five minutes. Throws if there is no console. */
  consoleCode(): string;
  /**
   * Ends held requests and the streams of the service itself. Clients get the answers to what they have sent, for that time at most,
   * and then no connection is left. The caller accepts no more connections before.
   */
  drain(limitMs: number): Promise<void>;
  /** Ends held requests, gives the others three seconds to finish, and releases the data folder. */
  close(): Promise<void>;
}

// ASSUMED: requests that have begun may take three more seconds after the service begins to close.
const closingMs = 3000;

/** Creates a service. Throws a StoreError when the data folder cannot be used. */
export function createService(options: ServiceOptions = {}): Service {
  const {
    data = ":memory:",
    clock: baseClock = systemClock(),
    random = systemRandom(),
    delays = "believable",
    allowHosts = [],
  } = options;
  const clock = new MovableClock(baseClock);
  const folder = data === ":memory:" ? undefined : prepareFolder(data);
  const { leading } = options;
  const lock = leading?.lock ?? (folder === undefined ? undefined : lockData(folder));
  try {
    // Files have the time of the computer.
    const written = folder === undefined || leading || options.clock ? undefined : lastWritten(storeFile(folder));
    if (folder !== undefined && !leading) requireHere(folder);
    if (folder !== undefined && !leading) requireRestored(folder);
    // That of a member is open in this process already.
    if (folder !== undefined && !leading) readAhead(storeFile(folder));
    const store = new Store(folder === undefined ? ":memory:" : storeFile(folder), leading?.log);
    if (!leading && isCopy(store.db)) throw copyOfStore(data);
    // A copy has been read from the log.
    if (folder !== undefined && !leading) requireWhole(store, storeFile(folder));
    store.writeAtOnce(() => recordWriter(store.db));
    const boot = Buffer.from(random(4)).toString("hex");
    const run = leading?.run ?? boot;
    let count = 0;
    let isClosing = false;
    // Only Machines of the simulation are never reached.
    const limits = connectionLimits(options.connections, options.runtime !== undefined);
    const requestId = (): string => `${boot}-${(++count).toString(36).padStart(6, "0")}`;
    const app = createServer({ log: options.log, requestId, tls: options.tls, limits, serve: leading?.serve });
    const draining = new Draining();
    draining.watch(app.server);
    app.server.prependListener("connection", (socket: Socket) => draining.take(socket));
    const waits = new Waits(clock, mostHeld(limits));
    // A copy is replaced when it is behind.
    const mark = folder === undefined || leading ? undefined : new Mark(store, storeFile(folder));
    const authority = new LocalAuthority(folder);
    const context = createContext({
      ...{ options, store, folder, authority, clock, random, waits, mark, log: app.log },
      delays: typeof delays === "string" ? delayProfiles[delays] : delays,
      proxy: () => proxy,
      feed: () => feed,
      changes: () => changes,
      audit: () => audit,
    });
    const { reach } = context.runtime;
    const own = throughProxy(app, limits);
    const trusted = options.trustProxy && new Networks(options.trustProxy);
    const feed: Feed | undefined = reach && new Feed(context, reach, run, (machine) => proxy?.loadedElsewhere(machine));
    const proxy: Proxy | undefined =
      reach &&
      feed &&
      new Proxy(context, reach, authority, folder, proxyLimits(options.proxy), {
        ...{ own, trusted },
        power: (targets) => new Autostop(context, targets, feed.replicas),
        names: (targets) => new OwnNames(context, authority, targets),
      });
    const usage = new Usage(context, proxy?.traffic);
    const token = firstToken(store, folder, {
      ids: context.ids,
      now: clock.now(),
      isShared: leading !== undefined,
    });
    const faults = new Faults();
    const audit = new Audit();
    const mode = options.console ?? "read";
    if (options.audit) audit.keep();
    if (mode !== "off") audit.keep(consoleKept);
    const rateLimits = new RateLimits(clock, options.rateLimits ?? "off", new RequestQuotas(context));
    const metrics = new Metrics({
      ...{ context, folder, proxy },
      faults: () => faults.met,
      limited: () => rateLimits.limited,
      loads: () => usage.loads,
      member: leading?.metrics,
    });
    const strict = options.strict ?? false;
    const tokens = new Tokens(store);
    const now = (): number => clock.now();
    const signing = {
      vault: context.vault,
      tokens,
      clock: baseClock,
      now,
      random,
      cookie: leading ? context.dataId : (folder ?? ""),
      folder,
      run,
      firstToken: () => (folder === undefined ? token : currentToken(store, folder)),
    };
    const sessions = mode === "off" ? undefined : new Sessions({ ...signing, mode });
    const hostname = [options.publicNames?.hostname ?? []].flat();
    const appOptions: AppOptions = {
      context,
      tokens,
      sessions,
      faults,
      rateLimits,
      audit,
      metrics,
      strict,
      allowedHosts: allowHosts === "any" ? undefined : new Set([...namesIn(allowHosts), ...hostname]),
      trusted,
      seen: options.onRequest ?? (() => {}),
    };
    addRoutes(app, appOptions);
    addMetaRoutes(app, {
      context,
      metrics,
      folder,
      strict,
      closing: () => isClosing,
      console: sessions && sendPage,
    });
    const isValid = (request: FastifyRequest): boolean =>
      senderOf({ context, tokens, sessions }, request) !== undefined;
    addLocalRoutes(app, context, proxy, isValid);
    addFeedRoutes(app, context, feed, proxy?.traffic, isValid);
    addTerminals(app, context, { isValid, record: (request, noted) => record(appOptions, request, noted) });
    addHistoryRoutes(app, context);
    addExchangeRoute(app, context, tokens);
    const changes: Changes | undefined =
      sessions &&
      addConsole(app, {
        ...{ context, audit, faults, proxy, usage, run, past: leading?.past },
        mayFault: ({ session }) => session?.isOperator === true && faults.isOpen,
        isValid,
      });
    if (sessions) addSessionRoutes(app, { context, sessions, clock: baseClock, hasPast: leading?.past !== undefined });
    if (sessions)
      addSignInRoutes(app, {
        ...{ sessions, vault: context.vault, clock: baseClock },
        signIn: options.signIn?.(context),
      });
    if (sessions) addRevealRoutes(app, context);
    if (sessions) addClusterRoutes(app, context);
    if (sessions) addCodeRoutes(app, context, folder);
    const notFollowed = (error: unknown): void =>
      app.log.error({ err: error }, "the clock of this computer was set, and the service cannot follow it yet");
    if (written !== undefined) followSince(context, written).catch(notFollowed);
    context.timers.arm();
    usage.start();
    const unwatch = clock.onJump((ms) => void followClock(context, ms).catch(notFollowed));
    const notKept = (error: unknown): void => app.log.error({ err: error }, "volumes");
    store.write(() => volumes.keepAll(context)).catch(notKept);
    const notBegun = (error: unknown): void =>
      app.log.error({ err: error }, "what was lost could not be created again");
    // Before the runtime looks at what runs. The member waits until it is durable.
    const { lost } = leading ?? {};
    if (lost) store.write(() => recreateLost(context, lost)).catch(notBegun);
    const { restored } = options;
    if (restored) store.write(() => takeRestored(context, restored)).catch(notBegun);
    context.runtime.recover?.();
    context.postgres.recover?.();
    store
      .write(() => {
        recoverCertificates(context);
        recoverOwnCertificates(context);
      })
      .catch((error: unknown) => app.log.error({ err: error }, "certificates"));
    let closing: Promise<void> | undefined;
    const storeUse = async (): Promise<void> => {
      if (tokens.isUsed) await store.write(() => tokens.storeUse(store));
    };
    const useNotStored = (error: unknown): void => app.log.warn({ err: error }, "when tokens were used is not stored");
    // ASSUMED: when a token was last used is known to a minute.
    const storingUse = setInterval(() => void storeUse().catch(useNotStored), 60_000).unref();
    const end = async (): Promise<void> => {
      clearInterval(storingUse);
      context.waits.close();
      feed?.close();
      const giveUp = setTimeout(() => app.server.closeAllConnections(), closingMs);
      await app.close();
      // The log of several members may not answer, and the end must not wait for it.
      if (!leading) await storeUse().catch(useNotStored);
      await leading?.idle?.();
      clearTimeout(giveUp);
      metrics.close();
      await usage.close();
      await proxy?.close();
      context.timers.disarm();
      unwatch();
      await context.issuer.close?.();
      await context.runtime.close?.();
      await context.postgres.close?.();
      store.close();
      await context.history.close();
      mark?.close();
      lock?.release();
    };
    const drain = async (limitMs: number): Promise<void> => {
      isClosing = true;
      context.waits.close();
      feed?.close();
      // Its streams end, and its other requests are still answered.
      await Promise.all([app.close(), draining.begin(limitMs), proxy?.drain(limitMs)]);
      app.server.closeAllConnections();
    };
    const consoleCode = (): string => {
      if (!sessions) throw new Error("the service has no console: its option `console` is off");
      return sessions.code();
    };
    return {
      ...{ app, token, faults, rateLimits, usage, audit, context, proxy, folder, run, consoleCode, drain },
      close: () => {
        isClosing = true;
        return (closing ??= end());
      },
    };
  } catch (error) {
    lock?.release();
    throw error;
  }
}

const simulated: RuntimeFactory = (host): Runtime => new SimulatedRuntime(host);
const simulatedPostgres: EngineFactory = (host) => new SimulatedPostgres(host);

const namesIn = (hosts: readonly string[] | "any"): string[] =>
  hosts === "any" ? [] : hosts.map((host) => host.toLowerCase());

const mi = 2 ** 20;
/** Weight of a cached row in characters, without its texts. */
const rowWeight = 600;

// Finds a value that only the vault's key can decrypt.
const sealedAnything = `SELECT 1 FROM secrets UNION ALL SELECT 1 FROM secret_keys UNION ALL SELECT 1 FROM database_users
  UNION ALL SELECT 1 FROM hostnames WHERE custom_key IS NOT NULL OR issued_key IS NOT NULL
  UNION ALL SELECT 1 FROM own_certificates WHERE key IS NOT NULL
  UNION ALL SELECT 1 FROM secret_sets LIMIT 1`;

/** The parts that a context is made from. The functions return parts that need the context themselves. */
interface Parts extends Omit<HostParts, "timers" | "resolver" | "context"> {
  readonly options: ServiceOptions;
  readonly waits: Waits;
  readonly mark: Mark | undefined;
  readonly changes: () => Changes | undefined;
  readonly audit: () => Audit;
}

function createContext(parts: Parts): Context {
  const { options, store, folder, authority, clock, random, delays, log, waits, mark, proxy, feed, changes, audit } =
    parts;
  const lastEvent = store.get<{ id: string | null }>("SELECT max(id) AS id FROM events")?.id ?? undefined;
  const lastVersion =
    store.get<{ id: string | null }>("SELECT max(version) AS id FROM machine_versions")?.id ?? undefined;
  const timers = new Timers(
    store,
    clock,
    (kind, subject, data) => timerHandlers[kind](context, subject, data),
    (error, kind) => log.error({ err: error, kind }, "a timer failed"),
  );
  const withCapacity = (options.regions ?? regions).map((region): [string, Region] => [
    region.code,
    { ...region, capacity: capacityOf(options.capacity?.[region.code] ?? region.capacity) },
  ]);
  const history = new History({
    folder,
    bounds: options.history,
    now: () => clock.now(),
    failed: (reason) => log.error({ reason }, "the history"),
    shared: options.leading?.history,
  });
  const resolver = options.dns === undefined ? undefined : createResolver(options.dns);
  const hosts = hostsOf({ ...parts, timers, resolver, context: () => context });
  const runtime = (options.runtime ?? simulated)(hosts.runtime);
  const usualIssuer = runtime.reach ? localIssuer(authority, hosts.issuer) : simulatedIssuer(hosts.issuer);
  const context: Context = {
    store,
    clock,
    random,
    ids: createIds(random, [lastEvent, lastVersion].sort().at(-1)),
    delays,
    timers,
    waits,
    turns: new FairTurns(),
    runtime,
    get dataId() {
      return hosts.runtime.dataId;
    },
    get loopbackBlock() {
      return proxy()?.block;
    },
    get proxyPorts() {
      return proxy()?.ports;
    },
    postgres: (options.postgres ?? simulatedPostgres)(hosts.engine),
    issuer: (options.issuer ?? runtime.issuer)?.(hosts.issuer) ?? usualIssuer,
    resolver,
    vault: openVault(folder, random, store.get(sealedAnything) !== undefined),
    regions: new Map(withCapacity),
    nearest: options.nearest ?? nearest,
    machineTexts: new BoundedCache(store, (text) => text.length, 32 * mi),
    configs: new BoundedCache(store, ({ weight }) => weight, 16 * mi),
    appRows: new RowCache(store, (app) => rowWeight + app.network.length + (app.role?.length ?? 0), 8 * mi),
    machineRows: new BoundedCache(
      store,
      (machine) => rowWeight + machine.image_ref.length + (machine.metadata?.length ?? 0),
      16 * mi,
    ),
    ownNames: new Set(namesIn(options.allowHosts ?? [])),
    publicNames: options.publicNames ?? {},
    counted: new Counted(store),
    history,
    backups: options.backups,
    log,
    note: (what) => {
      const add = (): void => audit().addNote(what, clock.now());
      if (store.unsettled) store.unsettled.then(add, () => {});
      else add();
    },
  };
  store.hooks = {
    beforeCommit() {
      timers.runDue();
      mark?.count(clock.elapsed());
    },
    afterCommit(touched) {
      mark?.write();
      timers.arm();
      waits.wake(touched);
      changes()?.committed(touched);
      proxy()?.changed(touched);
      feed()?.changed(touched);
      runtime.changed?.(touched);
      if (runtime.databasesChanged && [...touched].some((id) => clusters.findCluster(context, id)))
        runtime.databasesChanged();
    },
  };
  return context;
}

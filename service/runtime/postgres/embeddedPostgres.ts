// The engine with real servers: each cluster is a PostgreSQL server on this computer. A call only says that a cluster has changed.
// The engine then compares what the store wants with what is there, does the next step and reports it, also after a kill.
import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import {
  isOffered,
  type Cluster,
  type ClusterArchives,
  type ClusterChange,
  type ClusterLog,
  type Endpoints,
  type EngineHost,
  type NewCluster,
  type PostgresEngine,
} from "../postgresEngine.ts";
import { installCommand, type Binaries } from "./binaries.ts";
import type { Connect } from "./access.ts";
import { completeLog, copyServer, copyWithChanges, draftFrom, keepChanges, markNow, pruneChanges } from "./copies.ts";
import { readSmall } from "./files.ts";
import { initialize } from "./initialize.ts";
import type { Installation } from "./installation.ts";
import { endMoved } from "./moved.ts";
import { pathsOf, type Paths } from "./paths.ts";
import type { PoolerProgram } from "./pooler.ts";
import { Poolers } from "./poolers.ts";
import { reasonOf } from "../../reasonOf.ts";
import { isLost, PostgresError } from "./postgresError.ts";
import * as queries from "./queries.ts";
import { endRecovery } from "./recovery.ts";
import type { Session } from "./sessions.ts";
import * as servers from "./server.ts";
import { endedBy, ServerEngine, type ReadyServer } from "./serverEngine.ts";
import * as users from "./users.ts";

/** Options of the engine. */
export interface EmbeddedOptions extends Installation {
  /** Folder of all clusters. */
  readonly folder: string;
  /** The installed versions. */
  readonly versions: ReadonlyMap<string, Binaries>;
  /** The installed PgBouncer. */
  readonly pooler: PoolerProgram | undefined;
  /** The host name or address in the addresses of clusters. */
  readonly publicHost: string;
  /** Whether servers continue to run when the service stops. */
  readonly outlive: boolean;
  /** Whether the service is backed up, which needs the changes since the last backup. */
  readonly keepsForBackups: boolean;
}

/** A server that can be used. */
interface Ready extends servers.Running, ReadyServer {}

/** Pause between two looks at a cluster whose data is to be copied. */
const sourcePause = 50;

/** Runs each cluster as a server on this computer. */
export class EmbeddedPostgres extends ServerEngine<Ready> implements PostgresEngine {
  readonly name = "embedded";
  readonly replicas = 0;
  readonly version: string;
  readonly #options: EmbeddedOptions;
  readonly #poolers: Poolers;
  /** Clusters that are being copied for a backup of the service. */
  readonly #archived = new Set<string>();
  /** The transactions that were known, and those that were open, when the log of a cluster was completed. */
  readonly #logged = new Map<string, { readonly known: string; readonly at: number }>();
  readonly #closed = new AbortController();
  #moved: Promise<void> | undefined;

  constructor(host: EngineHost, options: EmbeddedOptions) {
    super(host, reasonOf);
    this.#options = options;
    const newest = [...options.versions.keys()].sort((a, b) => Number(b) - Number(a));
    this.version = newest.find((version) => isOffered(version)) ?? newest[0] ?? "";
    this.#poolers = new Poolers(options, options.pooler, (id) => this.clusterSteps.changed(id));
  }

  problem({ version, hasPostgis }: NewCluster): { status: 422; message: string } | undefined {
    if (!this.#options.versions.has(version))
      return {
        status: 422,
        message: `invalid pg_major_version, got ${JSON.stringify(version)}, installed are ${[...this.#options.versions.keys()].map((one) => JSON.stringify(one)).join(", ")}; to add it, run ${installCommand(version)} and restart the service`,
      };
    if (hasPostgis)
      return { status: 422, message: "invalid postgis_enabled, got true, this service's PostgreSQL has no PostGIS" };
    return undefined;
  }

  protected override openAs(id: string, { port }: Ready, database: string, session: Session): Promise<pg.Client> {
    return servers.connect(this.#pathsOf(id), port, database, session, this.host.password(id, session.user));
  }

  protected override measured(id: string, client: pg.Client): Promise<void> {
    return this.#prune(id, client);
  }

  discard(cluster: string, backup?: string): void {
    const { folder } = this.#options;
    const discarded =
      backup === undefined ? this.#keptOf(cluster) : join(pathsOf(join(folder, cluster)).backups, backup);
    void rm(discarded, { recursive: true, force: true });
  }

  override recover(): void {
    this.#endMoved().catch((error: unknown) =>
      this.host.log.warn({ reason: reasonOf(error) }, "a Postgres server could not be ended"),
    );
    this.#discardLeftovers().catch((error: unknown) =>
      this.host.log.warn({ reason: reasonOf(error) }, "the last copies of deleted clusters could not be read"),
    );
    super.recover();
  }

  async close(): Promise<void> {
    this.#closed.abort(new PostgresError("the service is closing"));
    await Promise.all([this.clusterSteps.close(), this.backupSteps.close()]);
    await Promise.all(
      [...this.ready].map(async ([id, { admin }]) => {
        this.ready.delete(id);
        await this.#poolers.release(id);
        await admin.end().catch(() => {});
      }),
    );
    if (!this.#options.outlive) await Promise.all(this.host.ids().map((id) => this.#stop(id)));
  }

  #pathsOf(id: string): Paths {
    return pathsOf(join(this.#options.folder, id));
  }

  /** Ends servers in folders that were moved away, also those of clusters that an older copy of the data does not know. */
  #endMoved(): Promise<void> {
    const moved = (this.#moved ??= endMoved(this.host, this.#options.folder));
    moved.catch(() => (this.#moved = undefined));
    return moved;
  }

  /** Stops the processes of a cluster. */
  async #stop(id: string): Promise<void> {
    const paths = this.#pathsOf(id);
    await this.#poolers.stop(id, paths);
    await servers.stop(this.#options, paths);
  }

  /** The last copy of a deleted cluster. */
  #keptOf(id: string): string {
    return join(this.#options.folder, "deleted", id);
  }

  /** Removes the copies whose removal a kill interrupted. */
  async #discardLeftovers(): Promise<void> {
    const kept = this.#keptOf("");
    for (const id of existsSync(kept) ? await readdir(kept) : [])
      if (this.host.cluster(id)?.status === "deleted" && !this.host.timers.pending(id, "cluster.discard"))
        this.discard(id);
  }

  /** The next step of a cluster; true if another one is due. */
  protected async step(id: string): Promise<boolean> {
    const cluster = this.host.cluster(id);
    switch (cluster?.status) {
      case "creating":
        return this.#orFailed(id, () => this.#write(cluster));
      case "initializing":
        return this.#orFailed(id, () => this.#setUp(cluster));
      case "ready":
        await this.#keepReady(cluster);
        return false;
      case "deleting":
        await this.#remove(cluster);
        return false;
      case undefined:
      default:
        return false;
    }
  }

  /** A cluster that cannot be set up is failed. If a server was killed meanwhile, the step is repeated. */
  async #orFailed(id: string, step: () => Promise<void>): Promise<boolean> {
    try {
      await step();
      return true;
    } catch (error) {
      if (this.#closed.signal.aborted) throw error;
      if (this.host.cluster(id)?.status === "deleting") return true;
      if (isLost(error)) throw error;
      await this.#stop(id);
      this.host.events.failed(id, reasonOf(error));
      return false;
    }
  }

  /** Writes the data of a new cluster: empty, or a copy. */
  async #write(cluster: Cluster): Promise<void> {
    const paths = this.#pathsOf(cluster.id);
    if (!existsSync(paths.data)) {
      await mkdir(paths.folder, { recursive: true, mode: 0o700 });
      if (cluster.source) await this.#writeCopy(cluster.source, paths);
      else await initialize(this.#options, this.#binariesOf(cluster), paths);
      await servers.finishDraft(paths);
    }
    this.host.events.initializing(cluster.id);
  }

  async #writeCopy({ cluster, backup, time, restored }: NonNullable<Cluster["source"]>, paths: Paths): Promise<void> {
    if (restored !== undefined) {
      const [base, wal] = [join(paths.restored, "base"), join(paths.restored, "wal")];
      const until = time === undefined ? { toEnd: restored === "log" } : { time };
      return draftFrom(base, paths, wal, until);
    }
    const source = this.#pathsOf(cluster);
    const { signal } = this.#closed;
    const ready = await this.#readyOf(cluster);
    if (time !== undefined) await this.with(ready, (client) => keepChanges(client, source, signal));
    if (backup === undefined) await this.#copy(ready, source, paths.draft);
    const copy = backup === undefined ? paths.draft : join(source.backups, backup);
    await draftFrom(copy, paths, source.wal, time === undefined ? {} : { time });
  }

  /** The server of a cluster whose data is needed. */
  async #readyOf(id: string): Promise<Ready> {
    for (;;) {
      const ready = this.ready.get(id);
      if (ready) return ready;
      if (this.host.cluster(id)?.status !== "ready") throw new PostgresError(`cluster ${id} does not exist any more`);
      await sleep(sourcePause, undefined, { signal: this.#closed.signal });
    }
  }

  /** Copies the data of a server, over a connection of its own. */
  #copy(ready: Ready, from: Paths, target: string): Promise<void> {
    const { signal } = this.#closed;
    return this.with(ready, (client) => copyServer(client, from, target, signal));
  }

  /** Starts a new cluster, and brings it to its wanted contents. */
  async #setUp(cluster: Cluster): Promise<void> {
    const { id } = cluster;
    const ready = await this.#start(cluster);
    await this.fill(cluster, ready);
    await endRecovery(this.#pathsOf(id));
    this.host.events.ready(id, await this.#endpointsOf(cluster, ready));
    this.measure(cluster);
  }

  /** Starts the server of a cluster unless it runs. */
  async #start(cluster: Cluster): Promise<Ready> {
    const { id, endpoints } = cluster;
    const known = this.ready.get(id);
    if (known) return known;
    const wantedPort = endpoints?.primary.direct.port;
    const paths = this.#pathsOf(id);
    const { signal } = this.#closed;
    await this.#endMoved();
    const running = await servers.start(this.#options, this.#binariesOf(cluster), paths, cluster, wantedPort, signal);
    const connect: Connect = (database, session) => servers.connect(paths, running.port, database, session);
    const access = { ...running, connect };
    const ready = { ...access, offers: await this.prepare(id, access) };
    this.ready.set(id, ready);
    running.admin.once("end", () => {
      if (this.ready.get(id) !== ready) return;
      this.ready.delete(id);
      void this.#poolers.release(id).then(() => this.clusterSteps.changed(id));
    });
    return ready;
  }

  #binariesOf({ version }: Cluster): Binaries {
    const binaries = this.#options.versions.get(version);
    if (!binaries) throw new PostgresError(`PostgreSQL ${version} is not installed: ${installCommand(version)}`);
    return binaries;
  }

  /** The addresses of a cluster, whose pooler runs then. */
  async #endpointsOf(cluster: Cluster, ready: Ready): Promise<Endpoints> {
    const { publicHost: host } = this.#options;
    const port = await this.#poolers.keep(cluster, this.#pathsOf(cluster.id), ready, this.#closed.signal);
    return { primary: { direct: { host, port: ready.port }, pooler: { host, port } } };
  }

  /** Keeps the server of a ready cluster running, and applies its changes in their order. */
  async #keepReady(cluster: Cluster): Promise<void> {
    const { id } = cluster;
    const ready = await this.#start(cluster);
    const endpoints = await this.#endpointsOf(cluster, ready);
    if (JSON.stringify(endpoints) !== JSON.stringify(cluster.endpoints)) this.host.events.moved(id, endpoints);
    await this.applyChanges(id, ready, async (change) => {
      if (!change.kind.endsWith("Extension")) await this.#pool(id, ready, change);
    });
  }

  /** Lets the pooler know a change of databases or users, and ends the sessions that are to end, first those of the pooler. */
  async #pool(id: string, ready: Ready, change: ClusterChange): Promise<void> {
    await this.#poolers.refresh(id, this.#pathsOf(id), ready);
    const user = endedBy(change);
    if (user === undefined) return;
    await this.#poolers.endSessions(id, user);
    await users.endSessions(ready.admin, user);
  }

  /** Stops a server. Its data is kept for a while; everything else goes. */
  async #remove({ id }: Cluster): Promise<void> {
    const paths = this.#pathsOf(id);
    const ready = this.ready.get(id);
    this.ready.delete(id);
    await ready?.admin.end().catch(() => {});
    await this.#stop(id);
    if (existsSync(paths.data)) {
      const kept = this.#keptOf(id);
      await mkdir(join(kept, ".."), { recursive: true, mode: 0o700 });
      await rename(paths.data, kept);
    }
    await rm(paths.folder, { recursive: true, force: true });
    this.refuseWaiting(id);
    this.host.events.destroyed(id);
  }

  /** Writes a backup; true if another attempt is due. */
  protected async writeBackup(backup: string): Promise<boolean> {
    const id = this.clusterOf.get(backup);
    if (id === undefined) return false;
    const paths = this.#pathsOf(id);
    try {
      const ready = await this.#readyOf(id);
      const target = join(paths.backups, backup);
      await mkdir(paths.backups, { recursive: true, mode: 0o700 });
      if (!existsSync(target)) await this.#copy(ready, paths, target);
      await this.with(ready, async (client) => {
        this.host.events.backedUp(backup, await queries.storedBytes(client));
        // The backup is complete, whatever becomes of this; it is tried again at the next measurement.
        await this.#prune(id, client).catch((error: unknown) =>
          this.host.log.warn({ cluster: id, reason: reasonOf(error) }, "changes that nothing needs were not removed"),
        );
      });
    } catch (error) {
      if (this.#closed.signal.aborted) throw error;
      this.host.log.warn({ cluster: id, backup, reason: reasonOf(error) }, "a backup failed");
      await rm(join(paths.backups, `${backup}.draft`), { recursive: true, force: true });
      this.host.events.backupFailed(backup);
    }
    this.clusterOf.delete(backup);
    return false;
  }

  /** Removes the kept changes that nothing needs. */
  async #prune(id: string, client: pg.Client): Promise<void> {
    const isCopied = this.host.ids().some((other) => {
      const cluster = this.host.cluster(other);
      return cluster?.source?.cluster === id && cluster.status !== "ready";
    });
    const backups = this.host.backups(id);
    if (isCopied || this.#archived.has(id) || backups.some(({ isRunning }) => isRunning)) return;
    const paths = this.#pathsOf(id);
    const written = existsSync(paths.backups) ? await readdir(paths.backups) : [];
    await pruneChanges(
      client,
      paths,
      backups.map(({ id: backup }) => backup).filter((backup) => written.includes(backup)),
      this.#options.keepsForBackups ? readSmall(paths.storedSince)?.trim() : undefined,
    );
  }

  /** The data of clusters, for backups of the service. */
  readonly archives: ClusterArchives = {
    copy: async (id, target, signal) => {
      const ready = this.ready.get(id);
      if (!ready) throw new PostgresError("its server does not run");
      await mkdir(target, { recursive: true, mode: 0o700 });
      this.#archived.add(id);
      const either = AbortSignal.any([signal, this.#closed.signal]);
      try {
        const first = await this.with(ready, (client) => copyWithChanges(client, this.#pathsOf(id), target, either));
        return { first };
      } finally {
        this.#archived.delete(id);
      }
    },
    stored: (id, first) => writeFile(this.#pathsOf(id).storedSince, `${first}\n`, { mode: 0o600 }),
    log: async (id) => {
      const ready = this.ready.get(id);
      return ready && this.with(ready, (client) => this.#logOf(id, client));
    },
  };

  /** Completes the log of a cluster, unless nothing has changed since it was last completed: each time takes a whole file. */
  async #logOf(id: string, client: pg.Client): Promise<ClusterLog> {
    const transactions = async (): Promise<string> => {
      const sql = "SELECT pg_current_snapshot()::text AS known";
      return (await client.query<{ known: string }>(sql)).rows[0]?.known ?? "";
    };
    const paths = this.#pathsOf(id);
    const folder = paths.wal;
    const until = Date.now();
    const before = this.#logged.get(id);
    if (before && before.known === (await transactions())) return { folder, until, lastChange: before.at };
    await markNow(client);
    // A transaction that ends from now on makes it another one.
    const known = await transactions();
    await completeLog(client, paths, this.#closed.signal);
    this.#logged.set(id, { known, at: until });
    return { folder, until, lastChange: until };
  }
}

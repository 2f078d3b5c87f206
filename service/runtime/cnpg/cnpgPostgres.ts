// The engine with clusters of the operator CloudNativePG: each is a Cluster of the Kubernetes cluster, with a Pooler. A call only says
// that a cluster has changed. The engine then compares what the store wants with what is there, does the next step and reports it.
//
// The operator runs the servers, their replicas and poolers, replaces a primary that fails, and takes backups. What is in a server is
// changed over SQL, by what the other engine with real servers uses too. The operator's own ways, managed roles and Database objects, do
// not fit: they know no readers and writers of what others create, refuse to remove a database that is in use, and report a refusal of
// the server only later.
import type { KubernetesObject, V1EndpointSlice, V1Namespace, V1Pod } from "@kubernetes/client-node";
import type pg from "pg";
import { reasonOf } from "../../reasonOf.ts";
import {
  isAnswered,
  ofCluster,
  reasonOf as reasonOfCluster,
  type Cluster as Kubernetes,
} from "../kubernetes/cluster.ts";
import { kinds, snapshotGroup, type Kind } from "../kubernetes/names.ts";
import { Watched } from "../kubernetes/watched.ts";
import {
  isOffered,
  type Cluster,
  type Endpoints,
  type EngineHost,
  type NewCluster,
  type PostgresEngine,
  type Primary,
} from "../postgresEngine.ts";
import type { Connect } from "../postgres/access.ts";
import { isLost } from "../postgres/postgresError.ts";
import * as queries from "../postgres/queries.ts";
import { endedBy, ServerEngine, type ReadyServer } from "../postgres/serverEngine.ts";
import { sessions, type Session } from "../postgres/sessions.ts";
import { operatorRoles, superuser, visitor } from "../postgres/settings.ts";
import * as users from "../postgres/users.ts";
import { archiveUntil } from "./archive.ts";
import { connect, type Reached } from "./connection.ts";
import {
  backupName,
  endpointsOf,
  hostsOf,
  nameOf,
  namespaceOf,
  operatorKinds,
  poolerOf,
  postgresLabels,
  primaryOf,
  secretsOf,
} from "./names.ts";
import * as objects from "./objects.ts";
import type { CnpgOptions } from "./objects.ts";
import { storeSecret } from "./objectStore.ts";

interface ClusterObject extends KubernetesObject {
  readonly spec?: { readonly bootstrap?: object };
  readonly status?: {
    readonly phase?: string;
    readonly phaseReason?: string;
    readonly currentPrimary?: string;
    readonly currentPrimaryTimestamp?: string;
    readonly targetPrimary?: string;
    /** Volumes of servers without a Pod and a Job. */
    readonly danglingPVC?: readonly string[];
  };
}

interface BackupObject extends KubernetesObject {
  readonly spec?: { readonly method?: objects.BackupMethod };
  readonly status?: { readonly phase?: string; readonly error?: string; readonly backupId?: string };
}

/** A server that can be used: the primary of its cluster. */
interface Ready extends ReadyServer, Reached {
  readonly pod: string;
}

/** Phases of a cluster that do not pass by themselves. */
const hopeless = /unrecoverable|image catalog|required cluster objects|unknown plugin/i;

/** The operator's label of Pods that begin a server. */
const jobRole = "cnpg.io/jobRole";
const mostFailures = 3;
/** The operator's label of Pods of servers, and of those that begin them. */
const instanceName = "cnpg.io/instanceName";
// ASSUMED: an operator that still has to begin the first server of a Cluster a minute after its volume was made has forgotten it.
const forgottenAfterMs = 60_000;

const day = 24 * 3600_000;
// ASSUMED: a certificate is good for a year, and replaced by another one after nine months, and with each start of the service.
const validMs = 365 * day;
const renewMs = 270 * day;

/** Whether a slice has a Pod that serves a Service. */
const leadsSomewhere = ({ metadata, endpoints }: V1EndpointSlice, service: string, namespace: string): boolean =>
  metadata?.namespace === namespace &&
  metadata.labels?.["kubernetes.io/service-name"] === service &&
  endpoints?.some(({ conditions }) => conditions?.ready === true) === true;

/** Whether a Pod serves clients. */
const isReady = ({ metadata, status }: V1Pod): boolean =>
  metadata?.deletionTimestamp === undefined &&
  status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True") === true;

/** The backup that a fork begins with, which only the fork needs. */
const backupOfFork = (id: string): string => `fork-${id}`;
const isOfFork = (backup: string): boolean => backup.startsWith("fork-");

/** What a step waits for; the engine comes back to it with the next report of the Kubernetes cluster. */
class NotYet extends Error {
  override readonly name = "NotYet";
}

/** Runs each cluster by the operator. */
export class CnpgPostgres extends ServerEngine<Ready> implements PostgresEngine {
  readonly name = "cnpg";
  readonly version = "17";
  readonly noBackups?: string;
  readonly noTimes?: string;
  readonly #kubernetes: Kubernetes;
  readonly #options: CnpgOptions;
  readonly #namespaces: Watched<V1Namespace>;
  readonly #clusters: Watched<ClusterObject>;
  readonly #poolers: Watched<KubernetesObject>;
  readonly #backups: Watched<BackupObject>;
  readonly #pods: Watched<V1Pod>;
  readonly #slices: Watched<V1EndpointSlice>;
  /** The generations of objects that have what the engine wants, by kind and name. */
  readonly #applied = new Map<string, number>();
  /** When the Secrets of a cluster were written, and the authority of its certificate. */
  readonly #secrets = new Map<string, { readonly at: number; readonly root: string }>();
  /** Clusters whose object others have deleted. */
  readonly #lost = new Set<string>();
  /** Since when the first server of a new cluster has a volume and nothing else, in milliseconds since 1970. */
  readonly #unbegun = new Map<string, number>();
  /** Deleted clusters whose objects are there again. */
  readonly #returned = new Set<string>();
  /** The last primary of a cluster that was seen. */
  readonly #primaries = new Map<string, string>();
  /** Copies that wait until a cluster can be asked. */
  readonly #waitingCopies = new Map<string, Set<string>>();
  readonly #closed = new AbortController();
  readonly #begun: Promise<void>;

  constructor(kubernetes: Kubernetes, host: EngineHost, options: CnpgOptions) {
    super(host, (error) => (isAnswered(error) ? reasonOfCluster(error) : reasonOf(error)));
    this.#kubernetes = kubernetes;
    this.#options = options;
    if (!options.store) {
      if (!kubernetes.has(snapshotGroup)) this.noBackups = objects.noSnapshots;
      this.noTimes =
        "clusters of CloudNativePG have no archive of changes without the service's option --postgres-backup; restore a backup by its backup_id, or fork the cluster";
    }
    const watched = <T extends KubernetesObject>(kind: Kind, seen: (object: T, isGone: boolean) => void): Watched<T> =>
      new Watched<T>(kubernetes, kind, `${postgresLabels.data}=${host.dataId}`, host.log, seen);
    const ofCluster = ({ metadata }: KubernetesObject): void => {
      const id = metadata?.labels?.[postgresLabels.cluster];
      if (id !== undefined) this.clusterSteps.changed(id);
    };
    this.#namespaces = watched(kinds.namespace, ({ metadata }, isGone) => {
      if (isGone) this.#forget(({ namespace }) => namespace === metadata?.name);
      for (const id of this.host.ids()) if (this.host.cluster(id)?.status !== "ready") this.clusterSteps.changed(id);
    });
    this.#clusters = watched<ClusterObject>(operatorKinds.cluster, (object, isGone) => {
      if (isGone) this.#forget((_, id) => id === object.metadata?.labels?.[postgresLabels.cluster]);
      ofCluster(object);
    });
    this.#poolers = watched(operatorKinds.pooler, ofCluster);
    this.#pods = watched(kinds.pod, ofCluster);
    this.#slices = watched<V1EndpointSlice>(kinds.slice, ofCluster);
    this.#backups = watched(operatorKinds.backup, (object) => {
      const backup = object.metadata?.labels?.[postgresLabels.backup];
      if (backup !== undefined && this.clusterOf.has(backup)) this.backupSteps.changed(backup);
      else for (const id of this.host.ids()) if (backupOfFork(id) === backup) this.clusterSteps.changed(id);
    });
    this.#begun = this.#begin();
  }

  async #begin(): Promise<void> {
    const parts = this.#watches();
    await Promise.all(parts.map((part) => part.begin()));
  }

  #watches(): readonly Pick<Watched<KubernetesObject>, "begin" | "close">[] {
    return [this.#namespaces, this.#clusters, this.#poolers, this.#pods, this.#slices, this.#backups];
  }

  problem({ version, hasPostgis }: NewCluster): { status: 422; message: string } | undefined {
    if (!isOffered(version))
      return {
        status: 422,
        message: `invalid pg_major_version, got ${JSON.stringify(version)}, allowed are "16", "17"`,
      };
    if (hasPostgis)
      return { status: 422, message: "invalid postgis_enabled, got true, the images of CloudNativePG have no PostGIS" };
    return undefined;
  }

  protected override openAs(id: string, ready: Ready, database: string, session: Session): Promise<pg.Client> {
    return connect(ready, database, session, this.host.password(id, session.user));
  }

  protected override measured(id: string): Promise<void> {
    // Also looks at the certificate.
    this.clusterSteps.changed(id);
    return Promise.resolve();
  }

  override primary(cluster: Cluster): Primary {
    const { currentPrimaryTimestamp = "" } = this.#clusterObjectOf(cluster.id, this.#placeOf(cluster.id))?.status ?? {};
    const since = Date.parse(currentPrimaryTimestamp);
    return { ...super.primary(cluster), since: Number.isNaN(since) ? undefined : since };
  }

  discard(cluster: string, backup?: string): void {
    if (backup !== undefined) this.clusterSteps.changed(cluster);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    const parts = this.#watches();
    await Promise.all([this.clusterSteps.close(), this.backupSteps.close(), ...parts.map((part) => part.close())]);
    await Promise.all(
      [...this.ready].map(async ([id, { admin }]) => {
        this.ready.delete(id);
        await admin.end().catch(() => {});
      }),
    );
  }

  #placeOf(id: string): objects.Place {
    const { dataId } = this.host;
    const organization = this.host.organization(id);
    return { dataId, organization, namespace: namespaceOf(dataId, organization) };
  }

  /** The next step of a cluster; true if another one is due. */
  protected async step(id: string): Promise<boolean> {
    await this.#begun;
    if (this.#closed.signal.aborted) return false;
    const cluster = this.host.cluster(id);
    try {
      switch (cluster?.status) {
        case "creating":
          await this.#orFailed(id, async () => {
            const place = this.#placeOf(id);
            await this.#applyPlace(place);
            await this.#applySecrets(place, id);
            await this.#applyCluster(place, cluster);
            this.host.events.initializing(id);
          });
          return true;
        case "initializing":
          await this.#orFailed(id, () => this.#setUp(cluster));
          return true;
        case "ready":
          await this.#keepReady(cluster).finally(() => this.#wakeCopies(id));
          return false;
        case "deleting":
          await this.#remove(cluster);
          return false;
        case "deleted":
          await this.#removeAgain(cluster);
          return false;
        case undefined:
        default:
          return false;
      }
    } catch (error) {
      if (error instanceof NotYet) return false;
      throw error;
    }
  }

  /** A cluster that the Kubernetes cluster or the server refuses is failed; what passes by itself is tried again. */
  async #orFailed(id: string, step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      if (error instanceof NotYet || this.#closed.signal.aborted || isLost(error)) throw error;
      if (!ofCluster.isRefusal(error) && !(error instanceof Hopeless)) throw error;
      this.host.events.failed(id, ofCluster.isRefusal(error) ? reasonOfCluster(error) : reasonOf(error));
    }
  }

  async #applyPlace(place: objects.Place): Promise<void> {
    const known = this.#namespaces.get(place.namespace);
    // One that is being deleted refuses new objects.
    if (known?.metadata?.deletionTimestamp !== undefined) throw new NotYet();
    const key = `Namespace ${place.namespace}`;
    if (known && this.#applied.has(key)) return;
    await this.#kubernetes.apply(objects.namespaceObject(place));
    await this.#kubernetes.apply(objects.policyObject(place));
    if (this.#options.store) await this.#kubernetes.apply(storeSecret(place, this.#options.store));
    this.#applied.set(key, 0);
  }

  /** Writes the Secrets of a cluster, once in a run of the service, and with another certificate before the first one ends. */
  async #applySecrets(place: objects.Place, id: string): Promise<string> {
    const known = this.#secrets.get(id);
    const now = Date.now();
    if (known && now < known.at + renewMs) return known.root;
    const { chain, key } = await this.host.certificate(hostsOf(id, place.namespace), now + validMs);
    const [, root = ""] = chain.split(/(?<=-----END CERTIFICATE-----\n)\s*(?=-----BEGIN)/);
    const passwords = { superuser: this.#passwordOf(id, superuser), visitor: this.#passwordOf(id, visitor) };
    for (const secret of objects.secretObjects(place, id, passwords, { chain, key, root }))
      await this.#kubernetes.apply(secret);
    this.#secrets.set(id, { at: now, root });
    return root;
  }

  /** Has Secrets of clusters written again: a Kubernetes cluster that is restored from a backup may have lost them. */
  #forget(isMeant: (place: objects.Place, id: string) => boolean): void {
    for (const id of this.#secrets.keys()) if (isMeant(this.#placeOf(id), id)) this.#secrets.delete(id);
  }

  /** The password of a role of the service. Only the service can compute it. */
  #passwordOf(id: string, role: string): string {
    return this.host.secret(`postgres/cnpg/${id}/${role}`);
  }

  /** How a backup of a client is taken. */
  get #method(): objects.BackupMethod {
    return this.#options.store ? "barmanObjectStore" : "volumeSnapshot";
  }

  /** What a cluster begins with; undefined if it begins empty. A fork begins with a backup of its own, which has to be complete. */
  async #beginningOf(place: objects.Place, { id, source }: Cluster): Promise<objects.Beginning | undefined> {
    if (!source) return undefined;
    const { time, backup = backupOfFork(id) } = source;
    const found = this.#backups.get(backupName(backup), place.namespace);
    if (source.backup === undefined) {
      // A VolumeSnapshot leaves nothing in the object storage.
      const method = this.#kubernetes.has(snapshotGroup) ? "volumeSnapshot" : this.#method;
      if (!found) await this.#kubernetes.apply(objects.backupObject(place, source.cluster, backup, method));
      if (found?.status?.phase === "failed")
        throw new Hopeless(`its source cannot be copied: ${found.status.error ?? ""}`);
      if (found?.status?.phase !== "completed") throw new NotYet();
    }
    if (!found) throw new Hopeless("its backup does not exist any more");
    const isStored = found.spec?.method === "barmanObjectStore";
    if (time !== undefined && !isStored)
      throw new Hopeless("the latest backup before the time is not in the object storage, so it has no later changes");
    if (time !== undefined) await this.#archiveUntil(source.cluster, id, time);
    return { backup, time, stored: isStored ? found.status?.backupId : undefined };
  }

  /**
   * Lets a cluster archive its changes until a time. One whose servers are lost cannot, and is restored with what the archive has.
   * `copy` comes back here when the cluster can be asked.
   */
  async #archiveUntil(id: string, copy: string, time: number): Promise<void> {
    const ready = this.ready.get(id);
    if (ready) return this.with(ready, (client) => archiveUntil(client, time, this.#closed.signal));
    const { namespace } = this.#placeOf(id);
    const { currentPrimary = "" } = this.#clusters.get(nameOf(id), namespace)?.status ?? {};
    const pod = this.#pods.get(currentPrimary, namespace);
    if (!pod || !isReady(pod)) return;
    this.#waitingCopies.set(id, new Set([...(this.#waitingCopies.get(id) ?? []), copy]));
    throw new NotYet();
  }

  /** Continues the copies that wait for a cluster. */
  #wakeCopies(id: string): void {
    const waiting = this.#waitingCopies.get(id) ?? [];
    this.#waitingCopies.delete(id);
    for (const copy of waiting) this.clusterSteps.changed(copy);
  }

  /** Writes the objects of a cluster, and again when others have changed them. */
  async #applyCluster(place: objects.Place, cluster: Cluster): Promise<void> {
    const { id } = cluster;
    const { namespace } = place;
    const parts: [Watched<KubernetesObject>, Kind, string, () => Promise<KubernetesObject> | KubernetesObject][] = [
      [
        ...([this.#clusters, operatorKinds.cluster, nameOf(id)] as const),
        async () => {
          // It begins once, also if its backup is removed later.
          const { bootstrap = objects.bootstrapOf(cluster, await this.#beginningOf(place, cluster)) } =
            this.#clusterObjectOf(id, place)?.spec ?? {};
          return objects.clusterObject(place, cluster, bootstrap, this.#options);
        },
      ],
      [this.#poolers, operatorKinds.pooler, poolerOf(id), () => objects.poolerObject(place, cluster)],
    ];
    for (const [watched, { kind }, name, wanted] of parts) {
      const generation = watched.get(name, namespace)?.metadata?.generation ?? 0;
      const key = `${kind} ${name}`;
      if (this.#applied.get(key) === generation) continue;
      await this.#kubernetes.apply(await wanted());
      this.#applied.set(key, generation);
    }
  }

  #clusterObjectOf(id: string, place: objects.Place): ClusterObject | undefined {
    return this.#clusters.get(nameOf(id), place.namespace);
  }

  /** Connects to the primary of a cluster, unless the service is connected to it. */
  async #reach(place: objects.Place, id: string): Promise<Ready> {
    const {
      currentPrimary,
      targetPrimary,
      phase = "",
      phaseReason = "",
    } = this.#clusterObjectOf(id, place)?.status ?? {};
    if (hopeless.test(phase)) throw new Hopeless(phaseReason === "" ? phase : `${phase}: ${phaseReason}`);
    const known = this.ready.get(id);
    if (currentPrimary === undefined || (targetPrimary !== undefined && targetPrimary !== currentPrimary)) {
      // The operator is replacing the primary, which may still answer.
      if (known) await this.#leave(id, known);
      throw new NotYet();
    }
    if (known?.pod === currentPrimary) return known;
    if (known) await this.#leave(id, known);
    const pod = this.#pods.get(currentPrimary, place.namespace);
    const address = pod?.status?.podIP;
    if (!pod || address === undefined || !isReady(pod)) throw new NotYet();
    const [host] = hostsOf(id, place.namespace);
    const reached = { address, host, root: await this.#applySecrets(place, id) };
    const connectTo: Connect = (database, session) =>
      connect(reached, database, session, this.#passwordOf(id, session.user));
    const admin = await connectTo(superuser, sessions.superuser);
    const offers = await this.prepare(id, { admin, connect: connectTo }, this.#passwordOf(id, visitor));
    // Nobody else may enter the superuser's database, but a replica copies what it lacks from there, and a pooler asks there.
    const roles = operatorRoles.map((role) => `'${role}'`).join(", ");
    await admin.query(
      `DO $$ DECLARE role name; BEGIN
         FOR role IN SELECT rolname FROM pg_catalog.pg_roles WHERE rolname IN (${roles}) LOOP
           EXECUTE pg_catalog.format('GRANT CONNECT ON DATABASE ${superuser} TO %I', role);
         END LOOP;
       END $$`,
    );
    const ready = { ...reached, pod: currentPrimary, admin, connect: connectTo, offers };
    this.ready.set(id, ready);
    admin.once("end", () => {
      if (this.ready.get(id) !== ready) return;
      this.ready.delete(id);
      this.clusterSteps.changed(id);
    });
    const before = this.#primaries.get(id);
    if (before !== undefined && before !== currentPrimary)
      this.host.log.warn(
        { cluster: id, before, now: currentPrimary },
        "another server of a Postgres cluster is its primary",
      );
    this.#primaries.set(id, currentPrimary);
    return ready;
  }

  async #leave(id: string, { admin }: Ready): Promise<void> {
    this.ready.delete(id);
    await admin.end().catch(() => {});
  }

  #endpointsOf(id: string): Endpoints {
    return endpointsOf(id, this.#placeOf(id).namespace);
  }

  /** Brings a new cluster to its wanted contents once its primary and its pooler run. */
  async #setUp(cluster: Cluster): Promise<void> {
    const { id } = cluster;
    const place = this.#placeOf(id);
    const found = this.#clusterObjectOf(id, place);
    // It is made again when it is gone.
    if (found?.metadata?.deletionTimestamp !== undefined) throw new NotYet();
    await this.#applySecrets(place, id);
    await this.#applyCluster(place, cluster);
    await this.#requireRemembered(id, found);
    this.#requireBegun(id);
    const ready = await this.#reach(place, id);
    // A client that knows the addresses connects at once.
    for (const service of [primaryOf(id), poolerOf(id)])
      if (!this.#slices.all().some((slice) => leadsSomewhere(slice, service, place.namespace))) throw new NotYet();
    await this.fill(cluster, ready);
    this.host.events.ready(id, this.#endpointsOf(id));
    this.measure(cluster);
  }

  /**
   * Makes a new Cluster again if the operator has forgotten to begin its first server. It does when it loses the API server between
   * the volume and the Job of that server: then it waits for ever.
   */
  async #requireRemembered(id: string, found: ClusterObject | undefined): Promise<void> {
    const isServer = ({ metadata }: V1Pod): boolean =>
      metadata?.labels?.[postgresLabels.cluster] === id && metadata.labels[instanceName] !== undefined;
    const isUnbegun = (found?.status?.danglingPVC ?? []).length > 0 && !this.#pods.all().some(isServer);
    if (!isUnbegun) {
      this.#unbegun.delete(id);
      return;
    }
    const since = this.#unbegun.get(id) ?? Date.now();
    this.#unbegun.set(id, since);
    // It is tried again.
    if (Date.now() < since + forgottenAfterMs) throw new Error("the operator has not begun its first server");
    this.host.log.warn(
      { cluster: id },
      "the operator has forgotten the first server of a Postgres cluster, which is made again",
    );
    await this.#kubernetes.delete(operatorKinds.cluster, found?.metadata, { ownedFirst: true });
    this.#unbegun.delete(id);
    throw new NotYet();
  }

  /** The operator tries for ever. ASSUMED: a cluster of CloudNativePG is failed when three Pods that begin its first server have failed. */
  #requireBegun(id: string): void {
    const failed = this.#pods
      .all()
      .filter(
        ({ metadata, status }) =>
          metadata?.labels?.[postgresLabels.cluster] === id &&
          metadata.labels[jobRole] !== undefined &&
          status?.phase === "Failed",
      );
    if (failed.length < mostFailures) return;
    const role = failed[0]?.metadata?.labels?.[jobRole] ?? "";
    const names = failed.map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`).join(", ");
    const cause = role.includes("recovery") ? "; a restore to a time needs an archived change after it" : "";
    throw new Hopeless(`its ${role} has failed ${failed.length} times, see the logs of ${names}${cause}`);
  }

  /** Repairs what others have changed, stays connected to the primary, and applies the changes of a ready cluster. */
  async #keepReady(cluster: Cluster): Promise<void> {
    const { id } = cluster;
    const place = this.#placeOf(id);
    const found = this.#clusterObjectOf(id, place);
    if (!found || found.metadata?.deletionTimestamp !== undefined) {
      // An empty one in its place would hide the loss.
      const known = this.ready.get(id);
      if (known) await this.#leave(id, known);
      if (!this.#lost.has(id))
        this.host.log.error(
          { cluster: id, object: `${place.namespace}/${nameOf(id)}` },
          "the Cluster of a Postgres cluster is missing: others have deleted it; delete the Postgres cluster too",
        );
      this.#lost.add(id);
      return;
    }
    this.#lost.delete(id);
    await this.#applyPlace(place);
    await this.#applySecrets(place, id);
    await this.#applyCluster(place, cluster);
    await this.#discardBackups(id);
    const ready = await this.#reach(place, id);
    const endpoints = this.#endpointsOf(id);
    if (JSON.stringify(endpoints) !== JSON.stringify(cluster.endpoints)) this.host.events.moved(id, endpoints);
    await this.applyChanges(id, ready, async (change) => {
      const user = endedBy(change);
      // The sessions of a pooler end with those of its server.
      if (user !== undefined) await users.endSessions(ready.admin, user);
    });
  }

  /** Removes all that belongs to a cluster; the operator removes the servers and their volumes. */
  async #remove({ id }: Cluster): Promise<void> {
    const place = this.#placeOf(id);
    const { namespace } = place;
    const known = this.ready.get(id);
    if (known) await this.#leave(id, known);
    const ofCluster = ({ metadata }: KubernetesObject): boolean => metadata?.labels?.[postgresLabels.cluster] === id;
    const fork = this.#backups.get(backupName(backupOfFork(id)), namespace);
    const left: [Kind, readonly KubernetesObject[]][] = [
      [operatorKinds.pooler, this.#poolers.all().filter(ofCluster)],
      [operatorKinds.backup, [...this.#backups.all().filter(ofCluster), ...(fork ? [fork] : [])]],
      [operatorKinds.cluster, this.#clusters.all().filter(ofCluster)],
    ];
    for (const [kind, found] of left) for (const one of found) await this.#kubernetes.delete(kind, one.metadata);
    // It comes back here when the Kubernetes cluster has removed them.
    if (left.some(([, found]) => found.length > 0) || this.#pods.all().some(ofCluster)) throw new NotYet();
    for (const name of Object.values(secretsOf(id))) await this.#kubernetes.delete(kinds.secret, { name, namespace });
    for (const key of [`Cluster ${nameOf(id)}`, `Pooler ${poolerOf(id)}`]) this.#applied.delete(key);
    for (const known of [this.#secrets, this.#primaries, this.#unbegun]) known.delete(id);
    this.#wakeCopies(id);
    const isUsed = this.host.ids().some((other) => other !== id && this.#placeOf(other).namespace === namespace);
    const found = this.#namespaces.get(namespace);
    if (!isUsed && found) {
      this.#applied.delete(`Namespace ${namespace}`);
      await this.#kubernetes.delete(kinds.namespace, found.metadata);
    }
    this.refuseWaiting(id);
    this.host.events.destroyed(id);
  }

  /** Removes the objects of a deleted cluster that are there again: the Kubernetes cluster was restored from an earlier backup. */
  async #removeAgain(cluster: Cluster): Promise<void> {
    const { id } = cluster;
    if (this.#clusterObjectOf(id, this.#placeOf(id))) this.#returned.add(id);
    if (!this.#returned.has(id)) return;
    await this.#remove(cluster);
    this.#returned.delete(id);
  }

  /** Takes a backup; true if another attempt is due. */
  protected async writeBackup(backup: string): Promise<boolean> {
    await this.#begun;
    const id = this.clusterOf.get(backup);
    if (id === undefined || this.#closed.signal.aborted) return false;
    const place = this.#placeOf(id);
    const found = this.#backups.get(backupName(backup), place.namespace);
    const fail = (reason: string): boolean => {
      this.host.log.warn({ cluster: id, backup, reason }, "a backup failed");
      this.clusterOf.delete(backup);
      this.host.events.backupFailed(backup);
      return false;
    };
    if (this.host.cluster(id)?.status !== "ready") return fail("the cluster is not ready any more");
    try {
      if (!found) await this.#kubernetes.apply(objects.backupObject(place, id, backup, this.#method));
    } catch (error) {
      if (ofCluster.isRefusal(error)) return fail(reasonOfCluster(error));
      throw error;
    }
    const { phase, error = "" } = found?.status ?? {};
    if (phase === "failed") return fail(error);
    if (phase !== "completed") return false;
    const ready = this.ready.get(id);
    // Its size is that of the databases.
    const bytes = ready ? await this.with(ready, queries.storedBytes) : 0;
    this.clusterOf.delete(backup);
    this.host.events.backedUp(backup, bytes);
    return false;
  }

  /** Removes the backups of a ready cluster that the service no longer has, and that of the fork as which it began. */
  async #discardBackups(id: string): Promise<void> {
    const kept = new Set(this.host.backups(id).map((backup) => backup.id));
    for (const { metadata } of this.#backups.all()) {
      const { [postgresLabels.cluster]: of, [postgresLabels.backup]: backup = "" } = metadata?.labels ?? {};
      const isOver = backup === backupOfFork(id) || (of === id && !isOfFork(backup) && !kept.has(backup));
      if (isOver) await this.#kubernetes.delete(operatorKinds.backup, metadata);
    }
  }
}

/** A cluster that cannot be set up; the message says why. */
class Hopeless extends Error {
  override readonly name = "Hopeless";
}

// Volumes as claims of the cluster, snapshots as its snapshots. Nothing is removed before the service has deleted it, nor while a copy
// of it is missing.
import type { KubernetesObject, V1PersistentVolumeClaim } from "@kubernetes/client-node";
import type { RuntimeHost, Subject, VolumeSubject } from "../runtime.ts";
import { Steps } from "../steps.ts";
import { isRefused, ofCluster, reasonOf, snapshotGroup, type Cluster } from "./cluster.ts";
import { labels, nodeAnnotation, selectorOf, volumeName } from "./names.ts";
import type { Namespaces } from "./namespaces.ts";
import { quantity } from "./nodes.ts";
import { Watched } from "./watched.ts";

const snapshotVersion = `${snapshotGroup}/v1`;

interface VolumeSnapshot extends KubernetesObject {
  readonly status?: {
    readonly readyToUse?: boolean;
    readonly restoreSize?: string;
    readonly error?: { readonly message?: string };
  };
}

const isOf =
  (id: string) =>
  ({ metadata }: KubernetesObject): boolean =>
    metadata?.labels?.[labels.volume] === id;

/** The volumes and snapshots of a service. */
export class Volumes {
  readonly #cluster: Cluster;
  readonly #host: RuntimeHost;
  readonly #namespaces: Namespaces;
  readonly #claims: Watched<V1PersistentVolumeClaim>;
  readonly #snapshots: Watched<VolumeSnapshot> | undefined;
  readonly #steps: Steps;
  /** Why a volume could not be written so far. */
  readonly #reasons = new Map<string, string>();
  /** Volumes that were just claimed, so that the cluster has said nothing about them yet. */
  readonly #claimed = new Set<string>();
  readonly #nodeOf: (region: string) => string | undefined;
  readonly #changed: (machine: string) => void;
  #isListed = false;

  /** `nodeOf` names a node of a region. `changed` is called when a volume that a Machine waits for may be ready. */
  constructor(
    cluster: Cluster,
    host: RuntimeHost,
    namespaces: Namespaces,
    nodeOf: (region: string) => string | undefined,
    changed: (machine: string) => void,
  ) {
    this.#nodeOf = nodeOf;
    this.#cluster = cluster;
    this.#host = host;
    this.#namespaces = namespaces;
    this.#changed = changed;
    const mine = selectorOf(host.dataId);
    const seen = ({ metadata }: KubernetesObject): void => this.changed(metadata?.labels?.[labels.volume] ?? "");
    const claims = { apiVersion: "v1", kind: "PersistentVolumeClaim", path: "/api/v1/persistentvolumeclaims" };
    this.#claims = new Watched<V1PersistentVolumeClaim>(cluster, claims, mine, host.log, (claim, isGone) => {
      this.#claimed.delete(claim.metadata?.labels?.[labels.volume] ?? "");
      seen(claim);
      if (isGone) this.#namespaces.changed(claim.metadata?.namespace ?? "");
    });
    const path = `/apis/${snapshotVersion}/volumesnapshots`;
    this.#snapshots = cluster.hasSnapshots
      ? new Watched(cluster, { apiVersion: snapshotVersion, kind: "VolumeSnapshot", path }, mine, host.log, seen)
      : undefined;
    this.#steps = new Steps(host, { ...ofCluster, kind: "volume", step: (id) => this.#step(id) });
  }

  async begin(): Promise<void> {
    await Promise.all([this.#claims.begin(), this.#snapshots?.begin()]);
  }

  async close(): Promise<void> {
    await Promise.all([this.#claims.close(), this.#snapshots?.close()]);
    await this.#steps.close();
  }

  /** Everything that the cluster has of volumes. */
  claims(): readonly KubernetesObject[] {
    return [...this.#claims.all(), ...(this.#snapshots?.all() ?? [])];
  }

  /** A volume or snapshot was created or deleted, or the cluster has said something about it. */
  changed(id: string): void {
    // What the cluster has is not known yet; all are looked at then.
    if (this.#isListed && id !== "") this.#steps.changed(id);
  }

  /** Continues with what was interrupted. */
  lookAtAll(): void {
    this.#isListed = true;
    const unsettled = this.#host.unsettledVolumes();
    for (const id of unsettled) this.changed(id);
    for (const { metadata } of this.claims()) {
      const id = metadata?.labels?.[labels.volume] ?? "";
      if (!this.#host.volume(id) && !unsettled.includes(id))
        this.#host.log.warn(
          { volume: id, name: metadata?.name },
          "the service does not know this volume of the cluster; it is kept",
        );
    }
  }

  /** Whether the volumes of a Machine have their contents. */
  areWritten({ config }: Subject): boolean {
    return (config.mounts ?? []).every(({ volume }) => this.#host.volume(volume)?.isWritten);
  }

  /** Why a Machine cannot have its volumes, as a sentence; undefined if it can, or if they are being written. */
  problemOf({ config }: Subject): string | undefined {
    for (const { volume } of config.mounts ?? []) {
      const reason = this.#reasons.get(volume);
      if (reason !== undefined) return `volume ${volume} could not be written: ${reason}`;
      if (this.#host.volume(volume)?.isWritten && !this.#hasClaim(volume))
        // A cluster would let the Machine wait for ever.
        return `volume ${volume} is missing in the cluster; create a volume from one of its snapshots`;
    }
    return undefined;
  }

  async #step(id: string): Promise<boolean> {
    const subject = this.#host.volume(id);
    if (!subject) {
      if (this.#host.unsettledVolumes().includes(id)) await this.#discard(id);
      return false;
    }
    try {
      if (!subject.isWritten) await this.#write(subject);
      else await this.#settle(subject);
      this.#reasons.delete(id);
    } catch (error) {
      if (!isRefused(error) && !(error instanceof VolumeError)) throw error;
      this.#reasons.set(id, reasonOf(error));
      this.#host.log.warn({ volume: id, reason: reasonOf(error) }, "a volume could not be written");
    }
    if (subject.machine !== null) this.#changed(subject.machine);
    return false;
  }

  /** Takes the next step until a volume or snapshot has its contents. */
  async #write(volume: VolumeSubject): Promise<void> {
    const { id, source, isSnapshot } = volume;
    if (source === null) {
      await this.#claim(volume);
      return this.#written(id, 0);
    }
    const from = this.#host.volume(source);
    // It comes back here when its source is written.
    if (from && !from.isWritten) return;
    const isOfVolume = this.#hasClaim(source);
    if (!isOfVolume && !this.#snapshotOf(source))
      throw new VolumeError(`its source ${source} is missing in the cluster`);
    // A fork is the copy of a snapshot that only this copy needs.
    const name = isOfVolume ? volumeName(volume) : volumeName({ id: source });
    const bytes = isOfVolume ? await this.#take(volume, source) : sizeOf(this.#snapshotOf(source));
    if (bytes === undefined) return;
    if (!isSnapshot) await this.#claim(volume, name);
    this.#written(id, bytes);
  }

  #written(id: string, bytes: number): void {
    this.#host.events.written(id, bytes);
    for (const other of this.#copiesOf(id)) this.changed(other);
    // It was deleted meanwhile.
    if (!this.#host.volume(id)) this.changed(id);
  }

  /** The volumes and snapshots that have yet to be copied from this one. */
  #copiesOf(id: string): string[] {
    return this.#host.unsettledVolumes().filter((other) => this.#host.volume(other)?.source === id);
  }

  #hasClaim(id: string): boolean {
    return this.#claimed.has(id) || this.#claims.all().some(isOf(id));
  }

  #snapshotOf(id: string): VolumeSnapshot | undefined {
    return this.#snapshots?.all().find(isOf(id));
  }

  /** Takes a snapshot of a volume, for a snapshot or for a fork. Returns its bytes once it is complete. */
  async #take(volume: VolumeSubject, source: string): Promise<number | undefined> {
    const snapshot = this.#snapshotOf(volume.id);
    const { error } = snapshot?.status ?? {};
    if (error && !snapshot?.status?.readyToUse)
      this.#host.log.warn({ volume: volume.id, reason: error.message }, "the cluster cannot take a snapshot yet");
    if (snapshot?.status?.readyToUse) return sizeOf(snapshot);
    if (!snapshot)
      await this.#cluster.apply({
        apiVersion: snapshotVersion,
        kind: "VolumeSnapshot",
        metadata: await this.#metadataOf(volume),
        spec: { source: { persistentVolumeClaimName: volumeName({ id: source }) } },
      } as VolumeSnapshot);
    await this.#makeForCopies(source);
    return undefined;
  }

  /** Some clusters make a volume when it is first mounted. One that is copied before is made now. */
  async #makeForCopies(id: string): Promise<void> {
    const claim = this.#claims.all().find(isOf(id));
    const { name = "", namespace = "", annotations = {} } = claim?.metadata ?? {};
    const node = this.#nodeOf(this.#host.volume(id)?.region ?? "");
    if (claim?.status?.phase !== "Pending" || annotations[nodeAnnotation] !== undefined || node === undefined) return;
    const named = { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace } };
    await this.#cluster.annotate(named, { [nodeAnnotation]: node });
  }

  async #metadataOf(volume: VolumeSubject) {
    const namespace = await this.#namespaces.ensure(volume.network);
    const { dataId } = this.#host;
    return { name: volumeName(volume), namespace, labels: { [labels.data]: dataId, [labels.volume]: volume.id } };
  }

  /** Claims a volume; it begins with the contents of a snapshot, if one is named. */
  async #claim(volume: VolumeSubject, snapshot?: string): Promise<void> {
    this.#claimed.add(volume.id);
    const dataSource = { apiGroup: snapshotGroup, kind: "VolumeSnapshot", name: snapshot };
    await this.#cluster.apply({
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: await this.#metadataOf(volume),
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: `${volume.sizeGb}Gi` } },
        ...(snapshot === undefined ? {} : { dataSource }),
      },
    } as V1PersistentVolumeClaim);
  }

  /** Does what a volume needs that has its contents: more room, and no snapshot from which it was copied. */
  async #settle(volume: VolumeSubject): Promise<void> {
    const claim = this.#claims.all().find(isOf(volume.id));
    if (!claim || volume.isSnapshot) return;
    const { name: source } = claim.spec?.dataSource ?? {};
    const asked = quantity(claim.spec?.resources?.requests?.["storage"]);
    if (asked < volume.sizeGb * 2 ** 30) await this.#claim(volume, source);
    if (this.#copiesOf(volume.id).length > 0) await this.#makeForCopies(volume.id);
    if (claim.status?.phase !== "Bound" || source === undefined) return;
    if (source === volumeName(volume)) await this.#removeSnapshot(volume.id);
    // Its source may have been kept for it.
    for (const other of this.#host.unsettledVolumes()) if (!this.#host.volume(other)) this.changed(other);
  }

  /** Removes what is left of a volume or snapshot that was deleted. */
  async #discard(id: string): Promise<void> {
    // A copy that is not complete needs it; it comes back here when that is complete.
    if (this.#copiesOf(id).length > 0 || this.#isAwaited(volumeName({ id }))) return;
    await this.#removeSnapshot(id);
    const claim = this.#claims.all().find(isOf(id));
    if (claim?.metadata) {
      const { name = "", namespace = "", uid, deletionTimestamp } = claim.metadata;
      const named = { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace } };
      if (deletionTimestamp === undefined) await this.#cluster.delete(named, uid);
    }
    // It comes back here when the cluster has removed them.
    if (claim || this.#snapshotOf(id)) return;
    this.#host.events.discarded(id);
    for (const other of this.#host.unsettledVolumes()) this.changed(other);
  }

  /** Whether the cluster has yet to copy a volume from the snapshot with this name: some do so when it is first mounted. */
  #isAwaited(name: string): boolean {
    return this.#claims.all().some(({ spec, status }) => spec?.dataSource?.name === name && status?.phase !== "Bound");
  }

  async #removeSnapshot(id: string): Promise<void> {
    const { name = "", namespace = "", uid, deletionTimestamp } = this.#snapshotOf(id)?.metadata ?? {};
    if (uid === undefined || deletionTimestamp !== undefined) return;
    await this.#cluster.delete(
      { apiVersion: snapshotVersion, kind: "VolumeSnapshot", metadata: { name, namespace } },
      uid,
    );
  }
}

/** A volume cannot be written, and trying again does not help. */
class VolumeError extends Error {}

const sizeOf = (snapshot: VolumeSnapshot | undefined): number | undefined =>
  snapshot?.status?.readyToUse ? quantity(snapshot.status.restoreSize) : undefined;

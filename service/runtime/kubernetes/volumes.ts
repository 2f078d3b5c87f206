// Volumes as claims of the cluster, snapshots as its snapshots.
import type { KubernetesObject, V1PersistentVolumeClaim } from "@kubernetes/client-node";
import { Impossible, type Reports, type VolumeDriver } from "../reconciler/driver.ts";
import { copiesOf } from "../reconciler/volumes.ts";
import type { RuntimeHost, VolumeSubject } from "../runtime.ts";
import type { Cluster } from "./cluster.ts";
import { kinds, labels, nodeAnnotation, selectorOf, snapshotGroup, volumeName } from "./names.ts";
import type { Namespaces } from "./namespaces.ts";
import { quantity } from "./nodes.ts";
import { Watched } from "./watched.ts";

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
export class KubernetesVolumes implements VolumeDriver {
  readonly #cluster: Cluster;
  readonly #host: RuntimeHost;
  readonly #reports: Reports;
  readonly #namespaces: Namespaces;
  readonly #claims: Watched<V1PersistentVolumeClaim>;
  /** Undefined if the cluster has none, and until it is connected. */
  #snapshots: Watched<VolumeSnapshot> | undefined;
  readonly #seen = ({ metadata }: KubernetesObject, isGone: boolean): void => {
    const id = metadata?.labels?.[labels.volume];
    if (id !== undefined) this.#reports.volumeChanged(id);
    if (isGone) this.#namespaces.changed(metadata?.namespace ?? "");
  };
  /** Volumes that were just claimed, so that the cluster has said nothing about them yet. */
  readonly #claimed = new Set<string>();
  readonly #nodeOf: (region: string) => string | undefined;

  /** `nodeOf` names a node of a region. */
  constructor(
    cluster: Cluster,
    host: RuntimeHost,
    reports: Reports,
    namespaces: Namespaces,
    nodeOf: (region: string) => string | undefined,
  ) {
    this.#nodeOf = nodeOf;
    this.#cluster = cluster;
    this.#host = host;
    this.#reports = reports;
    this.#namespaces = namespaces;
    const mine = selectorOf(host.dataId);
    this.#claims = new Watched<V1PersistentVolumeClaim>(cluster, kinds.claim, mine, host.log, (claim, isGone) => {
      this.#claimed.delete(claim.metadata?.labels?.[labels.volume] ?? "");
      this.#seen(claim, isGone);
    });
  }

  async begin(): Promise<void> {
    const { log, dataId } = this.#host;
    if (this.#cluster.hasSnapshots)
      this.#snapshots = new Watched(this.#cluster, kinds.snapshot, selectorOf(dataId), log, this.#seen);
    await Promise.all([this.#claims.begin(), this.#snapshots?.begin()]);
  }

  async close(): Promise<void> {
    await Promise.all([this.#claims.close(), this.#snapshots?.close()]);
  }

  /** Everything that the cluster has of volumes. */
  claims(): readonly KubernetesObject[] {
    return [...this.#claims.all(), ...(this.#snapshots?.all() ?? [])];
  }

  all(): Promise<{ id: string; name: string | undefined }[]> {
    const named = ({ metadata }: KubernetesObject) => ({
      id: metadata?.labels?.[labels.volume] ?? "",
      name: metadata?.name,
    });
    return Promise.resolve(this.claims().map(named));
  }

  has(id: string): Promise<boolean> {
    return Promise.resolve(this.#hasClaim(id));
  }

  create(volume: VolumeSubject): Promise<void> {
    return this.#claim(volume);
  }

  async copy(volume: VolumeSubject, source: string): Promise<number | undefined> {
    const isOfVolume = this.#hasClaim(source);
    if (!isOfVolume && !this.#snapshotOf(source))
      throw new Impossible(`its source ${source} is missing in the cluster`);
    // A fork is the copy of a snapshot that only this copy needs.
    const name = isOfVolume ? volumeName(volume) : volumeName({ id: source });
    const bytes = isOfVolume ? await this.#take(volume, source) : sizeOf(this.#snapshotOf(source));
    if (bytes !== undefined && !volume.isSnapshot) await this.#claim(volume, name);
    return bytes;
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
        apiVersion: kinds.snapshot.apiVersion,
        kind: kinds.snapshot.kind,
        metadata: await this.#metadataOf(volume),
        spec: { source: { persistentVolumeClaimName: volumeName({ id: source }) } },
      } as VolumeSnapshot);
    await this.#makeForCopies(source);
    return undefined;
  }

  /** Some clusters make a volume when it is first mounted. One that is copied before is made now. */
  async #makeForCopies(id: string): Promise<void> {
    const claim = this.#claims.all().find(isOf(id));
    const node = this.#nodeOf(this.#host.volume(id)?.region ?? "");
    if (claim?.status?.phase !== "Pending" || node === undefined) return;
    if (claim.metadata?.annotations?.[nodeAnnotation] !== undefined) return;
    await this.#cluster.annotate(kinds.claim, claim.metadata ?? {}, { [nodeAnnotation]: node });
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

  /** More room, and no snapshot from which it was copied. */
  async settle(volume: VolumeSubject): Promise<void> {
    const claim = this.#claims.all().find(isOf(volume.id));
    if (!claim || volume.isSnapshot) return;
    const { name: source } = claim.spec?.dataSource ?? {};
    const asked = quantity(claim.spec?.resources?.requests?.["storage"]);
    if (asked < volume.sizeGb * 2 ** 30) await this.#claim(volume, source);
    if (copiesOf(this.#host, volume.id).length > 0) await this.#makeForCopies(volume.id);
    if (claim.status?.phase !== "Bound" || source === undefined) return;
    if (source === volumeName(volume)) await this.#removeSnapshot(volume.id);
    // Its source may have been kept for it.
    for (const other of this.#host.unsettledVolumes())
      if (!this.#host.volume(other)) this.#reports.volumeChanged(other);
  }

  async remove(id: string): Promise<boolean> {
    // It comes back here when that is complete.
    if (this.#isAwaited(volumeName({ id }))) return false;
    await this.#removeSnapshot(id);
    const claim = this.#claims.all().find(isOf(id));
    if (claim) await this.#cluster.delete(kinds.claim, claim.metadata);
    // It comes back here when the cluster has removed them.
    return !claim && !this.#snapshotOf(id);
  }

  /** Whether the cluster has yet to copy a volume from the snapshot with this name: some do so when it is first mounted. */
  #isAwaited(name: string): boolean {
    return this.#claims.all().some(({ spec, status }) => spec?.dataSource?.name === name && status?.phase !== "Bound");
  }

  async #removeSnapshot(id: string): Promise<void> {
    const snapshot = this.#snapshotOf(id);
    if (snapshot) await this.#cluster.delete(kinds.snapshot, snapshot.metadata);
  }
}

const sizeOf = (snapshot: VolumeSnapshot | undefined): number | undefined =>
  snapshot?.status?.readyToUse ? quantity(snapshot.status.restoreSize) : undefined;

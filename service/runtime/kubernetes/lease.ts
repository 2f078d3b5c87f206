// A lease of the cluster, so that two services never act for the same data: only its holder opens the store and changes the cluster.
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { V1MicroTime, type V1Lease } from "@kubernetes/client-node";
import { reasonOf, statusOf, type Cluster } from "./cluster.ts";

// Times in milliseconds, as the components of a cluster have them.
/** Without a renewal for this long, another service may take the lease. */
const lastsMs = 15_000;
/** The holder gives up if it could not renew for this long. */
const giveUpMs = 10_000;
/** Pause between two renewals. */
const pauseMs = 2000;

/** Who wants a lease, and what for. */
export interface LeaseOptions {
  readonly name: string;
  /** A service with the same identity takes it over at once: its folder has a lock of its own. */
  readonly holder: string;
  /** Called with the present holder, if this one has to wait. */
  readonly waiting?: (holder: string) => void;
  /** Called when the lease is lost: nothing may be changed any more. */
  readonly lost: (reason: string) => void;
  /** Whether a cluster that does not answer is waited for: the service acts on others meanwhile. Default: the lease is lost. */
  readonly outlastsOutages?: boolean;
}

/** The identity of a service with its data in a folder. */
export const holderOf = (folder: string): string => `${hostname()}:${folder}`;

/** A lease that is held. */
export class Lease {
  readonly #cluster: Cluster;
  readonly #options: LeaseOptions;
  readonly #closed = new AbortController();
  #lease: V1Lease | undefined;
  #renewing: Promise<void> | undefined;
  #renewed = 0;

  private constructor(cluster: Cluster, options: LeaseOptions) {
    this.#cluster = cluster;
    this.#options = options;
  }

  /** Takes the lease as soon as no other service holds it, and renews it from then on. */
  static async take(cluster: Cluster, options: LeaseOptions): Promise<Lease> {
    const lease = new Lease(cluster, options);
    await lease.#take();
    lease.#renewing = lease.#renew();
    return lease;
  }

  /** Gives it back, so that another one need not wait. */
  async release(): Promise<void> {
    this.#closed.abort();
    await this.#renewing;
    if (this.#lease) await this.#write(this.#lease, "").catch(() => {});
  }

  async #take(): Promise<void> {
    let seen: { readonly renewed: string; readonly at: number } | undefined;
    let waitedFor: string | undefined;
    for (;;) {
      const lease = await this.#read();
      const { holderIdentity: holder, renewTime } = lease?.spec ?? {};
      const renewed = JSON.stringify(renewTime ?? null);
      // Its time is measured here, because clocks of computers differ.
      if (seen?.renewed !== renewed) seen = { renewed, at: performance.now() };
      const isFree = !holder || holder === this.#options.holder || performance.now() - seen.at >= lastsMs;
      const begun = performance.now();
      if (isFree && (await this.#write(lease, this.#options.holder))) {
        this.#renewed = begun;
        // A process that was stopped meanwhile must not send what it had begun.
        this.#cluster.fence.isOpen = () => performance.now() - this.#renewed < lastsMs;
        return;
      }
      if (holder !== undefined && holder !== waitedFor && !isFree) this.#options.waiting?.((waitedFor = holder));
      await sleep(pauseMs / 4);
    }
  }

  async #renew(): Promise<void> {
    while (!this.#closed.signal.aborted) {
      await sleep(pauseMs, undefined, { signal: this.#closed.signal }).catch(() => {});
      if (this.#closed.signal.aborted) return;
      let reason = "the Kubernetes cluster does not answer";
      try {
        const begun = performance.now();
        const lease = await this.#read();
        const holder = lease?.spec?.holderIdentity;
        if (holder && holder !== this.#options.holder) return this.#lose(`${holder} has it`);
        if (await this.#write(lease, this.#options.holder)) this.#renewed = begun;
      } catch (error) {
        reason = reasonOf(error);
      }
      // The process may also have been stopped meanwhile.
      if (!this.#options.outlastsOutages && performance.now() - this.#renewed >= giveUpMs)
        return this.#lose(`it could not be renewed: ${reason}`);
    }
  }

  #lose(reason: string): void {
    this.#lease = undefined;
    if (!this.#closed.signal.aborted) this.#options.lost(reason);
  }

  async #read(): Promise<V1Lease | undefined> {
    return this.#cluster.lease(this.#options.name);
  }

  /** Writes the holder; false if another one was faster. */
  async #write(before: V1Lease | undefined, holder: string): Promise<boolean> {
    const now = new V1MicroTime();
    const isSame = before?.spec?.holderIdentity === holder;
    const body: V1Lease = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      // With the version that was read, so that of two only one succeeds.
      metadata: { ...before?.metadata, name: this.#options.name },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: Math.ceil(lastsMs / 1000),
        renewTime: now,
        // Others look only at the time of the renewal.
        ...(isSame ? {} : { acquireTime: now }),
      },
    };
    try {
      this.#lease = await this.#cluster.writeLease(body, before === undefined);
      return true;
    } catch (error) {
      if (statusOf(error) !== 409) throw error;
      return false;
    }
  }
}

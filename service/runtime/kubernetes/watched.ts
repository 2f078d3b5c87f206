// The objects of one kind as the cluster last said. They are listed once and then watched: nothing is polled.
import { setTimeout as sleep } from "node:timers/promises";
import { ListWatch, Watch, type KubernetesListObject, type KubernetesObject } from "@kubernetes/client-node";
import type { Log } from "../runtime.ts";
import { newPause } from "../steps.ts";
import { reasonOf, type Cluster } from "./cluster.ts";
import type { Kind } from "./names.ts";

/** The objects of a kind that a selector matches. */
export class Watched<T extends KubernetesObject> {
  readonly #list: ListWatch<T>;
  readonly #log: Log;
  readonly #closed = new AbortController();
  readonly #kind: Kind;
  #isListed = false;
  #pause = newPause();
  #isWaiting = false;
  #listed: () => void = () => {};

  /** `changed` gets each object that was created, changed or deleted, and its last form, until this is closed. */
  constructor(
    cluster: Cluster,
    kind: Kind,
    selector: string | undefined,
    log: Log,
    changed: (object: T, isDeleted: boolean) => void,
  ) {
    this.#kind = kind;
    this.#log = log;
    const list = async (): Promise<KubernetesListObject<T>> => {
      const listed = (await cluster.list(kind, selector)) as KubernetesListObject<T>;
      // The library reports the objects at once after this.
      setImmediate(() => this.#ready());
      return listed;
    };
    const watch = new WatchAfterRestore(cluster, kind, this.#closed.signal);
    this.#list = new ListWatch<T>(kind.path, watch, list, false, selector);
    const report = (object: T, isDeleted: boolean): void => {
      // The library reports what it was still fetching when it was stopped.
      if (!this.#closed.signal.aborted) changed(object, isDeleted);
    };
    for (const event of ["add", "update"] as const) this.#list.on(event, (object) => report(object, false));
    this.#list.on("delete", (object) => report(object, true));
    this.#list.on("error", (error) => {
      watch.isDoubtful = true;
      void this.#again(error);
    });
    this.#list.on("connect", () => {
      if (this.#isListed) this.#pause = newPause();
    });
  }

  /** Begins, and resolves once all objects are listed. */
  async begin(): Promise<void> {
    const listed = new Promise<void>((resolve) => (this.#listed = resolve));
    void this.#list.start();
    await listed;
  }

  /** An object; undefined if there is none. */
  get(name: string, namespace?: string): T | undefined {
    return this.#list.get(name, namespace);
  }

  /** All objects. */
  all(): readonly T[] {
    return this.#list.list();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#listed();
    await this.#list.stop();
  }

  #ready(): void {
    this.#isListed = true;
    this.#listed();
  }

  /** Begins again after an error: with the changes since the last one, or with a new list if the cluster no longer has them. */
  async #again(error: unknown): Promise<void> {
    if (this.#closed.signal.aborted || this.#isWaiting) return;
    this.#isWaiting = true;
    this.#log.warn({ kind: this.#kind.kind, reason: reasonOf(error) }, "a watch of the Kubernetes cluster has ended");
    await rest(this.#pause(), this.#closed.signal);
    this.#isWaiting = false;
    if (!this.#closed.signal.aborted) void this.#list.start();
  }
}

/**
 * A watch that does not wait for a version which the cluster has lost. After a restore from a backup, a cluster is at an earlier
 * version, and reports no change until it reaches the old one again.
 */
class WatchAfterRestore extends Watch {
  /** Whether the connection was lost, so the cluster may have been restored meanwhile. */
  isDoubtful = false;
  readonly #cluster: Cluster;
  readonly #kind: Kind;
  readonly #closed: AbortSignal;

  constructor(cluster: Cluster, kind: Kind, closed: AbortSignal) {
    super(cluster.config);
    this.#closed = closed;
    this.#cluster = cluster;
    this.#kind = kind;
  }

  override async watch(...[path, query, seen, done]: Parameters<Watch["watch"]>): Promise<AbortController> {
    const isDoubtful = this.isDoubtful;
    this.isDoubtful = false;
    const none = new AbortController();
    try {
      // The library begins a watch also when it was stopped during the list.
      if (this.#closed.aborted) return none;
      if (isDoubtful && (await this.#cluster.version(this.#kind)) < Number(query["resourceVersion"]))
        done({ code: gone });
      else {
        const watch = await super.watch(path, query, seen, done);
        if (this.#closed.aborted) watch.abort();
        return watch;
      }
    } catch (error) {
      done(error);
    }
    return none;
  }
}

/** The answer of a cluster that no longer has the changes after a version: all objects are listed again. */
const gone = 410;

/** Waits, at most until the signal is aborted. */
const rest = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, { signal }).catch(() => {});

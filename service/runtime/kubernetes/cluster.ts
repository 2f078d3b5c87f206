// The connection to a Kubernetes cluster.
import {
  ApiException,
  ApisApi,
  CoordinationV1Api,
  CoreV1Api,
  HttpMethod,
  createConfiguration,
  KubeConfig,
  KubernetesObjectApi,
  PatchStrategy,
  ServerConfiguration,
  setHeaderOptions,
  type Configuration,
  type KubernetesObject,
  type RequestContext,
  type V1Lease,
  type V1ObjectMeta,
  type V1Pod,
} from "@kubernetes/client-node";
import { Refusal } from "../../refusal.ts";
import { allowingBy } from "../allowing.ts";
import type { Unsure } from "../fence.ts";
import type { Failures } from "../reconciler/driver.ts";
import { fieldManager, snapshotGroup, type Kind } from "./names.ts";

/** A cluster that cannot be used; the message says why and what to do. */
export class ClusterError extends Error {
  override readonly name = "ClusterError";
}

// ASSUMED: an API server answers a request that is no stream within half a minute.
const answerMs = 30_000;

/** What requests have to wait for. */
export interface Fence {
  /** Whether any may be sent; a lease replaces it. */
  isOpen: () => boolean;
  /** What changes have to wait for. */
  unsure: Unsure;
}

/** A cluster, and the connection to it. */
export class Cluster {
  readonly config: KubeConfig;
  readonly #configuration: Configuration;
  readonly #objects: KubernetesObjectApi;
  readonly #core: CoreV1Api;
  readonly #coordination: CoordinationV1Api;
  readonly fence: Fence;
  /** The namespace of the service itself. */
  readonly namespace: string;
  #groups: ReadonlySet<string> = new Set();

  private constructor(config: KubeConfig, server: string) {
    const fence: Fence = { isOpen: () => true, unsure: () => undefined };
    const begin = (request: RequestContext): RequestContext => {
      if (!fence.isOpen() && !request.getUrl().includes("/leases")) throw new Error("the lease has run out");
      request.setSignal(AbortSignal.timeout(answerMs));
      return request;
    };
    const configuration = createConfiguration({
      baseServer: new ServerConfiguration(server, {}),
      authMethods: { default: config },
      promiseMiddleware: [
        {
          pre: async (request) => {
            const unsure = request.getHttpMethod() === HttpMethod.GET ? undefined : fence.unsure();
            if (unsure) await unsure;
            return begin(request);
          },
          post: (response) => Promise.resolve(response),
        },
      ],
    });
    this.config = config;
    this.fence = fence;
    this.#configuration = configuration;
    this.#objects = new KubernetesObjectApi(configuration);
    this.#core = new CoreV1Api(configuration);
    this.#coordination = new CoordinationV1Api(configuration);
    this.namespace = config.getContextObject(config.getCurrentContext())?.namespace ?? "default";
  }

  /**
   * Reads which cluster a file names, without a request to it. Default: that of `KUBECONFIG`, of `~/.kube/config`, or the one that this
   * process runs in.
   * @throws ClusterError if there is none.
   */
  static of(file?: string): Cluster {
    const config = new KubeConfig();
    try {
      if (file === undefined) config.loadFromDefault();
      else config.loadFromFile(file);
      const server = config.getCurrentCluster()?.server;
      if (server === undefined) throw new Error("no cluster is configured");
      return new Cluster(config, server);
    } catch (error) {
      if (file !== undefined) throw new ClusterError(`${file} names no Kubernetes cluster: ${reasonOf(error)}`);
      throw new ClusterError(notAnswering("http://localhost:8080", error));
    }
  }

  /**
   * Asks the cluster what it has, once.
   * @throws ClusterError if it does not answer.
   */
  async connect(): Promise<void> {
    if (this.#groups.size > 0) return;
    try {
      const { groups } = await new ApisApi(this.#configuration).getAPIVersions();
      this.#groups = new Set(groups.map(({ name }) => name));
    } catch (error) {
      throw new ClusterError(notAnswering(this.config.getCurrentCluster()?.server ?? "", error));
    }
  }

  /** Whether it has a group of kinds; false until it has answered. */
  has(group: string): boolean {
    return this.#groups.has(group);
  }

  /** Whether it has snapshots of volumes. */
  get hasSnapshots(): boolean {
    return this.has(snapshotGroup);
  }

  /** Creates an object, or changes the fields that the service owns. */
  async apply(object: KubernetesObject): Promise<void> {
    await this.#objects.patch(object, undefined, undefined, fieldManager, true, PatchStrategy.ServerSideApply);
  }

  /** Adds annotations to an object, which others may change. */
  async annotate(
    { apiVersion, kind }: Kind,
    named: V1ObjectMeta,
    annotations: V1ObjectMeta["annotations"],
  ): Promise<void> {
    const { name = "", namespace = "" } = named;
    const change = { apiVersion, kind, metadata: { name, namespace, ...(annotations && { annotations }) } };
    const merged = PatchStrategy.MergePatch;
    await this.#objects.patch(change, undefined, undefined, fieldManager, undefined, merged);
  }

  /** Creates an object that must not exist. */
  async create(object: KubernetesObject): Promise<void> {
    await this.#objects.create(object, undefined, undefined, fieldManager);
  }

  /** Changes what a running Pod may use. */
  async resize({ metadata }: V1Pod, spec: object): Promise<void> {
    const { name = "", namespace = "" } = metadata ?? {};
    const type = setHeaderOptions("Content-Type", PatchStrategy.StrategicMergePatch);
    await this.#core.patchNamespacedPodResize({ name, namespace, body: { spec }, fieldManager }, type);
  }

  /** Deletes an object, unless it is being deleted, or another one has its name meanwhile; by default, what it owns is deleted later. */
  async delete(
    { apiVersion, kind }: Kind,
    metadata: V1ObjectMeta = {},
    {
      graceSeconds,
      ownedFirst = false,
    }: { readonly graceSeconds?: number | undefined; readonly ownedFirst?: boolean } = {},
  ): Promise<void> {
    const { name = "", namespace, uid, deletionTimestamp } = metadata;
    // Without any grace the cluster forgets it at once, even one that it cannot end.
    if (deletionTimestamp !== undefined && graceSeconds !== 0) return;
    await allowing(
      // 409: another object has its name.
      [404, 409],
      this.#objects.delete(
        { apiVersion, kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } },
        ...([undefined, undefined, undefined, undefined, undefined] as const),
        // All of it in the body: beside one, a cluster does not read the query.
        {
          propagationPolicy: ownedFirst ? "Foreground" : "Background",
          ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
          ...(uid === undefined ? {} : { preconditions: { uid } }),
        },
      ),
    );
  }

  /** The values of a Secret, by their keys; undefined if there is none. Only cert-manager's are ever read. */
  async secret(name: string, namespace: string): Promise<Readonly<Record<string, string>> | undefined> {
    const found = await allowing([404], this.#core.readNamespacedSecret({ name, namespace }));
    const values = Object.entries(found?.data ?? {});
    return found && Object.fromEntries(values.map(([key, value]) => [key, Buffer.from(value, "base64").toString()]));
  }

  /** A lease in the service's own namespace; undefined if there is none. */
  lease(name: string): Promise<V1Lease | undefined> {
    return allowing([404], this.#coordination.readNamespacedLease({ name, namespace: this.namespace }));
  }

  /** Creates or changes a lease in the service's own namespace. */
  writeLease(body: V1Lease, isNew: boolean): Promise<V1Lease> {
    const { namespace } = this;
    if (isNew) return this.#coordination.createNamespacedLease({ namespace, body });
    return this.#coordination.replaceNamespacedLease({ name: body.metadata?.name ?? "", namespace, body });
  }

  /** The current version of the objects of a kind; versions of a cluster rise. */
  async version({ apiVersion, kind, namespace }: Kind): Promise<number> {
    const { metadata } = await this.#objects.list(
      ...([apiVersion, kind, namespace, undefined, undefined, undefined, undefined, undefined, 1] as const),
    );
    return Number(metadata?.resourceVersion);
  }

  /** Lists the objects of a kind, in all namespaces or in its own one. */
  list({ apiVersion, kind, namespace }: Kind, selector: string | undefined) {
    return this.#objects.list(
      ...([apiVersion, kind, namespace, undefined, undefined, undefined, undefined, selector] as const),
    );
  }
}

const notAnswering = (server: string, error: unknown): string =>
  `no Kubernetes cluster answers at ${server} (${reasonOf(error)}). Set KUBECONFIG, or use another --runtime.`;

/** The status of a cluster's answer; undefined if it did not answer. */
export const statusOf = (error: unknown): number | undefined =>
  error instanceof ApiException ? error.code : undefined;

/** What the cluster said, or the code of the connection error. */
export function reasonOf(error: unknown): string {
  if (error instanceof ApiException) return messageOf(error.body) ?? `status ${error.code}`;
  if (!(error instanceof Error)) return "unknown error";
  const { cause } = error;
  if (cause instanceof Error) return "code" in cause ? String(cause.code) : cause.message;
  return error.message;
}

function messageOf(body: unknown): string | undefined {
  if (typeof body === "string") {
    try {
      return messageOf(JSON.parse(body));
    } catch {
      return body === "" ? undefined : body.slice(0, 500);
    }
  }
  const message = typeof body === "object" && body !== null && "message" in body ? body.message : undefined;
  return typeof message === "string" ? message : undefined;
}

/** Whether the cluster answered; if not, the same request may succeed later. */
export const isAnswered = (error: unknown): boolean => statusOf(error) !== undefined;

/** How failures of a cluster are reported. It has refused an object if it would refuse the same request again. */
export const ofCluster: Failures = {
  failed: "the Kubernetes cluster refused or did not answer",
  reasonOf,
  isRefusal: (error) => [400, 422].includes(statusOf(error) ?? 0),
};

/** The refusal of a request that needs the cluster while it does not answer. */
export const clusterGone = (error: unknown): Refusal =>
  new Refusal(
    503,
    { error: `unavailable: the Kubernetes cluster does not answer (${reasonOf(error)}); nothing was changed` },
    { "retry-after": "2" },
  );

/** Runs a request of the cluster, and ignores these statuses. */
export const allowing = allowingBy(statusOf);

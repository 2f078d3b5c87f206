// The Kubernetes driver: each start of a Machine is a Pod.
import type { KubernetesObject, V1Node, V1Pod } from "@kubernetes/client-node";
import { parseImageReference } from "../../../api/image.ts";
import type { MachineConfig } from "../../../api/machineConfig.ts";
import type { SignalName } from "../../../api/signals.ts";
import { Refusal } from "../../refusal.ts";
import type { ChallengeRoutes, IssuerFactory } from "../certificateIssuer.ts";
import { portsOf } from "../checks.ts";
import { endpointOf } from "../endpoint.ts";
import { lastLinesOf } from "../lastLines.ts";
import { unseen } from "../probe.ts";
import { Impossible, type Driver, type Published, type Reports } from "../reconciler/driver.ts";
import type {
  Command,
  Exit,
  FoundImage,
  LogLine,
  LogQuery,
  Outcome,
  Process,
  RuntimeHost,
  StopRequest,
  Subject,
  TerminalRequest,
  TerminalSession,
  Usage,
} from "../runtime.ts";
import { stopRequest } from "../stopRequest.ts";
import { Budgets } from "./budgets.ts";
import { CertManager } from "./certManager.ts";
import { Challenges, throughProxies, type ChallengeTarget } from "./challenges.ts";
import { allowing, clusterGone, isAnswered, ofCluster, type Cluster } from "./cluster.ts";
import { runCommand } from "./exec.ts";
import type { Lease } from "./lease.ts";
import { podLogs } from "./logs.ts";
import { kinds, labels, selectorOf } from "./names.ts";
import { Namespaces } from "./namespaces.ts";
import { lostSince, nodeIn, Room } from "./nodes.ts";
import { containerName, filesOf, graceOf, podOf, resourcesOf, secretOf } from "./pod.ts";
import {
  exitOf,
  hasEnded,
  hasRun,
  instanceOf,
  isOf,
  isRunning,
  obstacleOf,
  unplacedOf,
  type PodOf,
} from "./podStatus.ts";
import { processesOf, sendSignal } from "./processes.ts";
import { Routes } from "./routes.ts";
import { openTerminal } from "./terminal.ts";
import { unsupported } from "./unsupported.ts";
import { usageOf } from "./usage.ts";
import { KubernetesVolumes } from "./volumes.ts";
import { Watched } from "./watched.ts";

/** Options of the runtime. */
export interface KubernetesOptions {
  /** Milliseconds that a Machine waits for a node with room for it. Default: two minutes. */
  readonly placementMs?: number;
  /** Milliseconds between the withdrawal of a Machine from requests and its stop signal. Default: three seconds. */
  readonly drainMs?: number;
  /** Class of the Ingresses, or `none` for no Ingresses. Default: that of the cluster. */
  readonly ingressClass?: string | undefined;
  /** The region that all nodes of the cluster are in. Default: each node has the label of its region. */
  readonly onlyRegion?: string | undefined;
  /** Where the cluster reaches this service for the checks of an ACME authority. Default: nowhere. */
  readonly challengeTarget?: ChallengeTarget | undefined;
  /** Milliseconds after which a Machine of a lost node is started elsewhere. Default: five minutes. */
  readonly lostNodeMs?: number;
  /** The ClusterIssuer of cert-manager that issues certificates. Default: cert-manager issues none. */
  readonly clusterIssuer?: string | undefined;
}

// ASSUMED: a cluster that adds nodes by itself does so within two minutes.
const usualPlacementMs = 120_000;
// ASSUMED: a node that was not reached for five minutes is lost, as for the cluster itself. Its Machines may still run there, without a connection to it.
const usualLostNodeMs = 5 * 60_000;
// ASSUMED: ingress controllers and nodes follow a change within three seconds. Traefik applies one every two seconds, others sooner.
const usualDrainMs = 3000;

/**
 * Does what a cluster does.
 * ASSUMED: a cluster cannot keep the memory of a Pod. A suspended Machine has none, and starts like a stopped one.
 */
export class KubernetesDriver implements Driver<PodOf> {
  readonly name = "kubernetes";
  readonly place = "the cluster";
  readonly failures = ofCluster;
  // The cluster gives a Pod the time that its configuration says.
  readonly killsOnRemove = false;
  readonly routes: Routes;
  readonly volumes: KubernetesVolumes;
  readonly challengeRoutes: ChallengeRoutes | undefined;
  readonly issuer: IssuerFactory | undefined;
  isReady = false;
  readonly #cluster: Cluster;
  readonly #host: RuntimeHost;
  readonly #reports: Reports;
  readonly #connected: (closed: AbortSignal) => Promise<Lease | undefined>;
  readonly #onlyRegion: string | undefined;
  #lease: Lease | undefined;
  readonly #placementMs: number;
  readonly #pods: Watched<V1Pod>;
  readonly #nodes: Watched<V1Node>;
  readonly #room = new Room();
  readonly #namespaces: Namespaces;
  readonly #challenges: Challenges;
  readonly #certManager: CertManager | undefined;
  readonly #budgets: Budgets;
  readonly #lostNodeMs: number;
  /** The last form of Pods that are gone, by Machine: how they ended. */
  readonly #last = new Map<string, V1Pod>();
  /** The Machines whose nodes are lost. */
  readonly #unreachable = new Set<string>();

  constructor(
    cluster: Cluster,
    host: RuntimeHost,
    reports: Reports,
    options: KubernetesOptions,
    connected: (closed: AbortSignal) => Promise<Lease | undefined>,
  ) {
    const { placementMs = usualPlacementMs, drainMs = usualDrainMs, lostNodeMs = usualLostNodeMs } = options;
    const { ingressClass, challengeTarget, clusterIssuer, onlyRegion } = options;
    this.#lostNodeMs = lostNodeMs;
    this.#cluster = cluster;
    this.#connected = connected;
    this.#onlyRegion = onlyRegion;
    this.#host = host;
    this.#reports = reports;
    this.#placementMs = placementMs;
    const mine = selectorOf(host.dataId);
    this.#pods = new Watched<V1Pod>(cluster, kinds.pod, mine, host.log, (pod, isGone) => this.#seen(pod, isGone));
    this.#nodes = new Watched<V1Node>(cluster, kinds.node, undefined, host.log, (node) => this.#nodeSeen(node));
    this.#namespaces = new Namespaces(cluster, host, (namespace) => this.#isUsed(namespace));
    const nodeOf = (region: string): string | undefined => nodeIn(region, this.#nodes.all(), onlyRegion);
    this.volumes = new KubernetesVolumes(cluster, host, reports, this.#namespaces, nodeOf);
    const isEnding = (id: string): boolean =>
      this.#find(id)?.metadata?.deletionTimestamp !== undefined || this.isUnreachable(id);
    const isAvailable = ({ id, state, config, isCordoned }: Subject, pod: V1Pod): boolean => {
      const isGoing = pod.metadata?.deletionTimestamp !== undefined || this.#lostSince(pod) !== undefined;
      if (state !== "started" || isGoing) return false;
      return (config.services ?? []).length === 0 || (!isCordoned && reports.isServing(id));
    };
    const podOf = (id: string, namespace: string): V1Pod | undefined => this.#pods.get(id, namespace);
    this.#budgets = new Budgets(cluster, host, this.#namespaces, { podOf, isAvailable });
    this.#certManager = clusterIssuer === undefined ? undefined : new CertManager(cluster, host, clusterIssuer);
    this.issuer = this.#certManager?.issuer;
    this.routes = new Routes(cluster, host, reports, this.#namespaces, {
      ...{ ingressClass, drainMs, isEnding },
      appChanged: (id) => {
        this.#certManager?.appChanged(id);
        this.#budgets.appChanged(id);
      },
      gone: (id) => {
        this.#certManager?.appChanged(id);
        this.#budgets.gone(id);
      },
      machineChanged: (machine) => this.#budgets.machineChanged(machine),
    });
    // Also without a target: an earlier run may have left some.
    const place = challengeTarget === "proxies" ? undefined : challengeTarget;
    this.#challenges = new Challenges(cluster, host, place, ingressClass);
    this.challengeRoutes = challengeTarget === "proxies" ? throughProxies : place && this.#challenges;
  }

  get copyProblem(): string | undefined {
    return this.#cluster.hasSnapshots
      ? undefined
      : "the kubernetes runtime needs VolumeSnapshots (snapshot.storage.k8s.io/v1) to copy volumes, which the cluster does not have";
  }

  problem(config: MachineConfig): { field: string; message: string } | undefined {
    return unsupported(config);
  }

  hasRoom(config: MachineConfig, region: string, replaced?: string): boolean {
    // Until the nodes are known, the scheduler alone decides.
    return !this.isReady || this.#room.hasRoom(config, region, this.#nodes.all(), replaced, this.#onlyRegion);
  }

  // A cluster does not say which image a tag means before a Pod runs it.
  findImage(image: string): Promise<FoundImage> {
    return Promise.resolve({ digest: parseImageReference(image)?.digest ?? "", labels: {} });
  }

  begin(): void {
    void this.#begin();
  }

  async #begin(): Promise<void> {
    this.#lease = await this.#connected(this.#reports.closed);
    if (this.#reports.closed.aborted) return;
    // First: they say where the objects of a network are.
    await this.#namespaces.begin();
    if (this.#reports.closed.aborted) return;
    const others = this.#parts().filter((part) => part !== this.#namespaces);
    await Promise.all(others.map((part) => part.begin()));
    if (this.#reports.closed.aborted) return;
    this.isReady = true;
    for (const id of this.#host.ids()) this.routes.appChanged(this.#host.subject(id)?.appId ?? "");
    this.routes.lookAtAll();
    this.#challenges.lookAtAll();
    this.#certManager?.lookAtAll();
    this.#budgets.lookAtAll();
    for (const node of this.#nodes.all()) if (lostSince(node) !== undefined) this.#nodeSeen(node);
    this.#namespaces.lookAtAll();
    await this.#reports.lookAtAll(this.#pods.all().flatMap(({ metadata }) => metadata?.labels?.[labels.machine] ?? []));
  }

  /** What follows the cluster. */
  #parts(): readonly { begin(): Promise<void>; close(): Promise<void> }[] {
    const always = [
      this.#pods,
      this.#nodes,
      this.#namespaces,
      this.volumes,
      this.routes,
      this.#challenges,
      this.#budgets,
    ];
    return [...always, this.#certManager ?? []].flat();
  }

  async close(stepsEnded: Promise<void>): Promise<void> {
    await Promise.all([stepsEnded, ...this.#parts().map((part) => part.close())]);
    await this.#lease?.release();
  }

  /** The cluster has said something about a Pod. */
  #seen(pod: V1Pod, isGone: boolean): void {
    const id = pod.metadata?.labels?.[labels.machine];
    if (id === undefined) return;
    this.#room.seen(id, pod, isGone);
    if (isGone) this.#last.set(id, pod);
    this.#reports.changed(id);
    const machine = this.#host.subject(id);
    if (machine) this.#budgets.machineChanged(machine);
    if (isGone) this.#namespaces.changed(pod.metadata?.namespace ?? "");
  }

  /** The cluster has said something about a node: whether it is lost decides about its Machines. */
  #nodeSeen({ metadata }: V1Node): void {
    if (!this.isReady) return;
    for (const { spec, metadata: of } of this.#pods.all()) {
      const id = of?.labels?.[labels.machine];
      if (spec?.nodeName !== metadata?.name || id === undefined) continue;
      const isUnreachable = this.isUnreachable(id);
      if (this.#unreachable.has(id) === isUnreachable) continue;
      if (isUnreachable) this.#unreachable.add(id);
      else this.#unreachable.delete(id);
      this.#host.events.hostChanged(id);
      this.#reports.changed(id);
    }
  }

  isUnreachable(id: string): boolean {
    const pod = this.#find(id);
    return pod !== undefined && !hasEnded(pod) && this.#lostSince(pod) !== undefined;
  }

  /** Since when the node of a Pod is lost; undefined if it is not. */
  #lostSince({ spec }: V1Pod): number | undefined {
    if (!this.isReady || spec?.nodeName === undefined) return undefined;
    return lostSince(this.#nodes.get(spec.nodeName));
  }

  /**
   * Gives up the Pod of a node that is lost for long, so that its Machine starts elsewhere.
   * ASSUMED: not if it has a volume, which could then be written at two places. It waits for the node, or for an administrator who
   * removes the node or says that it is out of service: then the cluster ends the Pod and lets go of the volume.
   */
  async #leaveLostNode({ id, config }: Subject, pod: V1Pod): Promise<void> {
    const since = this.#lostSince(pod);
    if (since === undefined || hasEnded(pod) || (config.mounts ?? []).length > 0) return;
    const left = since + this.#lostNodeMs - this.#host.clock.now();
    if (left > 0) return this.#reports.lookLater(id, left);
    await this.#cluster.delete(kinds.pod, pod.metadata, { graceSeconds: 0 });
  }

  #isUsed(namespace: string): boolean {
    const inIt = ({ metadata }: KubernetesObject): boolean => metadata?.namespace === namespace;
    if (this.#pods.all().some(inIt) || this.volumes.claims().some(inIt)) return true;
    return this.#host.ids().some((id) => {
      const machine = this.#host.subject(id);
      return machine !== undefined && this.#namespaces.nameOf(machine.network) === namespace;
    });
  }

  /** The Pod of a Machine. It has the Machine's name, so the cluster itself takes care that there is only one. */
  #find(id: string, machine = this.#host.subject(id)): V1Pod | undefined {
    if (machine) return this.#pods.get(id, this.#namespaces.nameOf(machine.network));
    return this.#pods.all().find(({ metadata }) => metadata?.labels?.[labels.machine] === id);
  }

  async observe(id: string, machine: Subject | undefined): Promise<readonly PodOf[]> {
    const pod = this.#find(id, machine);
    if (pod && machine) await this.#leaveLostNode(machine, pod);
    return pod ? [instanceOf(pod, machine)] : [];
  }

  async prepare({ network }: Subject): Promise<void> {
    await this.#namespaces.ensure(network);
  }

  async start(machine: Subject, [instance]: readonly PodOf[]): Promise<boolean | Exit> {
    if (!instance) return this.#create(machine);
    const { pod, canStart } = instance;
    // The Pod of an earlier start: its name is needed.
    if (!canStart) return this.#delete(pod, graceOf(stopRequest(machine.config.stop_config)));
    if (isRunning(pod) || (hasEnded(pod) && hasRun(pod))) return true;
    if (hasEnded(pod)) return exitOf(pod, this.#lostSince(pod) !== undefined);
    const obstacle = obstacleOf(pod) ?? this.#unplaced(machine.id, pod);
    if (obstacle === undefined) return false;
    await this.#delete(pod, 1);
    throw new Impossible(obstacle);
  }

  /** Creates the Pod of this start. */
  async #create(machine: Subject): Promise<false> {
    const { dataId } = this.#host;
    const namespace = await this.#namespaces.ensure(machine.network);
    const files = filesOf(machine, dataId, namespace);
    this.#last.delete(machine.id);
    await this.#budgets.protect(machine);
    await this.#cluster.apply(secretOf(machine, dataId, namespace));
    if (files) await this.#cluster.apply(files);
    // Not applied: that would change the Pod of an earlier start, whose end this service has not seen yet.
    await allowing([409], this.#cluster.create(podOf(machine, dataId, namespace, this.#onlyRegion)));
    return false;
  }

  /** Why no node takes the Pod; undefined as long as one may still be added to the cluster. */
  #unplaced(id: string, pod: V1Pod): string | undefined {
    const unplaced = unplacedOf(pod);
    if (!unplaced) return undefined;
    const left = unplaced.since + this.#placementMs - this.#host.clock.now();
    if (left <= 0) return `no node has room for it: ${unplaced.reason}`;
    this.#reports.lookLater(id, left);
    return undefined;
  }

  async stop({ pod }: PodOf, request: StopRequest): Promise<void> {
    if (pod.metadata?.deletionTimestamp !== undefined) return;
    await this.#protectOthers(pod);
    const usual = pod.spec?.containers[0]?.lifecycle?.stopSignal;
    // Another signal than that of the configuration comes first: a cluster sends only that one.
    if (request.signal !== "SIGKILL" && request.signal !== usual && isRunning(pod))
      await sendSignal(this.#cluster, pod, request.signal).catch(() => {});
    await this.#delete(pod, graceOf(request));
  }

  /** The Machine of a Pod is about to end, so none of the others may be evicted meanwhile. */
  async #protectOthers({ metadata }: V1Pod): Promise<void> {
    const machine = this.#host.subject(metadata?.labels?.[labels.machine] ?? "");
    if (machine) await this.#budgets.protect(machine);
  }

  async kill({ pod }: PodOf): Promise<void> {
    await this.#protectOthers(pod);
    await this.#delete(pod, 1);
  }

  async #delete({ metadata }: V1Pod, graceSeconds: number): Promise<false> {
    await this.#cluster.delete(kinds.pod, metadata, { graceSeconds });
    return false;
  }

  async remove(id: string): Promise<void> {
    this.#last.delete(id);
    this.routes.forget(id);
    this.#budgets.forget(id);
    this.#unreachable.delete(id);
    const machine = this.#host.subject(id);
    const pod = this.#find(id, machine);
    const namespace = pod?.metadata?.namespace ?? (machine && this.#namespaces.nameOf(machine.network));
    if (namespace === undefined) return;
    if (pod) await this.#delete(pod, 1);
    for (const name of [id, `${id}-files`]) await this.#cluster.delete(kinds.secret, { name, namespace });
    this.#namespaces.changed(namespace);
  }

  /** A Pod that is gone has taken with it what it wrote. */
  async exitOf(machine: Subject, instance: PodOf | undefined): Promise<Exit> {
    const last = instance?.pod ?? this.#last.get(machine.id);
    this.#last.delete(machine.id);
    const isSame = last !== undefined && isOf(last, machine);
    const exit = exitOf(isSame ? last : undefined, isSame && this.#lostSince(last) !== undefined);
    if (!isSame || !instance || !hasRun(instance.pod)) return exit;
    const lines = await lastLinesOf((query) => this.logs(machine.id, instance, query), this.#reports.closed);
    return { ...exit, lines: lines?.map(({ text }) => text) };
  }

  publishedOf({ config }: Subject, { pod }: PodOf): Published | undefined {
    const ip = pod.status?.podIP;
    if (ip === undefined) return undefined;
    // Others end it, such as `kubectl drain`, and its program may listen no longer.
    if (pod.metadata?.deletionTimestamp !== undefined)
      return { run: `${ip}, which ends`, endpoints: new Map(), listens: unseen };
    const endpoints = portsOf(config).map(({ port }): [number, string] => [port, endpointOf(ip, port)]);
    return { run: ip, endpoints: new Map(endpoints), listens: unseen };
  }

  async limitMemory(machine: Subject, { pod }: PodOf): Promise<void> {
    const resources = resourcesOf(machine);
    if (pod.spec?.containers[0]?.resources?.limits?.["memory"] === resources.limits.memory) return;
    await this.#cluster.resize(pod, { containers: [{ name: containerName, resources }] });
  }

  logs(machine: string, { pod }: PodOf, query: LogQuery): AsyncIterable<LogLine> {
    return podLogs(this.#cluster, pod, machine, query);
  }

  async signal(machine: Subject, signal: SignalName): Promise<void> {
    const pod = this.#runningOf(machine);
    if (pod) await sendSignal(this.#cluster, pod, signal);
  }

  async exec(machine: Subject, command: Command): Promise<Outcome | undefined> {
    return answered(runCommand(this.#cluster, this.#running(machine), [...command.words], command));
  }

  usage(): Promise<ReadonlyMap<string, Usage>> {
    return usageOf(this.#cluster, this.#host.dataId, this.#host.clock.now());
  }

  async terminal(machine: Subject, request: TerminalRequest): Promise<TerminalSession> {
    return answered(openTerminal(this.#cluster, this.#running(machine), request));
  }

  async processes(machine: Subject): Promise<readonly Process[]> {
    return answered(processesOf(this.#cluster, this.#running(machine)));
  }

  /** The running Pod of a Machine's version. */
  #runningOf({ id, version }: Subject): V1Pod | undefined {
    const pod = this.#find(id);
    return pod?.metadata?.labels?.[labels.version] === version && isRunning(pod) ? pod : undefined;
  }

  #running(machine: Subject): V1Pod {
    const pod = this.#runningOf(machine);
    if (!pod) throw new Error(`Machine ${machine.id} has no Pod`);
    return pod;
  }
}

/** The result of a request; one that was not answered is refused, and can be repeated. */
const answered = <T>(request: Promise<T>): Promise<T> =>
  request.catch((error: unknown) => {
    throw error instanceof Refusal || isAnswered(error) ? error : clusterGone(error);
  });

// The Kubernetes runtime: each start of a Machine is a Pod. A call only says that a Machine has changed. The runtime then compares
// the state that the store wants with what the cluster last said, does the next step and reports it. It continues in the same way
// after the service or the cluster was killed.
import type { V1Node, V1PersistentVolumeClaim, V1Pod } from "@kubernetes/client-node";
import type { MachineConfig } from "../../../api/machineConfig.ts";
import { parseImageReference } from "../../../api/image.ts";
import type { SignalName } from "../../../api/signals.ts";
import { Checker } from "../checker.ts";
import { endpointOf } from "../endpoint.ts";
import { Refusal } from "../../refusal.ts";
import { memoryLimit } from "../memory.ts";
import { accepts, unseen } from "../probe.ts";
import type {
  Command,
  Exit,
  FoundImage,
  LogLine,
  LogQuery,
  Memory,
  Outcome,
  Process,
  Reach,
  Runtime,
  RuntimeHost,
  StopRequest,
  Subject,
} from "../runtime.ts";
import { Steps } from "../steps.ts";
import { stopRequest } from "../stopRequest.ts";
import { Changes } from "../reconciler/changes.ts";
import { allowing, clusterGone, isAnswered, isRefused, ofCluster, reasonOf, type Cluster } from "./cluster.ts";
import { runCommand } from "./exec.ts";
import { lastLinesOf } from "../lastLines.ts";
import { podLogs } from "./logs.ts";
import { annotations, labels, selectorOf } from "./names.ts";
import { Namespaces } from "./namespaces.ts";
import { nodeIn, Room } from "./nodes.ts";
import { containerName, filesOf, graceOf, podOf, resourcesOf, secretOf } from "./pod.ts";
import { digestOf, exitOf, hasEnded, hasRun, isRunning, obstacleOf, unplacedOf } from "./podStatus.ts";
import { processesOf, sendSignal } from "./processes.ts";
import { Routes } from "./routes.ts";
import { unsupported } from "./unsupported.ts";
import { Volumes } from "./volumes.ts";
import { Watched } from "./watched.ts";

/** Options of the runtime. */
export interface KubernetesOptions {
  /** Milliseconds that a Machine waits for a node with room for it. Default: two minutes. */
  readonly placementMs?: number;
  /** Milliseconds between the withdrawal of a Machine from requests and its stop signal. Default: three seconds. */
  readonly drainMs?: number;
  /** Class of the Ingresses. Default: that of the cluster. */
  readonly ingressClass?: string | undefined;
}

// ASSUMED: a cluster that adds nodes by itself does so within two minutes.
const usualPlacementMs = 120_000;
// ASSUMED: ingress controllers and nodes follow a change within three seconds. Traefik applies one every two seconds, others sooner.
const usualDrainMs = 3000;

/** Runs Machines as Pods of a cluster. */
export class KubernetesRuntime implements Runtime {
  readonly name = "kubernetes";
  readonly reach: Reach = {
    endpoint: (machine, port) => this.#endpoint(machine, port),
    listens: async (machine, port) => {
      for (;;) {
        const endpoint = this.#endpoint(machine, port);
        if (endpoint === undefined || this.#closed.signal.aborted) return false;
        if (await accepts(endpoint)) return true;
        await this.#changes.next(machine, listenPause);
      }
    },
  };
  readonly copyProblem: string | undefined;
  readonly #cluster: Cluster;
  readonly #host: RuntimeHost;
  readonly #placementMs: number;
  readonly #drainMs: number;
  readonly #pods: Watched<V1Pod>;
  readonly #nodes: Watched<V1Node>;
  readonly #room = new Room();
  readonly #namespaces: Namespaces;
  readonly #volumes: Volumes;
  readonly #routes: Routes;
  readonly #steps: Steps;
  readonly #changes = new Changes();
  readonly #requests = new Map<string, StopRequest>();
  /** The last form of Pods that are gone, by Machine: how they ended. */
  readonly #last = new Map<string, V1Pod>();
  readonly #checkers = new Map<string, Checker>();
  /** Addresses of the Pods of started Machines. */
  readonly #addresses = new Map<string, string>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #closed = new AbortController();
  #isListed = false;

  constructor(
    cluster: Cluster,
    host: RuntimeHost,
    { placementMs = usualPlacementMs, drainMs = usualDrainMs, ingressClass }: KubernetesOptions = {},
  ) {
    this.#cluster = cluster;
    this.copyProblem = cluster.hasSnapshots
      ? undefined
      : "the kubernetes runtime needs VolumeSnapshots (snapshot.storage.k8s.io/v1) to copy volumes, which the cluster does not have";
    this.#host = host;
    this.#placementMs = placementMs;
    this.#drainMs = drainMs;
    const mine = selectorOf(host.dataId);
    const pods = { apiVersion: "v1", kind: "Pod", path: "/api/v1/pods" };
    this.#pods = new Watched<V1Pod>(cluster, pods, mine, host.log, (pod, isGone) => this.#seen(pod, isGone));
    const nodes = { apiVersion: "v1", kind: "Node", path: "/api/v1/nodes" };
    this.#nodes = new Watched<V1Node>(cluster, nodes, undefined, host.log, () => {});
    this.#namespaces = new Namespaces(cluster, host, (namespace) => this.#isUsed(namespace));
    const nodeOf = (region: string): string | undefined => nodeIn(region, this.#nodes.all());
    this.#volumes = new Volumes(cluster, host, this.#namespaces, nodeOf, (machine) => this.#changed(machine));
    this.#routes = new Routes(cluster, host, this.#namespaces, ingressClass, (machine) => this.#changed(machine));
    this.#steps = new Steps(host, {
      ...ofCluster,
      kind: "machine",
      step: async (id) => {
        const before = host.subject(id)?.state;
        await this.#step(id);
        // A report may have moved the Machine into a state that needs another step.
        return host.subject(id)?.state !== before;
      },
    });
  }

  problem(config: MachineConfig): { field: string; message: string } | undefined {
    return unsupported(config);
  }

  hasRoom(config: MachineConfig, region: string, replaced?: string): boolean {
    // Until the nodes are known, the scheduler alone decides.
    return !this.#isListed || this.#room.hasRoom(config, region, this.#nodes.all(), replaced);
  }

  // A cluster does not say which image a tag means before a Pod runs it.
  findImage(image: string): Promise<FoundImage> {
    return Promise.resolve({ digest: parseImageReference(image)?.digest ?? "", labels: {} });
  }

  create({ id }: Subject): void {
    this.#changed(id);
  }

  start({ id }: Subject): void {
    this.#changed(id);
  }

  stop({ id }: Subject, request: StopRequest): void {
    this.#requests.set(id, request);
    this.#changed(id);
  }

  suspend({ id }: Subject): void {
    this.#changed(id);
  }

  destroy({ id }: Subject): void {
    this.#changed(id);
  }

  limitMemory({ id }: Subject): void {
    this.#changed(id);
  }

  volumeChanged(id: string): void {
    this.#volumes.changed(id);
  }

  changed(ids: ReadonlySet<string>): void {
    for (const id of ids) {
      if (this.#addresses.has(id)) this.#changed(id);
      else if (this.#isListed && this.#host.app(id)) this.#routes.appChanged(id);
    }
  }

  signal(machine: Subject, signal: SignalName): void {
    const pod = this.#podOf(machine);
    if (!pod) return;
    sendSignal(this.#cluster, pod, signal).catch((error: unknown) =>
      this.#host.log.warn({ machine: machine.id, reason: reasonOf(error) }, "a signal is lost"),
    );
  }

  async exec(machine: Subject, command: Command): Promise<Outcome | undefined> {
    const pod = this.#running(machine);
    const ended = await answered(runCommand(this.#cluster, pod, [...command.words], command));
    if (ended.code === undefined) return undefined;
    const { code, stdout, stderr } = ended;
    return { stdout, stderr, exitCode: code, exitSignal: code > 128 ? code - 128 : 0 };
  }

  async processes(machine: Subject): Promise<readonly Process[]> {
    return answered(processesOf(this.#cluster, this.#running(machine)));
  }

  async *logs({ id }: Subject, query: LogQuery): AsyncGenerator<LogLine> {
    let { since, lines } = query;
    const seen = new Set<string>();
    for (;;) {
      const pod = this.#find(id);
      const uid = pod?.metadata?.uid ?? "";
      if (pod && !seen.has(uid) && (isRunning(pod) || hasEnded(pod))) {
        seen.add(uid);
        yield* podLogs(this.#cluster, pod, id, { ...query, since, lines });
        // All lines of a later Pod are new.
        since = undefined;
        lines = undefined;
      }
      if (!query.follow || query.signal.aborted || !this.#host.subject(id)) return;
      await this.#changes.next(id, undefined, query.signal);
    }
  }

  memory(machine: Subject): Promise<Memory> {
    return Promise.resolve(memoryLimit(machine));
  }

  // ASSUMED: clusters have no request to reclaim memory; the kernel does so by itself at the limit.
  reclaim(): Promise<number> {
    return Promise.resolve(0);
  }

  recover(): void {
    void this.#begin();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    for (const checker of this.#checkers.values()) checker.end();
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#changes.close();
    const parts = [this.#steps, this.#routes, this.#volumes, this.#namespaces, this.#pods, this.#nodes];
    await Promise.all(parts.map((part) => part.close()));
  }

  async #begin(): Promise<void> {
    const parts = [this.#pods, this.#nodes, this.#namespaces, this.#volumes, this.#routes];
    await Promise.all(parts.map((part) => part.begin()));
    if (this.#closed.signal.aborted) return;
    this.#isListed = true;
    const ids = this.#pods.all().flatMap(({ metadata }) => metadata?.labels?.[labels.machine] ?? []);
    const apps = new Set<string>();
    for (const id of new Set([...ids, ...this.#host.ids()])) {
      this.#changed(id);
      apps.add(this.#host.subject(id)?.appId ?? "");
    }
    for (const app of apps) this.#routes.appChanged(app);
    this.#routes.lookAtAll();
    this.#volumes.lookAtAll();
    this.#namespaces.lookAtAll();
  }

  /** The cluster has said something about a Pod. */
  #seen(pod: V1Pod, isGone: boolean): void {
    const id = pod.metadata?.labels?.[labels.machine];
    if (id === undefined) return;
    this.#room.seen(id, pod, isGone);
    if (isGone) this.#last.set(id, pod);
    this.#changes.happened(id);
    this.#changed(id);
    if (isGone) this.#namespaces.changed(pod.metadata?.namespace ?? "");
  }

  #changed(id: string): void {
    // What the cluster has is not known yet; all Machines are looked at then.
    if (this.#isListed) this.#steps.changed(id);
  }

  #isUsed(namespace: string): boolean {
    const inIt = ({ metadata }: V1Pod | V1PersistentVolumeClaim): boolean => metadata?.namespace === namespace;
    if (this.#pods.all().some(inIt) || this.#volumes.claims().some(inIt)) return true;
    return this.#host.ids().some((id) => {
      const machine = this.#host.subject(id);
      return machine !== undefined && this.#namespaces.nameOf(machine.network) === namespace;
    });
  }

  /** The Pod of a Machine. It has the Machine's name, so the cluster itself takes care that there is only one. */
  #find(id: string): V1Pod | undefined {
    const machine = this.#host.subject(id);
    if (machine) return this.#pods.get(id, this.#namespaces.nameOf(machine.network));
    return this.#pods.all().find(({ metadata }) => metadata?.labels?.[labels.machine] === id);
  }

  /** The running Pod of a Machine's version. */
  #podOf({ id, version }: Subject): V1Pod | undefined {
    const pod = this.#find(id);
    return pod?.metadata?.labels?.[labels.version] === version && isRunning(pod) ? pod : undefined;
  }

  #running(machine: Subject): V1Pod {
    const pod = this.#podOf(machine);
    if (!pod) throw new Error(`Machine ${machine.id} has no Pod`);
    return pod;
  }

  #endpoint(machine: string, port: number): string | undefined {
    const address = this.#addresses.get(machine);
    return address === undefined ? undefined : endpointOf(address, port);
  }

  /** Does what the state of a Machine needs now, and reports it. */
  async #step(id: string): Promise<void> {
    const machine = this.#host.subject(id);
    if (machine?.state !== "started") await this.#withdraw(id, machine);
    const pod = this.#find(id);
    if (!machine) return this.#remove(id, pod);
    const { events } = this.#host;
    switch (machine.state) {
      case "created":
      case "replacing":
        return this.#prepare(machine, pod);
      case "starting":
        return this.#launch(machine, pod);
      case "started":
        if (!pod || hasEnded(pod) || !isOf(pod, machine))
          return events.exited(machine, await this.#exitOf(machine, pod));
        this.#publish(machine, pod);
        await this.#limit(machine, pod);
        return this.#routes.offer(machine, pod, this.#isServing(machine));
      case "stopping":
      case "restarting":
        if (pod && !hasEnded(pod))
          return this.#halt(pod, this.#requests.get(id) ?? stopRequest(machine.config.stop_config));
        this.#requests.delete(id);
        return events.exited(machine, { ...(await this.#exitOf(machine, pod)), requested: true });
      case "suspending":
        // ASSUMED: a cluster cannot keep the memory of a Pod. A suspended Machine has none, and starts like a stopped one.
        if (pod && !hasEnded(pod)) return this.#halt(pod, stopRequest(machine.config.stop_config));
        return events.suspended(machine);
      case "destroying":
        if (pod && !hasEnded(pod)) return this.#halt(pod, stopRequest(machine.config.stop_config));
        await this.#remove(id, pod);
        events.destroyed(machine);
        return this.#routes.appChanged(machine.appId);
      case "stopped":
      case "failed":
      case "suspended":
        // It was started by a run of the service that was killed.
        if (pod && !hasEnded(pod)) await this.#halt(pod, { signal: "SIGKILL", timeoutMs: 0 });
    }
  }

  /** Ends the Pod of the version before, and prepares what the next one needs. */
  async #prepare(machine: Subject, pod: V1Pod | undefined): Promise<void> {
    // It continues when the cluster says that the old Pod has ended.
    if (pod && !hasEnded(pod)) return this.#halt(pod, stopRequest(machine.config.stop_config));
    const problem = this.#volumes.problemOf(machine);
    if (problem !== undefined) return this.#host.events.unprepared(machine, problem);
    if (!this.#volumes.areWritten(machine)) return;
    await this.#namespaces.ensure(machine.network);
    this.#host.events.prepared(machine);
  }

  /** Creates the Pod of this start, and reports when it runs. */
  async #launch(machine: Subject, pod: V1Pod | undefined): Promise<void> {
    const { events } = this.#host;
    if (!pod) return this.#createPod(machine);
    // The Pod of an earlier start: its name is needed.
    if (!isOf(pod, machine) || pod.metadata?.annotations?.[annotations.start] !== machine.start)
      return this.#delete(pod, graceOf(stopRequest(machine.config.stop_config)));
    if (isRunning(pod) || (hasEnded(pod) && hasRun(pod))) {
      this.#forgetTimer(machine.id);
      const digest = digestOf(pod);
      if (digest !== undefined && machine.digest === "") events.resolved(machine, digest);
      return events.started(machine);
    }
    if (hasEnded(pod)) return events.exited(machine, exitOf(pod));
    const obstacle = obstacleOf(pod) ?? this.#unplaced(machine.id, pod);
    if (obstacle === undefined) return;
    await this.#delete(pod, 1);
    events.exited(machine, notStarted(obstacle));
  }

  async #createPod(machine: Subject): Promise<void> {
    const { dataId } = this.#host;
    const problem = this.#volumes.problemOf(machine);
    if (problem !== undefined) return this.#host.events.exited(machine, notStarted(problem));
    const namespace = await this.#namespaces.ensure(machine.network);
    const files = filesOf(machine, dataId, namespace);
    this.#last.delete(machine.id);
    try {
      await this.#cluster.apply(secretOf(machine, dataId, namespace));
      if (files) await this.#cluster.apply(files);
      // Not applied: that would change the Pod of an earlier start, whose end this service has not seen yet.
      await allowing([409], this.#cluster.create(podOf(machine, dataId, namespace)));
    } catch (error) {
      if (!isRefused(error)) throw error;
      this.#host.events.exited(machine, notStarted(reasonOf(error)));
    }
  }

  /** Why no node takes the Pod; undefined as long as one may still be added to the cluster. */
  #unplaced(id: string, pod: V1Pod): string | undefined {
    const unplaced = unplacedOf(pod);
    if (!unplaced) return undefined;
    const left = unplaced.since + this.#placementMs - this.#host.clock.now();
    if (left <= 0) return `no node has room for it: ${unplaced.reason}`;
    this.#lookLater(id, left);
    return undefined;
  }

  #lookLater(id: string, ms: number): void {
    this.#forgetTimer(id);
    this.#timers.set(
      id,
      setTimeout(() => this.#changed(id), ms),
    );
  }

  #forgetTimer(id: string): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
  }

  /** Asks a Pod to end; it continues when the cluster says that it has. */
  async #halt(pod: V1Pod, request: StopRequest): Promise<void> {
    if (pod.metadata?.deletionTimestamp !== undefined) return;
    const id = pod.metadata?.labels?.[labels.machine] ?? "";
    const left = this.#routes.withdrawnAt(id) + this.#drainMs - this.#host.clock.elapsed();
    // Those who send requests need a moment to see that it gets none.
    if (left > 0 && this.#isRelieved(id)) return this.#lookLater(id, left);
    this.#forgetTimer(id);
    const usual = pod.spec?.containers[0]?.lifecycle?.stopSignal;
    // Another signal than that of the configuration comes first: a cluster sends only that one.
    if (request.signal !== "SIGKILL" && request.signal !== usual && isRunning(pod))
      await sendSignal(this.#cluster, pod, request.signal).catch(() => {});
    await this.#delete(pod, graceOf(request));
  }

  /** Whether another Machine of the App takes the requests. Without one, waiting would only make them fail for longer. */
  #isRelieved(id: string): boolean {
    const app = this.#host.app(this.#host.subject(id)?.appId ?? "");
    return (app?.machines ?? []).some((each) => {
      // A large App may be stopped as a whole: only what serves is read.
      const other = each !== id && this.#checkers.get(each)?.isServing ? this.#host.subject(each) : undefined;
      return other !== undefined && (other.config.services ?? []).length > 0 && this.#isServing(other);
    });
  }

  /** Whether a Machine may get requests. */
  #isServing({ id, state, isCordoned }: Subject): boolean {
    // Others may have asked its Pod to end, such as `kubectl drain`.
    const isEnding = this.#find(id)?.metadata?.deletionTimestamp !== undefined;
    return state === "started" && !isCordoned && !isEnding && this.#checkers.get(id)?.isServing === true;
  }

  async #delete({ metadata = {} }: V1Pod, graceSeconds: number): Promise<void> {
    if (metadata.deletionTimestamp !== undefined) return;
    const { name = "", namespace = "", uid } = metadata;
    await this.#cluster.delete({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace } }, uid, graceSeconds);
  }

  /** How the process of a Machine ended, and what it wrote. A Pod that is gone has taken that with it. */
  async #exitOf({ id, version, start }: Subject, pod: V1Pod | undefined): Promise<Exit> {
    const last = pod ?? this.#last.get(id);
    this.#last.delete(id);
    const isSame =
      last?.metadata?.labels?.[labels.version] === version && last.metadata.annotations?.[annotations.start] === start;
    const exit = exitOf(isSame ? last : undefined);
    if (!isSame || !pod || !hasRun(pod)) return exit;
    const lines = await lastLinesOf((query) => podLogs(this.#cluster, pod, id, query), this.#closed.signal);
    return { ...exit, lines: lines?.map(({ text }) => text) };
  }

  /** Applies a new limit of memory to a running Pod. */
  async #limit(machine: Subject, pod: V1Pod): Promise<void> {
    const resources = resourcesOf(machine);
    if (pod.spec?.containers[0]?.resources?.limits?.["memory"] === resources.limits.memory) return;
    await this.#cluster.resize(pod, { containers: [{ name: containerName, resources }] });
  }

  /** Remembers where a started Machine is reached, and begins its checks. */
  #publish(machine: Subject, pod: V1Pod): void {
    const { id } = machine;
    const ip = pod.status?.podIP;
    const known = this.#addresses.get(id);
    if (ip !== undefined && known !== ip) {
      this.#addresses.set(id, ip);
      this.#host.reachable(id);
    }
    const before = this.#checkers.get(id);
    if (before?.version === machine.version) return;
    before?.end();
    this.#checkers.set(
      id,
      new Checker(machine, this.#host.events, { endpoint: (port) => this.#endpoint(id, port), listens: unseen }),
    );
  }

  /** Its Pod gets no requests any more. */
  async #withdraw(id: string, machine: Subject | undefined): Promise<void> {
    this.#checkers.get(id)?.end();
    this.#checkers.delete(id);
    const address = this.#addresses.get(id);
    this.#addresses.delete(id);
    if (address !== undefined && machine)
      this.#host.unreachable(
        (machine.config.services ?? []).map(({ internal_port }) => endpointOf(address, internal_port)),
      );
    const namespace = this.#namespaceOf(id);
    if (namespace !== undefined) await this.#routes.withdraw(id, namespace);
  }

  /** Removes what belongs to a Machine. */
  async #remove(id: string, pod: V1Pod | undefined): Promise<void> {
    this.#requests.delete(id);
    this.#last.delete(id);
    this.#routes.forget(id);
    this.#forgetTimer(id);
    const namespace = pod?.metadata?.namespace ?? this.#namespaceOf(id);
    if (namespace === undefined) return;
    if (pod) await this.#delete(pod, 1);
    for (const name of [id, `${id}-files`])
      await this.#cluster.delete({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace } });
    this.#namespaces.changed(namespace);
  }

  #namespaceOf(id: string): string | undefined {
    const machine = this.#host.subject(id);
    return machine && this.#namespaces.nameOf(machine.network);
  }
}

/** The exit of a Machine that could not be started. */
const notStarted = (error: string): Exit => ({ code: 127, signal: 0, oom: false, requested: false, error });

/** The result of a request; one that was not answered is refused, and can be repeated. */
const answered = <T>(request: Promise<T>): Promise<T> =>
  request.catch((error: unknown) => {
    throw error instanceof Refusal || isAnswered(error) ? error : clusterGone(error);
  });

/** Pause between two attempts to connect to a program that does not listen yet. */
const listenPause = 20;

/** Whether a Pod runs the version of a Machine. */
const isOf = ({ metadata }: V1Pod, { version }: Subject): boolean => metadata?.labels?.[labels.version] === version;

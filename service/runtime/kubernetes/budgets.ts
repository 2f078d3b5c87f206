// PodDisruptionBudgets: how many Machines of an App or of a fleet `kubectl drain` and others may evict at once. Pods without a controller
// can only have a least number of healthy ones, so the service counts itself, and knows more than the cluster: a Machine whose restart is
// due later has no Pod, and one whose checks fail has a healthy one.
import type { V1Pod, V1PodDisruptionBudget } from "@kubernetes/client-node";
import type { AppSubject, RuntimeHost, Subject } from "../runtime.ts";
import { Steps } from "../steps.ts";
import { ofCluster, type Cluster } from "./cluster.ts";
import { annotations, fleetLabel, kinds, labels, selectorOf, serviceName } from "./names.ts";
import type { Namespaces } from "./namespaces.ts";
import { hasEnded } from "./podStatus.ts";
import { Watched } from "./watched.ts";

// ASSUMED: one Machine may be evicted at a time. That keeps what every `maxUnavailable` promises, which is at least one.
const mostEvicted = 1;
// More Pods than there can be: none may be evicted. It stays the same while Machines are added, which would need a request for each.
const closed = 1_000_000;

const available = "available";
/** States of Machines that will be available. */
const transient: ReadonlySet<string> = new Set(["starting", "started", "restarting", "replacing"]);

/** What a budget needs to know of Machines. */
export interface BudgetsOptions {
  readonly podOf: (machine: string, namespace: string) => V1Pod | undefined;
  /** Whether a Machine with this Pod is available: it is started, not being ended, and gets requests if it has services. */
  readonly isAvailable: (machine: Subject, pod: V1Pod) => boolean;
}

/** Machines that have a budget together: those of a fleet, or those of an App that are in none. */
interface Group {
  readonly fleet: string;
  /** The number of those that run, or are about to. */
  expected: number;
  /** The last one that is not available, or still runs and is not to; undefined if there is none. */
  missing: string | undefined;
}

/** The budgets of a service. */
export class Budgets {
  readonly #cluster: Cluster;
  readonly #host: RuntimeHost;
  readonly #namespaces: Namespaces;
  readonly #options: BudgetsOptions;
  readonly #budgets: Watched<V1PodDisruptionBudget>;
  readonly #steps: Steps;
  /** The states of Machines when the service last looked, and `available` for those that were. */
  readonly #seen = new Map<string, string>();
  /** By App and fleet, a Machine that keeps the budget closed: until it is available, the others change nothing. */
  readonly #missing = new Map<string, ReadonlyMap<string, string>>();

  constructor(cluster: Cluster, host: RuntimeHost, namespaces: Namespaces, options: BudgetsOptions) {
    this.#cluster = cluster;
    this.#host = host;
    this.#namespaces = namespaces;
    this.#options = options;
    this.#budgets = new Watched<V1PodDisruptionBudget>(
      cluster,
      kinds.budget,
      selectorOf(host.dataId),
      host.log,
      ({ metadata }) => this.appChanged(metadata?.annotations?.[annotations.app] ?? ""),
    );
    this.#steps = new Steps(host, {
      ...ofCluster,
      kind: "budget",
      step: async (app) => {
        await this.#step(app);
        return false;
      },
    });
  }

  begin(): Promise<void> {
    return this.#budgets.begin();
  }

  lookAtAll(): void {
    for (const { metadata } of this.#budgets.all()) this.appChanged(metadata?.annotations?.[annotations.app] ?? "");
  }

  async close(): Promise<void> {
    await this.#budgets.close();
    await this.#steps.close();
  }

  appChanged(app: string): void {
    this.#missing.delete(app);
    this.#steps.changed(app);
  }

  /** Something is gone: perhaps an App. */
  gone(id: string): void {
    if (this.#ofApp(id).length > 0) this.appChanged(id);
  }

  /** A Machine may be available, or not any more. */
  machineChanged(machine: Subject): void {
    const pod = this.#options.podOf(machine.id, this.#namespaces.nameOf(machine.network));
    const seen = pod && this.#options.isAvailable(machine, pod) ? available : machine.state;
    if (this.#seen.get(machine.id) === seen) return;
    this.#seen.set(machine.id, seen);
    const missing = this.#missing.get(machine.appId)?.get(fleetOf(machine, pod));
    // A large App begins with many Machines, and each of them would count all.
    const isClosed = missing !== undefined && missing !== machine.id && transient.has(this.#seen.get(missing) ?? "");
    if (!isClosed) this.#steps.changed(machine.appId);
  }

  /** A Machine is gone. */
  forget(machine: string): void {
    this.#seen.delete(machine);
  }

  /** Lets no Machine of the App be evicted from now on, until this one is available or gone: it is about to be ended or started. */
  async protect(machine: Subject): Promise<void> {
    if (!this.#ofApp(machine.appId).some((budget) => budget.spec?.minAvailable !== closed)) return;
    // Not beside a step that has counted before.
    const release = await this.#steps.hold(machine.appId);
    try {
      await this.#step(machine.appId, machine.id);
    } finally {
      release();
    }
  }

  #ofApp(app: string): readonly V1PodDisruptionBudget[] {
    return this.#budgets.all().filter(({ metadata }) => metadata?.annotations?.[annotations.app] === app);
  }

  async #step(id: string, leaving?: string): Promise<void> {
    const app = this.#host.app(id);
    const namespace = app && this.#namespaces.nameOf(app.network);
    const groups = app && namespace !== undefined ? this.#groupsOf(app, namespace, leaving) : [];
    const kept = new Set<string>();
    const missing = new Map<string, string>();
    for (const group of groups) {
      // ASSUMED: a Machine alone has no budget. It could never be evicted, or the budget would protect nothing.
      if (!app || namespace === undefined || group.expected < 2) continue;
      if (!this.#namespaces.has(namespace)) return;
      const budget = budgetOf(group, { id, name: app.name, namespace, dataId: this.#host.dataId });
      kept.add(budget.metadata.name);
      const before = this.#budgets.get(budget.metadata.name, namespace);
      if (!isSame(before, budget)) await this.#cluster.apply(budget);
      if (group.missing !== undefined) missing.set(group.fleet, group.missing);
    }
    for (const { metadata } of this.#ofApp(id))
      if (!kept.has(metadata?.name ?? "")) await this.#cluster.delete(kinds.budget, metadata);
    if (app) this.#missing.set(id, missing);
    else this.#missing.delete(id);
  }

  #groupsOf(app: AppSubject, namespace: string, leaving: string | undefined): readonly Group[] {
    const groups = new Map<string, Group>();
    const expected = new Set(app.expected);
    for (const id of app.machines) {
      const machine = this.#host.subject(id);
      if (!machine) continue;
      const pod = this.#options.podOf(id, namespace);
      const fleet = fleetOf(machine, pod);
      const group = groups.get(fleet) ?? { fleet, expected: 0, missing: undefined };
      groups.set(fleet, group);
      const isExpected = expected.has(id);
      if (isExpected) group.expected++;
      const isAvailable = id !== leaving && isExpected && pod !== undefined && this.#options.isAvailable(machine, pod);
      if (!isAvailable && (isExpected || (pod && !hasEnded(pod)))) group.missing = id;
    }
    return [...groups.values()];
  }
}

/** The label of a Machine's fleet. The cluster counts by the labels of Pods, which are older than the metadata if that has changed. */
const fleetOf = (machine: Subject, pod: V1Pod | undefined): string =>
  (pod ? pod.metadata?.labels?.[labels.fleet] : fleetLabel(machine)) ?? "";

interface AppOfBudget {
  readonly id: string;
  readonly name: string;
  readonly namespace: string;
  readonly dataId: string;
}

function budgetOf(group: Group, { id, name, namespace, dataId }: AppOfBudget) {
  const { fleet, expected, missing } = group;
  const own = { [labels.data]: dataId, [labels.app]: name };
  return {
    apiVersion: kinds.budget.apiVersion,
    kind: kinds.budget.kind,
    metadata: {
      name: fleet === "" ? serviceName(name) : `${serviceName(name)}-${fleet}`,
      namespace,
      labels: own,
      annotations: { [annotations.app]: id },
    },
    spec: {
      minAvailable: missing === undefined ? expected - mostEvicted : closed,
      selector: {
        matchLabels: { ...own, ...(fleet === "" ? {} : { [labels.fleet]: fleet }) },
        ...(fleet === "" ? { matchExpressions: [{ key: labels.fleet, operator: "DoesNotExist" }] } : {}),
      },
      // One that does not run serves no one.
      unhealthyPodEvictionPolicy: "AlwaysAllow",
    },
  };
}

const isSame = (before: V1PodDisruptionBudget | undefined, { metadata, spec }: ReturnType<typeof budgetOf>): boolean =>
  // A deleted App of the same name may have left it.
  before?.metadata?.annotations?.[annotations.app] === metadata.annotations[annotations.app] &&
  before?.spec?.minAvailable === spec.minAvailable &&
  before.spec.unhealthyPodEvictionPolicy === spec.unhealthyPodEvictionPolicy &&
  before.spec.maxUnavailable === undefined &&
  JSON.stringify(sorted(before.spec.selector?.matchLabels ?? {})) === JSON.stringify(sorted(spec.selector.matchLabels));

const sorted = (marks: Readonly<Record<string, string>>) => Object.entries(marks).sort(([a], [b]) => (a < b ? -1 : 1));

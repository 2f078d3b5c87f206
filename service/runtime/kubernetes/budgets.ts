// PodDisruptionBudgets: how many Machines of an App or of a fleet `kubectl drain` and others may evict at once. Pods without a controller
// can only have a least number of healthy ones, so the service counts itself, and knows more than the cluster: a Machine whose restart is
// due later has no Pod, and one whose checks fail has a healthy one.
import type { V1Pod, V1PodDisruptionBudget } from "@kubernetes/client-node";
import type { RuntimeHost, Subject } from "../runtime.ts";
import { Steps } from "../steps.ts";
import { ofCluster, type Cluster } from "./cluster.ts";
import { annotations, fleetLabel, kinds, labels, selectorOf, serviceName } from "./names.ts";
import type { Namespaces } from "./namespaces.ts";
import { hasEnded } from "./podStatus.ts";
import { Watched } from "./watched.ts";

// ASSUMED: one Machine may be evicted at a time. That keeps what every `maxUnavailable` promises, which is at least one.
const mostEvicted = 1;

/** What a budget needs to know of Machines. */
export interface BudgetsOptions {
  readonly podOf: (machine: string) => V1Pod | undefined;
  /** Whether a started Machine is available: its Pod is not being ended, and it gets requests if it has services. */
  readonly isAvailable: (machine: Subject) => boolean;
}

/** Machines that have a budget together: those of a fleet, or those of an App that are in none. */
interface Group {
  readonly fleet: string;
  /** All that are not destroyed. */
  all: number;
  /** Those that run, or are about to. */
  expected: number;
  /** Whether all of these are available, and no other one still runs. */
  isWhole: boolean;
}

/** The budgets of a service. */
export class Budgets {
  readonly #cluster: Cluster;
  readonly #host: RuntimeHost;
  readonly #namespaces: Namespaces;
  readonly #options: BudgetsOptions;
  readonly #budgets: Watched<V1PodDisruptionBudget>;
  readonly #steps: Steps;
  /** Whether Machines were available when the service last looked. */
  readonly #seen = new Map<string, boolean>();

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
    this.#steps.changed(app);
  }

  /** A Machine may be available, or not any more. */
  machineChanged(machine: Subject): void {
    const isAvailable = this.#options.isAvailable(machine);
    if (this.#seen.get(machine.id) === isAvailable) return;
    this.#seen.set(machine.id, isAvailable);
    this.appChanged(machine.appId);
  }

  /** A Machine is gone. */
  forget(machine: string): void {
    this.#seen.delete(machine);
  }

  /** Lets no Machine of the group be evicted from now on, until this one is available or gone: it is about to be ended or started. */
  async protect(machine: Subject): Promise<void> {
    if (!this.#ofApp(machine.appId).some((budget) => isOpen(budget))) return;
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
    const groups = app ? this.#groupsOf(app.machines, new Set(app.expected), leaving) : [];
    const kept = new Set<string>();
    for (const group of app ? groups : []) {
      // ASSUMED: a Machine alone has no budget. It could never be evicted, or the budget would protect nothing.
      if (!app || group.expected < 2) continue;
      const namespace = this.#namespaces.nameOf(app.network);
      if (!this.#namespaces.has(namespace)) return;
      const budget = budgetOf(group, { id, name: app.name, namespace, dataId: this.#host.dataId });
      kept.add(budget.metadata.name);
      const before = this.#budgets.get(budget.metadata.name, namespace);
      if (!isSame(before, budget)) await this.#cluster.apply(budget);
    }
    for (const { metadata } of this.#ofApp(id))
      if (!kept.has(metadata?.name ?? "")) await this.#cluster.delete(kinds.budget, metadata);
  }

  #groupsOf(machines: readonly string[], expected: ReadonlySet<string>, leaving: string | undefined): readonly Group[] {
    const groups = new Map<string, Group>();
    for (const id of machines) {
      const machine = this.#host.subject(id);
      if (!machine) continue;
      const pod = this.#options.podOf(id);
      // The cluster counts by the labels of Pods. They are older than the metadata, if that has changed.
      const fleet = (pod ? pod.metadata?.labels?.[labels.fleet] : fleetLabel(machine)) ?? "";
      const group = groups.get(fleet) ?? { fleet, all: 0, expected: 0, isWhole: true };
      groups.set(fleet, group);
      group.all++;
      const isExpected = expected.has(id);
      if (isExpected) group.expected++;
      const isAvailable = id !== leaving && isExpected && this.#options.isAvailable(machine);
      if (!isAvailable && (isExpected || (pod && !hasEnded(pod)))) group.isWhole = false;
    }
    return [...groups.values()];
  }
}

/** Whether a budget lets Machines be evicted, as far as the service decides that. */
const isOpen = ({ metadata, spec }: V1PodDisruptionBudget): boolean =>
  String(spec?.minAvailable) !== metadata?.annotations?.[annotations.machines];

interface AppOfBudget {
  readonly id: string;
  readonly name: string;
  readonly namespace: string;
  readonly dataId: string;
}

function budgetOf(group: Group, { id, name, namespace, dataId }: AppOfBudget) {
  const { fleet, all, expected, isWhole } = group;
  const own = { [labels.data]: dataId, [labels.app]: name };
  return {
    apiVersion: kinds.budget.apiVersion,
    kind: kinds.budget.kind,
    metadata: {
      name: fleet === "" ? serviceName(name) : `${serviceName(name)}-${fleet}`,
      namespace,
      labels: own,
      annotations: { [annotations.app]: id, [annotations.machines]: String(all) },
    },
    spec: {
      // More than there can be while one is not available, so that nothing is evicted.
      minAvailable: isWhole ? expected - mostEvicted : all,
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
  before?.spec?.minAvailable === spec.minAvailable &&
  before.metadata?.annotations?.[annotations.machines] === metadata.annotations[annotations.machines] &&
  before.spec.unhealthyPodEvictionPolicy === spec.unhealthyPodEvictionPolicy &&
  before.spec.maxUnavailable === undefined &&
  JSON.stringify(sorted(before.spec.selector?.matchLabels ?? {})) === JSON.stringify(sorted(spec.selector.matchLabels));

const sorted = (marks: Readonly<Record<string, string>>) => Object.entries(marks).sort(([a], [b]) => (a < b ? -1 : 1));

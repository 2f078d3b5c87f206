// Measures at even times what Machines, the proxy and clusters do, for the charts of the console.
import type { Context } from "../context.ts";
import { stepMs, type Point } from "../history/points.ts";
import { clusterOf, findCluster, liveClusters } from "../lifecycle/clusters.ts";
import type { Traffic } from "../proxy/traffic.ts";
import type { ServerLoad } from "../runtime/postgresEngine.ts";
import type { Usage as Read } from "../runtime/runtime.ts";
import { clusterSeries, machineSeries, measuredSeries, trafficSeries } from "./series.ts";

/** Measures what runs. A service in which everything is simulated measures nothing. */
export class Usage {
  /** Why nothing is known of Machines now, as a sentence; undefined if it is. */
  problem: string | undefined;
  /** Whether the engine knows more of Machines than processors and memory. */
  hasNetwork = true;
  /** What the servers of ready clusters did when they were last measured; undefined for one that did not answer. */
  loads: ReadonlyMap<string, ServerLoad | undefined> = new Map();
  readonly #context: Context;
  readonly #traffic: Traffic | undefined;
  /** What was read last, by Machine. */
  #before: ReadonlyMap<string, Read> = new Map();
  #trafficSince: number;
  #isOver = false;
  #cancel: (() => void) | undefined;
  #sampling: Promise<void> | undefined;

  /** `traffic`: the requests at the proxy; undefined without one. */
  constructor(context: Context, traffic: Traffic | undefined) {
    this.#context = context;
    this.#traffic = traffic;
    this.#trafficSince = context.clock.elapsed();
  }

  /** Begins to measure. */
  start(): void {
    const { runtime, postgres } = this.#context;
    if (runtime.usage || postgres.load || this.#traffic) this.#next(0);
  }

  /** Measures now. What is measured twice within a step replaces the first. */
  sample(): Promise<void> {
    this.#sampling ??= this.#measure().finally(() => (this.#sampling = undefined));
    return this.#sampling;
  }

  #next(ms: number): void {
    if (this.#isOver) return;
    this.#cancel = this.#context.clock.after(ms, () => void this.sample().then(() => this.#next(stepMs)));
  }

  async #measure(): Promise<void> {
    const { clock, history, log } = this.#context;
    try {
      const points = [...this.#ofTraffic(), ...(await this.#ofMachines()), ...(await this.#ofClusters())];
      const at = Math.floor(clock.now() / stepMs) * stepMs;
      if (!this.#isOver) await history.addPoints(at, [{ series: measuredSeries, values: [1] }, ...points]);
    } catch (error) {
      if (!this.#isOver) log.warn({ err: error }, "what runs was not measured");
    }
  }

  async #ofMachines(): Promise<Point[]> {
    const { runtime } = this.#context;
    if (!runtime.usage) return [];
    try {
      const now = await runtime.usage();
      const before = this.#before;
      this.#before = now;
      this.problem = undefined;
      if (now.size > 0) this.hasNetwork = [...now.values()].some(({ received }) => received !== undefined);
      return [...now].map(([id, read]) => ({ series: machineSeries(id), values: valuesOf(read, before.get(id)) }));
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      return [];
    }
  }

  #ofTraffic(): Point[] {
    const now = this.#context.clock.elapsed();
    const seconds = Math.max(1, now - this.#trafficSince) / 1000;
    this.#trafficSince = now;
    const counted = this.#traffic?.take() ?? [];
    return counted.map(({ app, route, answers: { requests, errors, median, p95 } }) => ({
      series: trafficSeries(app, route),
      values: [requests / seconds, errors / seconds, median, p95],
    }));
  }

  async #ofClusters(): Promise<Point[]> {
    const { postgres } = this.#context;
    if (!postgres.load) return [];
    const points: Point[] = [];
    const loads = new Map<string, ServerLoad | undefined>();
    for (const id of liveClusters(this.#context)) {
      const row = findCluster(this.#context, id);
      if (row?.status !== "ready") continue;
      // A server that has just ended is no failure of the others.
      const load = await postgres.load(clusterOf(row)).catch(() => undefined);
      loads.set(id, load);
      if (!load) continue;
      const { connections, active, most, slow } = load;
      points.push({ series: clusterSeries(id), values: [connections, active, most, slow] });
    }
    this.loads = loads;
    return points;
  }

  /** Ends, after what is being measured. */
  async close(): Promise<void> {
    this.#isOver = true;
    this.#cancel?.();
    await this.#sampling;
  }
}

/** The values of a Machine between two readings. */
function valuesOf(now: Read, before: Read | undefined): (number | null)[] {
  const rate = (name: "cpuSeconds" | "received" | "sent" | "read" | "written"): number | null => {
    const [last, first] = [now[name], before?.[name]];
    if (last === undefined || first === undefined || before?.run !== now.run || now.at <= before.at) return null;
    // A counter that is less has begun again.
    return last < first ? null : (1000 * (last - first)) / (now.at - before.at);
  };
  const bytes = (["received", "sent", "read", "written"] as const).map(rate);
  return [now.cpus ?? rate("cpuSeconds"), now.memory ?? null, ...bytes];
}

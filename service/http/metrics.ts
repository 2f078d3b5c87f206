// Metrics of the running service, in the text format of Prometheus.
import type { Context } from "../context.ts";
import type { Proxy } from "../proxy/proxy.ts";
import { Costly, Work } from "../time/costly.ts";
import { version } from "../version.ts";
import { statusClasses } from "../watch/byApp.ts";
import { backupMetrics, proxyMetrics, serviceMetrics as of } from "../watch/catalogue.ts";
import { Histogram, linesOf, type Measured, type Sample } from "../watch/exposition.ts";
import { appMetrics, countMachines, type MachineCounts } from "./appMetrics.ts";
import { certificateMetrics, countCertificates, type CertificateCounts } from "./certificateMetrics.ts";
import { clusterMetrics, type Loads } from "./clusterMetrics.ts";
import { quotaMetrics } from "./quotaMetrics.ts";
import { ProcessMetrics } from "./processMetrics.ts";

// Upper bounds in seconds. Held requests last up to 60.
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

interface OperationCounts {
  /** Requests by status, or `cut` if the connection was closed. */
  readonly statuses: Map<number | "cut", number>;
  readonly durations: Histogram;
}

/** Numbers that other parts of the service have. */
export interface Sources {
  readonly context: Context;
  /** Folder of the data; undefined in memory. */
  readonly folder: string | undefined;
  /** Number of requests with an injected fault. */
  readonly faults: () => number;
  /** Number of requests refused with 429. */
  readonly limited: () => number;
  /** What the servers of clusters did when they were last measured. */
  readonly loads: () => Loads;
  readonly proxy: Proxy | undefined;
  /** Further metrics, of a member. */
  readonly member?: (() => readonly Measured[]) | undefined;
}

/** Counts requests as they are answered, and reads the other metrics on request. */
export class Metrics {
  readonly #sources: Sources;
  readonly #operations = new Map<string, OperationCounts>();
  readonly #process: ProcessMetrics;
  readonly #costly: Costly;

  constructor(sources: Sources) {
    this.#sources = sources;
    this.#process = new ProcessMetrics(sources.folder);
    this.#costly = new Costly(() => sources.context.turns.next());
  }

  /** Counts a request; `status` is null when the connection was closed. */
  observe(operation: string, status: number | null, seconds: number): void {
    const outcome = status ?? "cut";
    let known = this.#operations.get(operation);
    if (!known) {
      known = { statuses: new Map(), durations: new Histogram(bounds) };
      this.#operations.set(operation, known);
    }
    known.statuses.set(outcome, (known.statuses.get(outcome) ?? 0) + 1);
    known.durations.observe(seconds);
  }

  /** All metrics as text. It is made in pieces, so that other requests are served in between. */
  async text(): Promise<string> {
    const { context } = this.#sources;
    const counts = await this.#shared("machines", (work) => countMachines(context, work));
    const certificates = await this.#shared("certificates", (work) => countCertificates(context, work));
    const ofProcess = await this.#process.read();
    context.counted.settle();
    const work = new Work(
      () => performance.now(),
      () => context.turns.next(),
    );
    let text = "";
    let lines = 0;
    for (const line of linesOf(this.#all(counts, certificates, ofProcess))) {
      text += line;
      if (++lines % pieceSize === 0) await work.pause();
    }
    return text;
  }

  /** Stops measuring. */
  close(): void {
    this.#process.close();
  }

  /** What was counted in pieces, until the next change and then for a time in proportion to its cost. */
  #shared<T extends object>(name: string, count: (work: Work) => Promise<T>): Promise<T> {
    const { store, clock } = this.#sources.context;
    const stamp = (): string | undefined => {
      // A change that is rolled back also counts as one, so it must have ended.
      if (store.unsettled) return undefined;
      const { n } = store.get<{ n: number }>("SELECT total_changes() AS n") ?? { n: 0 };
      // What is valid now may have expired a minute later.
      return `${n} ${Math.floor(clock.now() / 60_000)}`;
    };
    return this.#costly.answer(name, count, stamp);
  }

  /** All metrics, each when it is written. */
  *#all(counts: MachineCounts, certificates: CertificateCounts, ofProcess: readonly Measured[]): Generator<Measured> {
    const { context, loads, member } = this.#sources;
    yield* this.#ofService(counts);
    yield* appMetrics(context, counts);
    yield* this.#ofProxy();
    yield* certificateMetrics(certificates);
    yield* clusterMetrics(context, loads());
    yield* context.backups?.metrics ?? Object.values(backupMetrics).map((one): Measured => [one, []]);
    yield* quotaMetrics(context);
    yield* ofProcess;
    yield* member?.() ?? [];
  }

  *#ofService({ states }: MachineCounts): Generator<Measured> {
    const { context, limited, faults } = this.#sources;
    const { store, waits, runtime, postgres } = context;
    const size = store.get<{ bytes: number }>(
      "SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()",
    );
    yield [of.build, [[{ version, runtime: runtime.name, postgres: postgres.name }, 1]]];
    const operations = this.#operations;
    yield [
      of.requests,
      each(operations, ([operation, { statuses }]) =>
        [...statuses].map(([status, count]) => [{ operation, status }, count]),
      ),
    ];
    yield [of.durations, each(operations, ([operation, { durations }]) => durations.samples({ operation }))];
    yield [of.machines, [...states].sort(([a], [b]) => (a < b ? -1 : 1)).map(([state, n]) => [{ state }, n])];
    yield [of.waits, [[{}, waits.size]]];
    yield [of.storeBytes, [[{}, size?.bytes ?? 0]]];
    yield [of.limited, [[{}, limited()]]];
    yield [of.faults, [[{}, faults()]]];
  }

  *#ofProxy(): Generator<Measured> {
    const { proxy, context } = this.#sources;
    const answered = context.counted.proxied;
    yield [
      proxyMetrics.requests,
      each(answered, ([app, answers]) =>
        statusClasses.map((status): Sample => [{ app, status }, answers.statusesOf(status)]),
      ),
    ];
    yield [proxyMetrics.durations, each(answered, ([app, { times }]) => times.samples({ app }))];
    const { clients } = proxy ?? {};
    yield [proxyMetrics.connections, clients ? [[{}, clients.size]] : []];
    yield [proxyMetrics.mostConnections, clients ? [[{}, clients.limits.most]] : []];
  }
}

/** Lines after which others are served, if they have waited long enough. */
const pieceSize = 50;

/** The values for each of many. */
function* each<T>(all: Iterable<T>, samples: (one: T) => readonly Sample[]): Generator<Sample> {
  for (const one of all) yield* samples(one);
}

// Metrics of the running service, in the text format of Prometheus.
import type { Context } from "../context.ts";

// Upper bounds in seconds. Held requests last up to 60.
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

interface OperationCounts {
  /** Requests by status, or `cut` if the connection was closed. */
  readonly statuses: Map<number | "cut", number>;
  /** Requests by bucket: up to its bound and above the previous one; the last is above all bounds. */
  readonly counts: number[];
  /** Total duration in seconds. */
  sum: number;
}

/** Counters that the store does not have. */
export interface Counted {
  /** Number of requests with an injected fault. */
  readonly faults: () => number;
  /** Number of requests refused with 429. */
  readonly limited: () => number;
  /** Further metrics as text, of a member. */
  readonly member?: (() => string) | undefined;
}

type Labels = Readonly<Record<string, string | number>>;
type Sample = readonly [labels: Labels, value: number, suffix?: string];

const quoted = (text: string | number): string => `"${String(text).replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`;

function line(name: string, [labels, value, suffix = ""]: Sample): string {
  const inside = Object.entries(labels).map(([label, text]) => `${label}=${quoted(text)}`);
  return `${name}${suffix}${inside.length > 0 ? `{${inside.join(",")}}` : ""} ${value}`;
}

/** A metric with its samples. */
export const metric = (
  name: string,
  type: "counter" | "gauge" | "histogram",
  help: string,
  samples: readonly Sample[],
): string =>
  [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samples.map((sample) => line(name, sample))].join("\n");

/** Counts requests as they are answered, and reads the other metrics from the store on request. */
export class Metrics {
  readonly #context: Context;
  readonly #counted: Counted;
  readonly #operations = new Map<string, OperationCounts>();

  constructor(context: Context, counted: Counted) {
    this.#context = context;
    this.#counted = counted;
  }

  /** Counts a request; `status` is null when the connection was closed. */
  observe(operation: string, status: number | null, seconds: number): void {
    const outcome = status ?? "cut";
    let known = this.#operations.get(operation);
    if (!known) {
      known = { statuses: new Map(), counts: Array.from({ length: bounds.length + 1 }, () => 0), sum: 0 };
      this.#operations.set(operation, known);
    }
    known.statuses.set(outcome, (known.statuses.get(outcome) ?? 0) + 1);
    let bucket = 0;
    while (seconds > (bounds[bucket] ?? Number.POSITIVE_INFINITY)) bucket++;
    known.counts[bucket] = (known.counts[bucket] ?? 0) + 1;
    known.sum += seconds;
  }

  /** All metrics as text. */
  text(): string {
    const { store, waits } = this.#context;
    const states = store.all<{ state: string; machines: number }>(
      "SELECT state, count(*) AS machines FROM machines GROUP BY state ORDER BY state",
    );
    const size = store.get<{ bytes: number }>(
      "SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()",
    );
    const metrics = [
      metric(
        "machines_service_requests_total",
        "counter",
        "Requests answered, by operation and status.",
        [...this.#operations].flatMap(([operation, { statuses }]) =>
          [...statuses].map(([status, count]): Sample => [{ operation, status }, count]),
        ),
      ),
      metric(
        "machines_service_request_duration_seconds",
        "histogram",
        "Time from a request to its answer.",
        [...this.#operations].flatMap(([operation, known]) => histogram(operation, known)),
      ),
      metric(
        "machines_service_machines",
        "gauge",
        "Machines by state; destroyed ones for as long as they are kept.",
        states.map(({ state, machines }): Sample => [{ state }, machines]),
      ),
      metric("machines_service_waits", "gauge", "Requests that are held until something happens.", [[{}, waits.size]]),
      metric("machines_service_store_bytes", "gauge", "Size of the store.", [[{}, size?.bytes ?? 0]]),
      metric("machines_service_rate_limited_total", "counter", "Requests refused because there were too many.", [
        [{}, this.#counted.limited()],
      ]),
      metric("machines_service_faults_total", "counter", "Requests that met a fault on purpose.", [
        [{}, this.#counted.faults()],
      ]),
    ];
    return `${metrics.join("\n")}\n${this.#counted.member?.() ?? ""}`;
  }
}

function histogram(operation: string, { counts, sum }: OperationCounts): Sample[] {
  let count = 0;
  const buckets = counts.map((inBucket, i): Sample => {
    count += inBucket;
    return [{ operation, le: bounds[i] ?? "+Inf" }, count, "_bucket"];
  });
  return [...buckets, [{ operation }, sum, "_sum"], [{ operation }, count, "_count"]];
}

// Metrics of the running service, in the text format of Prometheus.
import type { Context } from "../context.ts";

// Upper bounds in seconds. Held requests last up to 60.
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

interface Durations {
  /** Requests by bucket: up to its bound and above the previous one; the last is above all bounds. */
  readonly counts: number[];
  sum: number;
}

/** Counters that the store does not have. */
export interface Counted {
  /** Number of requests with an injected fault. */
  readonly faults: () => number;
  /** Number of requests refused with 429. */
  readonly limited: () => number;
}

type Labels = Readonly<Record<string, string | number>>;
type Sample = readonly [labels: Labels, value: number, suffix?: string];

const quoted = (text: string | number): string => `"${String(text).replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`;

function line(name: string, [labels, value, suffix = ""]: Sample): string {
  const inside = Object.entries(labels).map(([label, text]) => `${label}=${quoted(text)}`);
  return `${name}${suffix}${inside.length > 0 ? `{${inside.join(",")}}` : ""} ${value}`;
}

const metric = (
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
  readonly #requests = new Map<string, { readonly labels: Labels; count: number }>();
  readonly #durations = new Map<string, Durations>();

  constructor(context: Context, counted: Counted) {
    this.#context = context;
    this.#counted = counted;
  }

  /** Counts a request; `status` is null when the connection was closed. */
  observe(operation: string, status: number | null, seconds: number): void {
    const key = `${operation} ${status}`;
    const known = this.#requests.get(key);
    if (known) known.count++;
    else this.#requests.set(key, { labels: { operation, status: status ?? "cut" }, count: 1 });
    let durations = this.#durations.get(operation);
    if (!durations)
      this.#durations.set(
        operation,
        (durations = { counts: Array.from({ length: bounds.length + 1 }, () => 0), sum: 0 }),
      );
    const bucket = bounds.findIndex((bound) => seconds <= bound);
    const at = bucket < 0 ? bounds.length : bucket;
    durations.counts[at] = (durations.counts[at] ?? 0) + 1;
    durations.sum += seconds;
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
        [...this.#requests.values()].map(({ labels, count }): Sample => [labels, count]),
      ),
      metric(
        "machines_service_request_duration_seconds",
        "histogram",
        "Time from a request to its answer.",
        [...this.#durations].flatMap(([operation, durations]) => histogram(operation, durations)),
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
    return `${metrics.join("\n")}\n`;
  }
}

function histogram(operation: string, { counts, sum }: Durations): Sample[] {
  let count = 0;
  const buckets = counts.map((inBucket, i): Sample => {
    count += inBucket;
    return [{ operation, le: bounds[i] ?? "+Inf" }, count, "_bucket"];
  });
  return [...buckets, [{ operation }, sum, "_sum"], [{ operation }, count, "_count"]];
}

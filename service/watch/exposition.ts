// Metrics in the text format of Prometheus.
import type { Described } from "./catalogue.ts";

type Labels = Readonly<Record<string, string | number>>;

/** A value of a metric with its labels; a part of a histogram has a suffix. */
export type Sample = readonly [labels: Labels, value: number, suffix?: string];

/** A metric, and its values now. Many are made one by one, when they are written. */
export type Measured = readonly [metric: Described, samples: Iterable<Sample>];

const quoted = (text: string | number): string =>
  typeof text === "string" && /[\\"\n]/.test(text)
    ? `"${text.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`
    : `"${text}"`;

function line(name: string, [labels, value, suffix = ""]: Sample): string {
  let inside = "";
  for (const label in labels) inside += `${inside === "" ? "" : ","}${label}=${quoted(labels[label] ?? "")}`;
  return `${name}${suffix}${inside === "" ? "" : `{${inside}}`} ${value}\n`;
}

/** Metrics as lines of text. One without values also says that it exists. */
export function* linesOf(metrics: Iterable<Measured>): Generator<string> {
  for (const [{ name, type, help }, samples] of metrics) {
    yield `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
    for (const sample of samples) yield line(name, sample);
  }
}

/** Counts values by their size. */
export class Histogram {
  readonly #bounds: readonly number[];
  /** By bucket: up to its bound and above the previous one; the last is above all bounds. */
  readonly #counts: number[];
  #sum = 0;

  /** `bounds`: upper bounds, ascending. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  /** Adds a value, `n` times. */
  observe(value: number, n = 1): void {
    let bucket = 0;
    while (value > (this.#bounds[bucket] ?? Number.POSITIVE_INFINITY)) bucket++;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + n;
    this.#sum += value * n;
  }

  /** Adds the values of another one with the same bounds. */
  add(other: Histogram): void {
    for (const [bucket, count] of other.#counts.entries()) this.#counts[bucket] = (this.#counts[bucket] ?? 0) + count;
    this.#sum += other.#sum;
  }

  /** Its values now, with labels. */
  samples(labels: Labels): Sample[] {
    let count = 0;
    const buckets = this.#counts.map((inBucket, i): Sample => {
      count += inBucket;
      return [{ ...labels, le: this.#bounds[i] ?? "+Inf" }, count, "_bucket"];
    });
    return [...buckets, [labels, this.#sum, "_sum"], [labels, count, "_count"]];
  }
}

// A runtime whose Machines write what a test says, as engines keep it: with a time, and readable again.
import { SimulatedRuntime } from "../../service/runtime/simulated.ts";
import { withResolvers } from "../../service/withResolvers.ts";
import type { LogLine, LogQuery, RuntimeHost, Subject } from "../../service/runtime/runtime.ts";

/** What the Machines of a test have written. */
export class Output {
  readonly #lines: LogLine[] = [];
  #changed = withResolvers();
  /** Readings that wait for further lines. */
  readers = 0;

  /** Writes a line of a Machine, at that time. */
  write(machine: string, at: number | string, text: string): void {
    this.#lines.push({ machine, time: typeof at === "number" ? new Date(at).toISOString() : at, text });
    this.#wake();
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = withResolvers();
  }

  /** The lines of a Machine, as an engine reads them. */
  async *read(machine: string, { since = 0, lines, follow, signal }: LogQuery): AsyncGenerator<LogLine> {
    const own = this.#lines.filter((line) => line.machine === machine && Date.parse(line.time) >= since);
    let next = this.#lines.length;
    yield* lines === undefined ? own : own.slice(Math.max(0, own.length - lines));
    if (!follow) return;
    this.readers++;
    signal.addEventListener("abort", () => this.#wake());
    while (!signal.aborted) {
      for (; next < this.#lines.length; next++) {
        const line = this.#lines[next];
        if (line?.machine === machine) yield line;
      }
      await this.#changed.promise;
    }
    this.readers--;
  }
}

/** Runs nothing, and shows an output as what its Machines write. */
export class WritingRuntime extends SimulatedRuntime {
  override readonly name: string = "written";
  readonly #output: Output;

  constructor(host: RuntimeHost, output: Output) {
    super(host);
    this.#output = output;
  }

  logs({ id }: Subject, query: LogQuery): AsyncIterable<LogLine> {
    return this.#output.read(id, query);
  }
}

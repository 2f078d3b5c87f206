// The lines of several Machines, in the order of their time: those so far, and those that come.
import type { Context } from "../context.ts";
import { findMachine, subjectOf } from "../lifecycle/machines.ts";
import type { LogLine, LogQuery, Runtime } from "../runtime/runtime.ts";
import { inOrder, instantOf, LogOrder } from "./logOrder.ts";
import { LogTail, mostText } from "./logTail.ts";

/** Pause between two looks for new Machines while their logs are followed. */
const newMachines = 500;

/** Lines that wait for the client. */
const mostAhead = 10_000;

/** Machines whose past lines are read at the same time. */
const atOnce = 8;

/** An engine that does not answer must not hold back the lines of other Machines. */
const longestPast = 5000;

/** Logs of a runtime. */
export type Logs = NonNullable<Runtime["logs"]>;

/** A Machine whose lines are read. */
export interface Source {
  readonly id: string;
  readonly name: string;
}

/** A line with the name of its Machine. */
export interface NamedLine extends LogLine {
  readonly name: string;
}

/** What is read: by which runtime, of which Machines. */
export interface Reading {
  readonly context: Context;
  readonly logs: Logs;
  /** The Machines now. */
  readonly sources: () => readonly Source[];
  readonly query: LogQuery & { readonly lines: number };
}

function linesOf({ context, logs }: Reading, id: string, query: LogQuery): AsyncIterable<LogLine> | undefined {
  const machine = findMachine(context, id);
  return machine && logs(subjectOf(context, machine), query);
}

/** The lines so far of several Machines, by their time. `each` gets all of one Machine before the last ones are chosen. */
async function linesBefore(
  { query }: Reading,
  sources: readonly Source[],
  each: (id: string) => Promise<readonly LogLine[]>,
): Promise<readonly NamedLine[]> {
  const tail = new LogTail<NamedLine>(query.lines, inOrder);
  const left = sources.values();
  const work = async (): Promise<void> => {
    for (const { id, name } of left) for (const line of await each(id)) tail.add({ ...line, name });
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return tail.lines();
}

/** The last lines of a Machine. An engine may answer more than it is asked, such as those of each of its runs. */
async function lastOf(lines: AsyncIterable<LogLine> | undefined, count: number): Promise<readonly LogLine[]> {
  const tail = new LogTail<LogLine>(count);
  for await (const line of lines ?? []) tail.add(line);
  return tail.lines();
}

/** The lines so far, by their time. */
export async function* pastLines(reading: Reading): AsyncGenerator<NamedLine> {
  const { query } = reading;
  yield* await linesBefore(reading, reading.sources(), (id) => lastOf(linesOf(reading, id, query), query.lines));
}

/** How far the lines of a Machine were read: the time of the last one, and how many lines have it. */
interface Place {
  readonly time: string;
  readonly key: string;
  readonly count: number;
}

/** The place after another line. */
const placeAfter = (place: Place | undefined, { time }: LogLine): Place => {
  const key = instantOf(time);
  return place && key === place.key ? { ...place, count: place.count + 1 } : { time, key, count: 1 };
};

/** The millisecond of a place. Engines are asked by milliseconds, so lines of the same one come again. */
const momentOf = ({ time }: Place): number => Math.floor(Date.parse(time));

/** The lines after a place. */
async function* linesAfter(lines: AsyncIterable<LogLine>, place: Place): AsyncGenerator<LogLine> {
  const begin = instantOf(new Date(momentOf(place)).toISOString());
  let same = 0;
  let isNew = false;
  for await (const line of lines) {
    const key = instantOf(line.time);
    // An earlier time than requested is of a later run, after the clock of the engine was set back.
    isNew ||= key < begin || key > place.key || (key === place.key && ++same > place.count);
    if (isNew) yield line;
  }
}

/** Follows the lines of several Machines, also of those that are created later. */
class Following {
  readonly #reading: Reading;
  readonly #order = new LogOrder<NamedLine>();
  /** Names of the Machines that are followed. */
  readonly #names = new Map<string, string>();
  readonly #places = new Map<string, Place>();
  /** Number of lines to begin with, for the Machines of the beginning. All lines of later ones are new. */
  readonly #tails = new Map<string, number>();
  /** Number of Machines whose lines are read now. */
  #open = 0;
  #wake = (): void => {};
  #drained: (() => void)[] = [];

  constructor(reading: Reading) {
    this.#reading = reading;
  }

  async *lines(): AsyncGenerator<NamedLine> {
    const { context, query } = this.#reading;
    const { clock } = context;
    let isDue = false;
    const timer = setInterval(() => {
      isDue = true;
      this.#wake();
    }, newMachines).unref();
    const abort = (): void => {
      this.#wake();
      this.#drain();
    };
    query.signal.addEventListener("abort", abort);
    try {
      await this.#readPast();
      while (!query.signal.aborted) {
        const next = this.#order.take(clock.elapsed(), this.#open <= 1);
        if (!this.#isFull()) this.#drain();
        if (next) yield next;
        else await this.#changed(this.#order.dueIn(clock.elapsed()));
        if (!isDue) continue;
        isDue = false;
        this.#followNew();
      }
    } finally {
      clearInterval(timer);
      query.signal.removeEventListener("abort", abort);
    }
  }

  /** Resolves when there may be a next line. */
  #changed(dueIn: number | undefined): Promise<void> {
    if (this.#reading.query.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = dueIn === undefined ? undefined : this.#reading.context.clock.after(dueIn, () => this.#wake());
      this.#wake = () => {
        cancel?.();
        resolve();
      };
    });
  }

  /** Reads the last lines of all Machines, and from then on what comes after them. */
  async #readPast(): Promise<void> {
    const { query, sources, context } = this.#reading;
    const { lines } = query;
    const now = sources();
    const past =
      lines === 0
        ? []
        : await linesBefore(this.#reading, now, async (id) => {
            const found = await this.#pastOf(id);
            if (!found) this.#tails.set(id, lines);
            for (const line of found ?? []) this.#places.set(id, placeAfter(this.#places.get(id), line));
            return found ?? [];
          });
    // They wait too: another Machine may have written an earlier line since it was read.
    for (const line of past) this.#order.add(line, context.clock.elapsed());
    if (lines === 0) for (const { id } of now) this.#tails.set(id, 0);
    for (const source of now) this.#follow(source);
  }

  /** The lines of a Machine so far; undefined if they cannot be read soon. */
  async #pastOf(id: string): Promise<readonly LogLine[] | undefined> {
    const { query } = this.#reading;
    const late = new AbortController();
    const signal = AbortSignal.any([query.signal, late.signal]);
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${longestPast} ms`)), longestPast);
      query.signal.addEventListener("abort", () => reject(new Error("no one reads it any more")));
    });
    try {
      const lines = linesOf(this.#reading, id, { ...query, follow: false, signal });
      return await Promise.race([lastOf(lines, query.lines), tooLate]);
    } catch (error) {
      late.abort();
      this.#warn(id, error);
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }

  #followNew(): void {
    for (const source of this.#reading.sources()) {
      if (this.#names.has(source.id)) this.#names.set(source.id, source.name);
      else this.#follow(source);
    }
  }

  #follow({ id, name }: Source): void {
    this.#names.set(id, name);
    void this.#read(id);
  }

  async #read(id: string): Promise<void> {
    const { query, context } = this.#reading;
    const place = this.#places.get(id);
    const asked = place
      ? { ...query, since: momentOf(place), lines: undefined }
      : { ...query, lines: this.#tails.get(id) };
    this.#open++;
    try {
      const all = linesOf(this.#reading, id, asked) ?? noLines();
      for await (const line of place ? linesAfter(all, place) : all) {
        this.#places.set(id, placeAfter(this.#places.get(id), line));
        this.#order.add({ ...line, name: this.#names.get(id) ?? id }, context.clock.elapsed());
        this.#wake();
        // The client may read slowly.
        while (this.#isFull() && !query.signal.aborted)
          await new Promise<void>((resolve) => this.#drained.push(resolve));
      }
      this.#order.end(id);
    } catch (error) {
      // It is followed again from there, with the next look for new Machines.
      this.#names.delete(id);
      this.#warn(id, error);
    }
    this.#open--;
    this.#wake();
  }

  #isFull(): boolean {
    return this.#order.size >= mostAhead || this.#order.text >= mostText;
  }

  #drain(): void {
    const waiting = this.#drained;
    if (waiting.length === 0) return;
    this.#drained = [];
    for (const resolve of waiting) resolve();
  }

  #warn(machine: string, error: unknown): void {
    const { query, context } = this.#reading;
    if (!query.signal.aborted) context.log.warn({ err: error, machine }, "the logs of a Machine cannot be followed");
  }
}

async function* noLines(): AsyncGenerator<LogLine> {}

/** The last lines of all Machines, then those that come, in the order of their time over all Machines. */
export const followedLines = (reading: Reading): AsyncGenerator<NamedLine> => new Following(reading).lines();

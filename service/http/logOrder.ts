// Puts the lines of several Machines in the order of their time, while they arrive. Engines deliver the lines of each Machine in
// their order, but those of one Machine may arrive later than those of another.
import type { LogLine } from "../runtime/runtime.ts";
import { Heap } from "../time/heap.ts";

// ASSUMED: lines of several Machines are in the order of their time if none arrives more than 300 ms after the others.
/** A line waits at most that many milliseconds for earlier ones of other Machines. */
export const waitMs = 300;

/** A time as a text that sorts as the times do: engines write different numbers of digits, and some write a zone. */
export function instantOf(time: string): string {
  const [, second = "", fraction = "", zone = "Z"] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?$/.exec(time) ?? [];
  const at = zone === "Z" ? Number.NaN : Date.parse(second + zone);
  return `${Number.isNaN(at) ? second : new Date(at).toISOString().slice(0, 19)}.${fraction.padEnd(9, "0")}`;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Lines in the order of their time; those of the same time stay as they are. */
export function inOrder<L extends LogLine>(lines: readonly L[]): L[] {
  const keyed = lines.map((line): [string, L] => [instantOf(line.time), line]);
  return keyed.sort(([a], [b]) => compare(a, b)).map(([, line]) => line);
}

interface Held<L> {
  readonly line: L;
  readonly key: string;
  readonly number: number;
  readonly arrived: number;
  isOut: boolean;
}

const isBefore = (a: Held<unknown>, b: Held<unknown>): boolean =>
  a.key === b.key ? a.number < b.number : a.key < b.key;

/** Lines that wait for earlier ones. */
export class LogOrder<L extends LogLine> {
  /** The earliest line is the first. */
  readonly #heap = new Heap<Held<L>>(isBefore);
  /** As they arrived; those that are out already are removed later. */
  #queue: (Held<L> | undefined)[] = [];
  #head = 0;
  #text = 0;
  #count = 0;
  /** The time of the latest line of each Machine: its lines stay in their order, also when its clock was set back. */
  readonly #latest = new Map<string, string>();

  /** Number of lines that wait. */
  get size(): number {
    return this.#heap.size;
  }

  /** Number of characters of these lines. */
  get text(): number {
    return this.#text;
  }

  /** Adds a line that arrived at that time, in milliseconds. */
  add(line: L, now: number): void {
    const [own, latest = ""] = [instantOf(line.time), this.#latest.get(line.machine)];
    const key = own < latest ? latest : own;
    this.#latest.set(line.machine, key);
    const held = { line, key, number: this.#count++, arrived: now, isOut: false };
    this.#queue.push(held);
    this.#heap.push(held);
    this.#text += line.text.length;
  }

  /** Forgets the time of a Machine whose lines have ended. */
  end(machine: string): void {
    this.#latest.delete(machine);
  }

  /**
   * The next line if it has waited long enough, or an earlier or later one that it must not overtake has; otherwise undefined.
   * `isAlone`: no other Machine may bring an earlier one.
   */
  take(now: number, isAlone = false): L | undefined {
    const oldest = this.#oldest();
    if (!oldest || (!isAlone && now < oldest.arrived + waitMs)) return undefined;
    const { first } = this.#heap;
    this.#heap.shift();
    if (!first) return undefined;
    first.isOut = true;
    this.#text -= first.line.text.length;
    return first.line;
  }

  /** In how many milliseconds there is a next line at the latest; undefined while none waits. */
  dueIn(now: number): number | undefined {
    const oldest = this.#oldest();
    return oldest && Math.max(0, oldest.arrived + waitMs - now);
  }

  /** The line that has waited longest. */
  #oldest(): Held<L> | undefined {
    // Its line, which may be long, is not kept until the queue is shortened.
    while (this.#queue[this.#head]?.isOut) this.#queue[this.#head++] = undefined;
    if (this.#head > 1000 && this.#head * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#head);
      this.#head = 0;
    }
    return this.#queue[this.#head];
  }
}

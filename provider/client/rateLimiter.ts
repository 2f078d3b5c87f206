// Keeps to the service's rate limits (docs/interface.md#rate-limits). The first 429 of an action opens a queue. From
// then on its requests are sent one by one, in their order, at the documented rate. A service without limits is not
// slowed down.
import type { Operation } from "../../api/operation.ts";
import type { Clock, Deadline } from "./clock.ts";

/** Requests a second that the platform allows for each action on one object (docs/interface.md#rate-limits). */
const usual = 1;
const perSecond: Readonly<Record<string, number>> = { "machines.get": 5, "apps.delete": 100 / 60 };
/** Slightly slower than allowed, because a request that is sent after exactly one second may arrive earlier. */
const margin = 1.01;
/** Milliseconds without a request after which a queue is removed. */
const idleAfter = 60_000;

interface Waiter {
  readonly ticket: number;
  readonly go: () => void;
  readonly signal: AbortSignal | undefined;
}

interface Queue {
  readonly interval: number;
  /** When the next request may be sent. */
  next: number;
  readonly queue: Waiter[];
  moving: boolean;
}

/** The queues of one client. */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #lanes = new Map<string, Queue>();
  #tickets = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Key of the limit that a request counts against: its Machine, else its App, else its cluster. */
  static key({ id }: Operation, args: Readonly<Record<string, unknown>>): string {
    const subject = args["machineId"] ?? args["appName"] ?? args["postgresClusterId"];
    return id === "apps.delete" || typeof subject !== "string" ? id : `${id} ${subject}`;
  }

  /** The position of a request among all. A request that has to wait again keeps it. */
  ticket(): number {
    return this.#tickets++;
  }

  /** Milliseconds that a new request has to wait; 0 without a queue. */
  delay(key: string): number {
    const lane = this.#lanes.get(key);
    return lane ? Math.max(0, lane.next + lane.queue.length * lane.interval - this.#clock.now()) : 0;
  }

  /** Notes a 429 of the service, which accepts the next request after so many milliseconds. */
  hold(key: string, operation: Operation, milliseconds: number): void {
    this.#forgetIdle();
    const interval = (1000 / (perSecond[operation.id] ?? usual)) * margin;
    const lane = this.#lanes.get(key) ?? { interval, next: 0, queue: [], moving: false };
    lane.next = Math.max(lane.next, this.#clock.now() + milliseconds);
    this.#lanes.set(key, lane);
  }

  /** Resolves when the request may be sent; at once without a queue. */
  async turn(key: string, { signal }: Deadline, ticket: number): Promise<void> {
    const lane = this.#lanes.get(key);
    if (!lane) return;
    await new Promise<void>((go) => {
      const behind = lane.queue.findIndex((other) => other.ticket > ticket);
      lane.queue.splice(behind < 0 ? lane.queue.length : behind, 0, { ticket, go, signal });
      if (!lane.moving) void this.#move(lane);
    });
    signal?.throwIfAborted();
  }

  async #move(lane: Queue): Promise<void> {
    lane.moving = true;
    for (let first = lane.queue[0]; first; first = lane.queue[0]) {
      // A request that is cancelled leaves the queue.
      const cancelled = await this.#reached(lane, first.signal).then(
        () => false,
        () => true,
      );
      const waiter = cancelled ? first : (lane.queue[0] ?? first);
      lane.queue.splice(lane.queue.indexOf(waiter), 1);
      if (!waiter.signal?.aborted) lane.next = this.#clock.now() + lane.interval;
      waiter.go();
    }
    lane.moving = false;
  }

  /** Resolves when the queue's next request may be sent. Another 429 can put that off. */
  async #reached(lane: Queue, signal: AbortSignal | undefined): Promise<void> {
    do await this.#clock.sleep(Math.max(0, lane.next - this.#clock.now()), signal);
    while (this.#clock.now() < lane.next);
  }

  #forgetIdle(): void {
    for (const [key, { next, queue }] of this.#lanes)
      if (queue.length === 0 && next + idleAfter < this.#clock.now()) this.#lanes.delete(key);
  }
}

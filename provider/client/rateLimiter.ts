// Keeping to the service's rate limits (bodies 1.3). A service that has none is not slowed down: a lane begins with the
// first 429 of an action, and from then on its requests go one by one, in the order they came, at the documented rate.
import type { Operation } from "../../api/operation.ts";
import type { Clock, Deadline } from "./clock.ts";

/** Requests a second the platform lets through, for every action and what it acts on (bodies 1.3). */
const usual = 1;
const perSecond: Readonly<Record<string, number>> = { "machines.get": 5, "apps.delete": 100 / 60 };
/** A little slower than allowed: what is sent on the second sharp may arrive before it. */
const margin = 1.01;
/** Milliseconds after which a lane nobody used is forgotten. */
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

/** The lanes of one client. */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #lanes = new Map<string, Queue>();
  #tickets = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What an action is counted for: the Machine, else the App, else the cluster it acts on. */
  static key({ id }: Operation, args: Readonly<Record<string, unknown>>): string {
    const subject = args["machineId"] ?? args["appName"] ?? args["postgresClusterId"];
    return id === "apps.delete" || typeof subject !== "string" ? id : `${id} ${subject}`;
  }

  /** The place of a request among all: one that is sent back keeps it. */
  ticket(): number {
    return this.#tickets++;
  }

  /** Milliseconds a request that comes now has to wait; 0 without a lane. */
  delay(key: string): number {
    const lane = this.#lanes.get(key);
    return lane ? Math.max(0, lane.next + lane.queue.length * lane.interval - this.#clock.now()) : 0;
  }

  /** The service answered 429 and may be asked again after so many milliseconds. */
  hold(key: string, operation: Operation, milliseconds: number): void {
    this.#forgetIdle();
    const interval = (1000 / (perSecond[operation.id] ?? usual)) * margin;
    const lane = this.#lanes.get(key) ?? { interval, next: 0, queue: [], moving: false };
    lane.next = Math.max(lane.next, this.#clock.now() + milliseconds);
    this.#lanes.set(key, lane);
  }

  /** Resolves when the request may be sent; at once where there is no lane. */
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
      // Who is cancelled meanwhile waits no longer, and takes nobody's turn.
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

  /** Resolves when the lane's next request may be sent; the service may put that off meanwhile. */
  async #reached(lane: Queue, signal: AbortSignal | undefined): Promise<void> {
    do await this.#clock.sleep(Math.max(0, lane.next - this.#clock.now()), signal);
    while (this.#clock.now() < lane.next);
  }

  #forgetIdle(): void {
    for (const [key, { next, queue }] of this.#lanes)
      if (queue.length === 0 && next + idleAfter < this.#clock.now()) this.#lanes.delete(key);
  }
}

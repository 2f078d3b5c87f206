// Keeps to the service's rate limits (docs/interface.md#rate-limits). The first 429 of an action opens a queue. From
// then on its requests are sent one by one, in their order, at the documented rate. A service without limits is not
// slowed down.
import { inSpan } from "../../api/tracing.ts";
import type { Clock } from "./clock.ts";
import { MachinesError } from "./errors.ts";
import type { Handler, Request } from "./handler.ts";
import type { Outcome } from "./transport.ts";

/** Requests a second that the platform allows for each action on one object (docs/interface.md#rate-limits). */
const usual = 1;
const perSecond: Readonly<Record<string, number>> = { "machines.get": 5, "apps.delete": 100 / 60 };
/** Slightly slower than allowed, because a request that is sent after exactly one second may arrive earlier. */
const margin = 1.01;
/** Milliseconds without a request after which a queue is removed. */
const idleAfter = 60_000;

interface Waiter {
  readonly position: number;
  readonly go: () => void;
  readonly signal: AbortSignal | undefined;
}

interface Queue {
  readonly interval: number;
  /** When the next request may be sent. */
  next: number;
  readonly waiters: Waiter[];
  moving: boolean;
}

/** Key of the queue that a request belongs to: by its Machine, else its App, else its cluster. */
export function queueKey({ operation, args }: Pick<Request, "operation" | "args">): string {
  const subject = args["machineId"] ?? args["appName"] ?? args["postgresClusterId"];
  return operation.id === "apps.delete" || typeof subject !== "string" ? operation.id : `${operation.id} ${subject}`;
}

/** The queues of one client. */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #queues = new Map<string, Queue>();
  #positions = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The position of a new request among all of the client. */
  nextPosition(): number {
    return this.#positions++;
  }

  /** Milliseconds that a new request has to wait; 0 without a queue. */
  delay(request: Request): number {
    const queue = this.#queues.get(queueKey(request));
    return queue ? Math.max(0, queue.next + queue.waiters.length * queue.interval - this.#clock.now()) : 0;
  }

  /** Records a 429 of the service, which accepts the next request after this many milliseconds. */
  limit(request: Request, milliseconds: number): void {
    this.#forgetIdle();
    const key = queueKey(request);
    const interval = (1000 / (perSecond[request.operation.id] ?? usual)) * margin;
    const queue = this.#queues.get(key) ?? { interval, next: 0, waiters: [], moving: false };
    queue.next = Math.max(queue.next, this.#clock.now() + milliseconds);
    this.#queues.set(key, queue);
  }

  /** Resolves when the request may be sent; at once without a queue. */
  async acquire(request: Request): Promise<void> {
    const queue = this.#queues.get(queueKey(request));
    if (!queue) return;
    const { position } = request;
    const { signal } = request.deadline;
    await new Promise<void>((go) => {
      const behind = queue.waiters.findIndex((other) => other.position > position);
      queue.waiters.splice(behind < 0 ? queue.waiters.length : behind, 0, { position, go, signal });
      if (!queue.moving) void this.#move(queue);
    });
    signal?.throwIfAborted();
  }

  async #move(queue: Queue): Promise<void> {
    queue.moving = true;
    for (let first = queue.waiters[0]; first; first = queue.waiters[0]) {
      // A request that is cancelled leaves the queue.
      const cancelled = await this.#reached(queue, first.signal).then(
        () => false,
        () => true,
      );
      const waiter = cancelled ? first : (queue.waiters[0] ?? first);
      queue.waiters.splice(queue.waiters.indexOf(waiter), 1);
      if (!waiter.signal?.aborted) queue.next = this.#clock.now() + queue.interval;
      waiter.go();
    }
    queue.moving = false;
  }

  /** Resolves when the queue's next request may be sent. Another 429 can put that off. */
  async #reached(queue: Queue, signal: AbortSignal | undefined): Promise<void> {
    do await this.#clock.sleep(Math.max(0, queue.next - this.#clock.now()), signal);
    while (this.#clock.now() < queue.next);
  }

  #forgetIdle(): void {
    for (const [key, { next, waiters }] of this.#queues)
      if (waiters.length === 0 && next + idleAfter < this.#clock.now()) this.#queues.delete(key);
  }
}

/** Keeps each request in its queue until it may be sent. */
export const withRateLimit =
  (rateLimiter: RateLimiter, clock: Clock, next: Handler<Outcome>): Handler<Outcome> =>
  async (request) => {
    const { deadline } = request;
    const now = clock.now();
    const delay = rateLimiter.delay(request);
    if (now < deadline.at && now + delay >= deadline.at) throw tooLate(request);
    const acquire = () => rateLimiter.acquire(request);
    await (delay > 0 ? inSpan("wait for the rate limit", {}, acquire) : acquire());
    return next(request);
  };

const tooLate = (request: Request): MachinesError =>
  new MachinesError(
    "wait-timeout",
    `${request.operation.id}: the service's rate limit for ${queueKey(request)} does not allow the request within the time limit of ${request.deadline.allowed}. ${request.attempt === 0 ? "Nothing was sent; run" : "Run"} again later, or set longer customTimeouts.`,
  );

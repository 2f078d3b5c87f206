// Long polls: requests that are held until a change. The commit of the change wakes them, without polling. Thousands may be
// held at once: each takes little memory, and one turn of the event loop answers only some of them.
import type { Clock } from "./clock.ts";
import { DueQueue } from "./dueQueue.ts";
import { Refusal } from "../refusal.ts";

/** A held request. */
export interface Hold<T> {
  /** Identifier of the object whose changes wake it. */
  readonly subject: string;
  /** The organization of its client. */
  readonly org: number;
  /** What it waits for, for people; such holds are listed. */
  readonly wanted?: string;
  /** The answer, or undefined to keep waiting; throws a refusal. */
  readonly look: () => T | undefined;
  readonly timeoutMs: number;
  readonly late: () => Refusal;
  /** Calls back when the client disconnects. */
  readonly onGone: (leave: () => void) => void;
  /** Called once it is held: there is a place for it, and its client is there. */
  readonly held?: () => void;
}

interface Waiter {
  readonly id: number;
  readonly due: number;
  readonly hold: Hold<unknown>;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (reason: unknown) => void;
  /** Whether it is queued for another check. */
  isWoken: boolean;
  done: boolean;
}

// ASSUMED: at most half of the possible connections hold requests; one more is 503 with `Retry-After`.
const tooMany = (most: number, of = ""): Refusal =>
  new Refusal(503, { error: `too many requests${of} are held, at most ${most} may be` }, { "retry-after": "5" });

// ASSUMED: one organization has at most three quarters of the requests that may be held, so that others find a place. It has not less,
// because most services have only one organization.
const shareOf = (most: number): number => Math.ceil((most * 3) / 4);

// Number of waiters that are answered in one turn of the event loop: about 10 ms.
const mostAtOnce = 100;

/** All held requests. */
export class Waits {
  readonly #clock: Clock;
  readonly #waiters = new Map<string, Set<Waiter>>();
  /** One timer serves all requests: a timer each would take a large share of their memory. */
  readonly #deadlines = new DueQueue<Waiter>();
  readonly #most: number;
  /** Number of requests that each organization holds. */
  readonly #held = new Map<number, number>();
  /** Waits that are queued for another check. */
  #woken: Waiter[] = [];
  #isLooking = false;
  #armed: { readonly due: number; readonly cancel: () => void } | undefined;
  #lastId = 0;
  #size = 0;
  #closed: Refusal | undefined;
  #listed: (subject: string) => void = () => {};

  constructor(clock: Clock, most: number) {
    this.#clock = clock;
    this.#most = most;
  }

  /** Number of requests held now. */
  get size(): number {
    return this.#size;
  }

  /** Calls back with the object after a hold that is listed has begun or ended: neither is a change of the store. */
  onListed(notify: (subject: string) => void): void {
    this.#listed = notify;
  }

  /** What the requests wait for that are held for an object, and until when in milliseconds since 1970. */
  heldOn(subject: string): readonly { readonly wanted: string; readonly until: number }[] {
    const start = this.#clock.now() - this.#clock.elapsed();
    return [...(this.#waiters.get(subject) ?? [])].flatMap(({ due, hold: { wanted } }) =>
      wanted === undefined ? [] : [{ wanted, until: start + due }],
    );
  }

  hold<T>(hold: Hold<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed) return reject(this.#closed);
      const waiter: Waiter = {
        id: ++this.#lastId,
        due: this.#clock.elapsed() + hold.timeoutMs,
        hold,
        resolve: resolve as Waiter["resolve"],
        reject,
        isWoken: false,
        done: false,
      };
      const waiters = this.#waiters.get(hold.subject);
      if (waiters) waiters.add(waiter);
      else this.#waiters.set(hold.subject, new Set([waiter]));
      this.#size++;
      const own = (this.#held.get(hold.org) ?? 0) + 1;
      this.#held.set(hold.org, own);
      this.#look(waiter);
      const share = shareOf(this.#most);
      if (!waiter.done && this.#size > this.#most) this.#end(waiter, tooMany(this.#most));
      if (!waiter.done && own > share) this.#end(waiter, tooMany(share, " of this organization"));
      if (waiter.done) return;
      hold.onGone(() => this.#end(waiter, new Refusal(499, { error: "the client has disconnected" })));
      this.#deadlines.push(waiter);
      // Waiters that are answered long before their deadline would fill the memory.
      if (this.#deadlines.size > 2 * this.#size + 1000)
        this.#deadlines.reset([...this.#waiters.values()].flatMap((ofSubject) => [...ofSubject]));
      this.#arm();
      if (hold.wanted !== undefined) this.#listed(hold.subject);
      if (!waiter.done) hold.held?.();
    });
  }

  /** Wakes the requests that wait for these objects: some now, the others after other requests were served. */
  wake(subjects: Iterable<string>): void {
    if (this.#waiters.size === 0) return;
    for (const subject of subjects)
      for (const waiter of this.#waiters.get(subject) ?? [])
        if (!waiter.isWoken) {
          waiter.isWoken = true;
          this.#woken.push(waiter);
        }
    if (!this.#isLooking) this.#lookOn();
  }

  /** Ends every held request. ASSUMED: held requests get 503 and `Connection: close` when the service closes. */
  close(): void {
    this.#closed = new Refusal(
      503,
      { error: "the service is shutting down" },
      { connection: "close", "retry-after": "1" },
    );
    for (const waiters of [...this.#waiters.values()])
      for (const waiter of [...waiters]) this.#end(waiter, this.#closed);
    this.#armed?.cancel();
  }

  #lookOn(): void {
    this.#isLooking = false;
    const some = this.#woken.splice(0, mostAtOnce);
    for (const waiter of some) this.#look(waiter);
    if (this.#woken.length === 0) return;
    this.#isLooking = true;
    setImmediate(() => this.#lookOn());
  }

  #look(waiter: Waiter): void {
    waiter.isWoken = false;
    if (waiter.done) return;
    try {
      const answer = waiter.hold.look();
      if (answer === undefined) return;
      this.#settle(waiter);
      waiter.resolve(answer);
    } catch (error) {
      this.#end(waiter, error);
    }
  }

  #end(waiter: Waiter, reason: unknown): void {
    if (waiter.done) return;
    this.#settle(waiter);
    waiter.reject(reason);
  }

  #settle(waiter: Waiter): void {
    waiter.done = true;
    this.#size--;
    const { subject, org, wanted } = waiter.hold;
    const left = (this.#held.get(org) ?? 0) - 1;
    if (left > 0) this.#held.set(org, left);
    else this.#held.delete(org);
    const waiters = this.#waiters.get(subject);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.#waiters.delete(subject);
    if (wanted !== undefined) this.#listed(subject);
  }

  /** Sleeps until the next deadline. */
  #arm(): void {
    let { first } = this.#deadlines;
    for (; first?.done; { first } = this.#deadlines) this.#deadlines.shift();
    if (first?.due === this.#armed?.due) return;
    this.#armed?.cancel();
    this.#armed = first && {
      due: first.due,
      cancel: this.#clock.after(first.due - this.#clock.elapsed(), () => this.#expire()),
    };
  }

  #expire(): void {
    this.#armed = undefined;
    const now = this.#clock.elapsed();
    let ended = 0;
    for (let { first } = this.#deadlines; first && first.due <= now; { first } = this.#deadlines) {
      if (ended >= mostAtOnce) break;
      this.#deadlines.shift();
      if (first.done) continue;
      ended++;
      this.#end(first, first.hold.late());
    }
    this.#arm();
  }
}

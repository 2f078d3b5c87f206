// The timers of the service. They are in memory, ordered by time, and in the store, so that they survive a restart. The store
// is written once per commit, because a Machine that starts sets and cancels several timers within one.
import { latestTime, type Clock } from "./clock.ts";
import { DueQueue } from "./dueQueue.ts";
import type { Store } from "../store/database.ts";

/** Kinds of timers; lifecycle/timerHandlers.ts has the handler of each. */
export const timerKinds = [
  "app.remove",
  "machine.retry",
  "machine.schedule",
  "machine.forget",
  "volume.step",
  "volume.unbind",
  "volume.remove",
  "volume.backup",
  "snapshot.done",
  "snapshot.expire",
  "certificate.issue",
  "certificate.renew",
  "certificate.expire",
  "certificate.limit",
  "certificate.own",
  "cluster.step",
  "cluster.measure",
  "cluster.clear",
  "cluster.discard",
  "backup.done",
  "runtime.step",
  "runtime.exit",
  "runtime.checks",
] as const;

/** A kind of timer. */
export type TimerKind = (typeof timerKinds)[number];

/** These are due at a date; all others after a time, which is the same after the clock was set (F93). */
const atDate: ReadonlySet<TimerKind> = new Set(["certificate.renew", "certificate.expire", "certificate.own"]);

interface Timer {
  /** Ascends with every timer that is set. */
  readonly id: number;
  due: number;
  readonly kind: TimerKind;
  readonly subject: string;
  readonly data: string;
  /** Made once, because each lookup by a new text would hash it again. */
  readonly key: string;
}

// Number of timers that run in one transaction. Requests are served before the next ones run.
const mostAtOnce = 250;
// Timers that a request sets for now always run in its transaction. More than this number would be an endless loop.
const mostSetOff = 10_000;

const retryMs = 1000;
// Work in pieces resumes at once; only after a kill does it wait for its timer.
const resumeMs = 1000;
const failedMs = 60_000;

const keyOf = (subject: string, kind: TimerKind): string => `${kind} ${subject}`;

/** The one scheduler. A subject has at most one timer of each kind. */
export class Timers {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #fire: (kind: TimerKind, subject: string, data: string) => void;
  readonly #failed: (error: unknown, kind: string) => void;
  readonly #timers = new Map<string, Timer>();
  /** Cancelled timers stay in it until they are due. */
  readonly #queue = new DueQueue<Timer>();
  /** Timers that differ from the table, by key, and whether the table has a row for them. */
  #changed = new Map<string, readonly [subject: string, kind: TimerKind, stored: boolean]>();
  /** Timers of the open transaction that were due at once. */
  #setOff: Timer[] = [];
  readonly #unfinished = new Map<string, TimerKind>();
  #lastId = 0;
  #ended = false;
  #next: NodeJS.Immediate | undefined;
  #armed: { due: number; cancel: () => void } | undefined;

  constructor(
    store: Store,
    clock: Clock,
    fire: (kind: TimerKind, subject: string, data: string) => void,
    failed: (error: unknown, kind: string) => void,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#fire = fire;
    this.#failed = failed;
    for (const row of store.each<Omit<Timer, "key">>("SELECT id, due, kind, subject, data FROM timers")) {
      const timer = { ...row, key: keyOf(row.subject, row.kind) };
      this.#timers.set(timer.key, timer);
      this.#queue.push(timer);
      this.#lastId = Math.max(this.#lastId, timer.id);
    }
  }

  /** Sets a timer; it replaces a timer of the same kind and subject. */
  after(ms: number, kind: TimerKind, subject: string, data = ""): void {
    const now = this.#clock.now();
    const key = keyOf(subject, kind);
    const timer = { id: ++this.#lastId, due: Math.min(now + ms, latestTime), kind, subject, data, key };
    this.#set(key, timer, timer);
    if (ms <= 0) this.#setOff.push(timer);
  }

  /** Resumes work in a separate transaction after other requests were served, also after a kill. */
  resume(kind: TimerKind, subject: string): void {
    this.after(resumeMs, kind, subject);
    this.#unfinished.set(subject, kind);
  }

  /** Cancels timers of a subject: of these kinds, or all. */
  cancel(subject: string, ...kinds: TimerKind[]): void {
    for (const kind of kinds.length > 0 ? kinds : timerKinds) {
      const timer = this.#timers.get(keyOf(subject, kind));
      if (timer) this.#set(timer.key, timer, undefined);
    }
  }

  /** When such a timer is due, and its data; undefined if it is not set. */
  find(subject: string, kind: TimerKind): Pick<Timer, "due" | "data"> | undefined {
    return this.#timers.get(keyOf(subject, kind));
  }

  /** Whether such a timer is set. */
  pending(subject: string, kind: TimerKind): boolean {
    return this.#timers.has(keyOf(subject, kind));
  }

  /** Keeps the time that is left of each timer, in the transaction in which the clock is moved by that many milliseconds. */
  shift(ms: number): void {
    this.#move(ms);
    this.#store.onUndo(() => this.#move(-ms));
    const kept = [...atDate];
    const others = `kind NOT IN (${kept.map(() => "?").join(", ")})`;
    this.#store.run(`UPDATE timers SET due = due + ? WHERE ${others}`, ms, ...kept);
  }

  #move(ms: number): void {
    for (const timer of this.#timers.values()) if (!atDate.has(timer.kind)) timer.due += ms;
    this.#queue.reset(this.#timers.values());
    this.#armed?.cancel();
    this.#armed = undefined;
  }

  /** Runs the timers that are due, in order, and writes changed timers to the store; the last part of a transaction. */
  runDue(): void {
    try {
      // Timers rarely fail, and a savepoint for each would cost more than the timer.
      this.#store.attempt(() => this.#runAll((timer) => this.#run(timer)));
    } catch (error) {
      if (!this.#store.db.isTransaction) throw error;
      this.#runAll((timer) => this.#runAlone(timer));
    }
    this.#save();
  }

  #runAll(run: (timer: Timer) => void): void {
    for (let done = 0; done < mostAtOnce; done++) {
      const timer = this.#first();
      if (!timer || timer.due > this.#clock.now()) break;
      run(timer);
    }
    for (let done = 0; done < Math.min(this.#setOff.length, mostSetOff); done++) {
      const timer = this.#setOff[done];
      if (timer && this.#isSet(timer)) run(timer);
    }
    this.#setOff = [];
  }

  #run(timer: Timer): void {
    const { kind, subject, data, key } = timer;
    this.#set(key, timer, undefined);
    this.#fire(kind, subject, data);
  }

  #runAlone(timer: Timer): void {
    const { kind, key } = timer;
    try {
      this.#store.attempt(() => this.#run(timer));
    } catch (error) {
      if (!this.#store.db.isTransaction) throw error;
      // A bug must not repeat at every commit, and the timer must not be lost.
      this.#set(key, timer, { ...timer, due: this.#clock.now() + failedMs });
      this.#failed(error, kind);
    }
  }

  #isSet(timer: Timer): boolean {
    return this.#timers.get(timer.key) === timer;
  }

  /** The next timer. */
  #first(): Timer | undefined {
    for (let { first } = this.#queue; first; { first } = this.#queue) {
      if (this.#isSet(first)) return first;
      this.#queue.shift();
    }
    return undefined;
  }

  /** Sets the timer of a subject and kind, or none. */
  #set(key: string, { subject, kind }: Pick<Timer, "subject" | "kind">, timer: Timer | undefined): void {
    const before = this.#timers.get(key);
    if (!this.#changed.has(key)) this.#changed.set(key, [subject, kind, before !== undefined]);
    this.#put(key, timer);
    this.#store.onUndo(() => this.#put(key, before));
  }

  #put(key: string, timer: Timer | undefined): void {
    if (!timer) return void this.#timers.delete(key);
    this.#timers.set(key, timer);
    this.#queue.push(timer);
    // Timers that are cancelled long before they are due would fill the memory.
    if (this.#queue.size > 2 * this.#timers.size + 1000) this.#queue.reset(this.#timers.values());
  }

  /** Writes the changed timers to the store. */
  #save(): void {
    for (const [key, [subject, kind, stored]] of this.#changed) {
      const timer = this.#timers.get(key);
      if (timer)
        this.#store.run(
          "INSERT OR REPLACE INTO timers (subject, kind, due, id, data) VALUES (?, ?, ?, ?, ?)",
          ...[subject, kind, timer.due, timer.id, timer.data],
        );
      else if (stored) this.#store.run("DELETE FROM timers WHERE subject = ? AND kind = ?", subject, kind);
    }
    this.#changed = new Map();
  }

  /** Schedules a wake-up for the next timer; called after every commit. */
  arm(): void {
    if (this.#ended) return;
    if (this.#unfinished.size > 0) this.#next ??= setImmediate(() => this.#continue());
    const next = this.#first();
    if (next?.due === this.#armed?.due) return;
    this.#armed?.cancel();
    this.#armed = undefined;
    if (!next) return;
    this.#armed = { due: next.due, cancel: this.#clock.after(next.due - this.#clock.now(), () => this.#wake()) };
  }

  #continue(): void {
    this.#next = undefined;
    const [first] = this.#unfinished;
    if (!first) return;
    const [subject, kind] = first;
    this.#unfinished.delete(subject);
    try {
      const done = this.#store.write(() => {
        this.cancel(subject, kind);
        this.#fire(kind, subject, "");
      });
      // Its timer is still set and fires within a second.
      done.catch((error: unknown) => this.#failed(error, kind));
    } catch (error) {
      this.#failed(error, kind);
    }
  }

  #wake(): void {
    this.#armed = undefined;
    // A failed commit (the disk is full) is retried a little later.
    const failed = (error: unknown): void => {
      this.#failed(error, "commit");
      this.#armed ??= { due: 0, cancel: this.#clock.after(retryMs, () => this.#wake()) };
    };
    try {
      this.#store.write(() => {}).catch(failed);
      // Otherwise the timers are committed with the requests of this turn: a commit for every millisecond with a due timer would
      // keep the disk busy.
      if (this.#clock.isMoved) this.#store.flush();
    } catch (error) {
      failed(error);
    }
  }

  /** Stops all timers; they stay in the store. */
  disarm(): void {
    this.#ended = true;
    this.#armed?.cancel();
    this.#armed = undefined;
    clearImmediate(this.#next);
    this.#next = undefined;
  }
}

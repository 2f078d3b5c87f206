// What will happen later, kept in the store with its time: a restart of the service goes on where it was.
import { latestTime, type Clock } from "./clock.ts";
import type { Store } from "../store/database.ts";

/** Kinds of things that happen later; lifecycle/index.ts says what each does. */
export type TimerKind =
  | "app.remove"
  | "machine.retry"
  | "machine.schedule"
  | "machine.forget"
  | "volume.step"
  | "volume.unbind"
  | "volume.remove"
  | "volume.backup"
  | "snapshot.done"
  | "snapshot.expire"
  | "certificate.issue"
  | "certificate.renew"
  | "cluster.step"
  | "cluster.measure"
  | "cluster.clear"
  | "backup.done"
  | "runtime.step"
  | "runtime.exit"
  | "runtime.checks";

interface TimerRow {
  readonly id: number;
  readonly due: number;
  readonly kind: TimerKind;
  readonly subject: string;
  readonly data: string;
}

// More than this in one transaction means something keeps waking itself; the rest gets its turn after the commit.
const mostAtOnce = 10_000;

const retryMs = 1000;
// What goes on piece by piece does so at once; only after a kill does it wait for its timer.
const resumeMs = 1000;
const failedMs = 60_000;

/** The one scheduler. */
export class Timers {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #fire: (kind: TimerKind, subject: string, data: string) => void;
  readonly #failed: (error: unknown, kind: string) => void;
  readonly #unfinished = new Map<string, TimerKind>();
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
  }

  /** Lets something happen after that many milliseconds. */
  after(ms: number, kind: TimerKind, subject: string, data = ""): void {
    this.#store.run(
      "INSERT INTO timers (due, kind, subject, data) VALUES (?, ?, ?, ?)",
      Math.min(this.#clock.now() + ms, latestTime),
      kind,
      subject,
      data,
    );
  }

  /** Lets something go on in a transaction of its own, once others have had their turn; also after a kill. */
  goOn(kind: TimerKind, subject: string): void {
    this.cancel(subject, kind);
    this.after(resumeMs, kind, subject);
    this.#unfinished.set(subject, kind);
  }

  /** Takes back what was to happen to a subject. */
  cancel(subject: string, ...kinds: TimerKind[]): void {
    const places = kinds.map(() => "?").join(", ");
    this.#store.run(`DELETE FROM timers WHERE subject = ? AND kind IN (${places})`, subject, ...kinds);
  }

  /** Whether something of that kind is still to happen. */
  pending(subject: string, kind: TimerKind): boolean {
    return this.#store.get("SELECT 1 FROM timers WHERE subject = ? AND kind = ?", subject, kind) !== undefined;
  }

  /** Lets everything that is due happen, in order of time; part of the transaction that is about to be committed. */
  runDue(): void {
    for (let done = 0; done < mostAtOnce; done++) {
      const sql = "SELECT id, due, kind, subject, data FROM timers WHERE due <= ? ORDER BY due, id LIMIT 1";
      const timer = this.#store.get<TimerRow>(sql, this.#clock.now());
      if (!timer) return;
      try {
        this.#store.attempt(() => {
          this.#store.run("DELETE FROM timers WHERE id = ?", timer.id);
          this.#fire(timer.kind, timer.subject, timer.data);
        });
      } catch (error) {
        if (!this.#store.db.isTransaction) throw error;
        // A mistake of ours must not come back at every commit, nor must what was due be forgotten.
        this.#store.run("UPDATE timers SET due = ? WHERE id = ?", this.#clock.now() + failedMs, timer.id);
        this.#failed(error, timer.kind);
      }
    }
  }

  /** Sleeps until the next thing is due; called after every commit. */
  arm(): void {
    if (this.#ended) return;
    if (this.#unfinished.size > 0) this.#next ??= setImmediate(() => this.#continue());
    const next = this.#store.get<{ due: number }>("SELECT due FROM timers ORDER BY due, id LIMIT 1");
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
      // It has its timer still, for a second from now.
      done.catch((error: unknown) => this.#failed(error, kind));
    } catch (error) {
      this.#failed(error, kind);
    }
  }

  #wake(): void {
    this.#armed = undefined;
    // A commit that fails (a full disk) is tried again a little later.
    const failed = (error: unknown): void => {
      this.#failed(error, "commit");
      this.#armed ??= { due: 0, cancel: this.#clock.after(retryMs, () => this.#wake()) };
    };
    try {
      this.#store.write(() => {}).catch(failed);
      this.#store.flush();
    } catch (error) {
      failed(error);
    }
  }

  /** Nothing happens any more; what is to happen stays in the store. */
  disarm(): void {
    this.#ended = true;
    this.#armed?.cancel();
    this.#armed = undefined;
    clearImmediate(this.#next);
    this.#next = undefined;
  }
}

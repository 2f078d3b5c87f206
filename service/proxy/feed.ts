// The feed of the service for proxies that are processes of their own: first everything that they need to route, then each change. A
// proxy that comes back after a moment gets only what has changed.
import { hash } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import type { Context } from "../context.ts";
import type { Reach } from "../runtime/runtime.ts";
import { withResolvers } from "../withResolvers.ts";
import { lineOf, type FeedLine } from "./feedLines.ts";
import { Replicas, type Report } from "./replicas.ts";

/** Where a proxy stands that comes back. */
export interface Since {
  readonly run: string;
  readonly at: number;
}

/** Lines at a time, so that other work has its turn. */
const atATime = 100;
// ASSUMED: a proxy hears from the service at least every five seconds, so it notices a lost connection soon.
const aliveMs = 5000;
/** Number of ids of deleted objects that are kept for proxies that come back. */
const mostGone = 10_000;

/** A connection of a proxy. */
interface Follower {
  /** Ids of Apps and Machines to send. */
  readonly pending: Set<string>;
  wake: () => void;
}

/** What was last said of an App or a Machine. */
interface Said {
  readonly digest: string;
  readonly at: number;
}

const gone = "gone";

/** Sends proxies what they need. */
export class Feed {
  readonly replicas: Replicas;
  readonly #context: Context;
  readonly #reach: Reach;
  readonly #run: string;
  readonly #followers = new Set<Follower>();
  /** In the order of the last change. It is kept from the first proxy on. */
  #said: Map<string, Said> | undefined;
  #gone = 0;
  #at = 0;
  /** Proxies that stand before this number get everything. */
  #from = 0;
  #isClosed = false;

  /** `run` identifies this run of the service. `loaded` is called when a Machine begins or ends to have requests of proxies. */
  constructor(context: Context, reach: Reach, run: string, loaded: (machine: string) => void) {
    this.#context = context;
    this.#reach = reach;
    this.#run = run;
    this.replicas = new Replicas(context.clock, reach.hasOtherWays === true, loaded);
  }

  /** These objects of the store have changed. */
  changed(touched: Iterable<string>): void {
    if (this.#said) for (const id of touched) if (this.#note(this.#said, id)) this.#send(id);
  }

  /** Resolves once no proxy sends requests to a Machine; undefined if there is no proxy. */
  drained(machine: string): Promise<void> | undefined {
    if (this.replicas.size === 0) return undefined;
    if (this.#said) this.#note(this.#said, machine);
    this.#at++;
    this.#send(machine);
    return this.replicas.drained(machine, this.#at);
  }

  /** A proxy has reported itself. */
  reported(replica: string, { run, ...report }: Report): void {
    // What it has applied of another run says nothing about this one.
    this.replicas.reported(replica, { ...report, at: run === this.#run ? Math.min(report.at, this.#at) : -1 });
  }

  /** The lines for a proxy, until the signal. */
  async *follow(replica: string, since: Since | undefined, signal: AbortSignal): AsyncGenerator<string> {
    const left = this.replicas.connected(replica);
    const follower: Follower = { pending: new Set(), wake: () => {} };
    const ended = (): void => follower.wake();
    signal.addEventListener("abort", ended);
    this.#followers.add(follower);
    try {
      const isWhole = this.#beginWith(follower, since);
      yield textOf({ begin: { run: this.#run, isWhole } });
      for (;;) {
        for (const lines of this.#linesFor(follower)) {
          if (signal.aborted || this.#isClosed) return;
          yield lines;
          await turn();
        }
        const at = this.#at;
        yield textOf({ at });
        if (signal.aborted || this.#isClosed) return;
        if (follower.pending.size === 0 && at === this.#at) await this.#news(follower);
        if (signal.aborted || this.#isClosed) return;
      }
    } finally {
      this.#followers.delete(follower);
      signal.removeEventListener("abort", ended);
      left();
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const { wake } of this.#followers) wake();
    this.replicas.close();
  }

  /** Begins with everything, or with what has changed since. Returns whether it is everything. */
  #beginWith({ pending }: Follower, since: Since | undefined): boolean {
    const said = (this.#said ??= this.#readAll());
    const isWhole = since?.run !== this.#run || since.at < this.#from || since.at > this.#at;
    for (const [id, { digest, at }] of said) if (isWhole ? digest !== gone : at > since.at) pending.add(id);
    return isWhole;
  }

  /** Apps come before their Machines. */
  #readAll(): Map<string, Said> {
    const { store } = this.#context;
    const said = new Map<string, Said>();
    // Their lines are made when they are sent. No line has this digest, so the next change is sent, too.
    const unread: Said = { digest: "", at: this.#at };
    for (const { id } of store.each<{ id: string }>("SELECT id FROM apps WHERE deleting < 2")) said.set(id, unread);
    for (const { id } of store.each<{ id: string }>("SELECT id FROM machines WHERE destroyed_at IS NULL"))
      said.set(id, unread);
    return said;
  }

  /** Takes note of a change. Returns whether a proxy has to know it. */
  #note(said: Map<string, Said>, id: string): boolean {
    const before = said.get(id);
    const line = lineOf(this.#context, this.#reach, id) ?? (before && { gone: id });
    if (!line || ("gone" in line && (!before || before.digest === gone))) return false;
    const digest = "gone" in line ? gone : hash("sha256", JSON.stringify(line), "base64");
    if (digest === before?.digest) return false;
    if (digest === gone) this.#gone++;
    said.delete(id);
    said.set(id, { digest, at: ++this.#at });
    if (this.#gone > mostGone) this.#forgetGone(said);
    return true;
  }

  #forgetGone(said: Map<string, Said>): void {
    for (const [id, { digest, at }] of said) {
      if (digest !== gone) continue;
      said.delete(id);
      this.#gone--;
      this.#from = Math.max(this.#from, at);
      if (this.#gone <= mostGone / 2) return;
    }
  }

  #send(id: string): void {
    for (const follower of this.#followers) {
      follower.pending.add(id);
      follower.wake();
    }
  }

  /** The lines to send to a proxy, some at a time. */
  *#linesFor({ pending }: Follower): Generator<string> {
    while (pending.size > 0) {
      let lines = "";
      let left = atATime;
      for (const id of pending) {
        pending.delete(id);
        lines += textOf(lineOf(this.#context, this.#reach, id) ?? { gone: id });
        if (--left === 0) break;
      }
      yield lines;
    }
  }

  /** Resolves when there is something to send, or after a while. */
  #news(follower: Follower): Promise<void> {
    const { promise, resolve } = withResolvers();
    const timer = setTimeout(resolve, aliveMs).unref();
    follower.wake = resolve;
    return promise.finally(() => clearTimeout(timer));
  }
}

const textOf = (line: FeedLine): string => `${JSON.stringify(line)}\n`;

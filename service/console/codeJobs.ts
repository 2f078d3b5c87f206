// Lets programs be written one after the other: a few at a time, at most one for each organization, and equal requests share one.
import { availableParallelism } from "node:os";
import { Refusal } from "../refusal.ts";
import type { Wanted, WrittenCode } from "./code.ts";
import { CodeWorker, type SendRead } from "./codeWorker.ts";

// ASSUMED: at most 20 requests of an organization wait until their objects are written as code; one more is 429.
const mostWaiting = 20;
/** One processor stays free for the requests of others. */
const mostRunning = Math.max(1, Math.min(4, availableParallelism() - 1));
/** A worker without work is ended after this many milliseconds. Starting one takes a tenth of a second. */
const idleMs = 10_000;

/** Who wants an object as code. */
export interface Asked {
  readonly org: number;
  /** Id of the token. */
  readonly token: string;
  readonly wanted: Wanted;
}

/** All objects that are being written as code. */
export class CodeJobs {
  readonly #shared = new Map<string, Promise<WrittenCode>>();
  readonly #running = new Set<number>();
  /** What lets each request of an organization begin, oldest first; the organizations in the order of their turns. */
  readonly #waiting = new Map<number, (() => void)[]>();
  readonly #workers = new Set<CodeWorker>();
  #idle: CodeWorker | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** The object as code; that of an equal request, if one is being answered. @throws Refusal */
  async write({ org, token, wanted }: Asked, send: SendRead): Promise<WrittenCode> {
    const { type, id, isWhole, endpoint } = wanted;
    const name = JSON.stringify([org, token, type, id, isWhole, endpoint]);
    const begun = this.#shared.get(name) ?? this.#inTurn(org, () => this.#work(wanted, send));
    this.#shared.set(name, begun);
    try {
      return await begun;
    } finally {
      this.#shared.delete(name);
    }
  }

  /** Ends all workers. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await Promise.all([...this.#workers].map((worker) => this.#end(worker)));
  }

  async #inTurn<T>(org: number, act: () => Promise<T>): Promise<T> {
    const own = this.#waiting.get(org) ?? [];
    if (own.length >= mostWaiting) {
      const error = `too many objects of this organization wait to be written as code, at most ${mostWaiting} may`;
      throw new Refusal(429, { error }, { "retry-after": "5" });
    }
    const turn = new Promise<void>((begin) => own.push(begin));
    this.#waiting.set(org, own);
    this.#next();
    await turn;
    try {
      return await act();
    } finally {
      this.#running.delete(org);
      this.#next();
    }
  }

  #next(): void {
    for (const [org, own] of [...this.#waiting]) {
      if (this.#running.size >= mostRunning) return;
      if (this.#running.has(org)) continue;
      const begin = own.shift();
      this.#waiting.delete(org);
      // The next turn of this organization comes after those of all others.
      if (own.length > 0) this.#waiting.set(org, own);
      this.#running.add(org);
      begin?.();
    }
  }

  async #work(wanted: Wanted, send: SendRead): Promise<WrittenCode> {
    const worker = this.#idle?.isReusable ? this.#idle : new CodeWorker();
    clearTimeout(this.#timer);
    this.#idle = undefined;
    this.#workers.add(worker);
    try {
      return await worker.write(wanted, send);
    } finally {
      if (worker.isReusable && !this.#idle) this.#rest(worker);
      else await this.#end(worker);
    }
  }

  #rest(worker: CodeWorker): void {
    this.#idle = worker;
    this.#timer = setTimeout(() => {
      this.#idle = undefined;
      void this.#end(worker);
    }, idleMs);
    this.#timer.unref();
  }

  async #end(worker: CodeWorker): Promise<void> {
    this.#workers.delete(worker);
    await worker.end();
  }
}

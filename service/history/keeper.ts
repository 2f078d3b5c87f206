// What keeps a history: a worker thread with a file, or memory.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { HistoryStore, type Bounds, type Method } from "./historyStore.ts";
import type { Answered, Asked } from "./historyWorker.ts";

/** What does the work. */
export interface Keeper {
  ask(method: Method, args: readonly unknown[]): Promise<unknown>;
  close(): Promise<void>;
}

/** A history of a service in memory. */
export class InMemory implements Keeper {
  readonly #store: HistoryStore;

  constructor(bounds: Bounds) {
    this.#store = new HistoryStore(":memory:", bounds);
  }

  async ask(method: Method, args: readonly unknown[]): Promise<unknown> {
    return this.#store.answer(method, args);
  }

  async close(): Promise<void> {
    this.#store.close();
  }
}

/** Options of a worker. */
export interface WorkerOptions {
  readonly file: string;
  readonly bounds: Bounds;
  /** Gets what happened apart from the answers. */
  readonly notice: (text: string) => void;
  /** The thread has ended by itself. */
  readonly ended: (reason: string) => void;
}

/** A history in a file, which a worker thread writes. */
export class InWorker implements Keeper {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve: (answer: unknown) => void; reject: (error: Error) => void }>();
  readonly #ended: Promise<void>;
  #isClosing = false;
  /** Why it has ended; undefined while it runs. */
  #over: string | undefined;
  #count = 0;

  constructor({ file, bounds, notice, ended }: WorkerOptions) {
    this.#worker = new Worker(workerFile(), { workerData: { file, bounds }, env: {}, execArgv: [] });
    this.#worker.unref();
    this.#worker.on("message", (answered: Answered) => {
      if ("notice" in answered) return notice(answered.notice);
      const asked = this.#waiting.get(answered.id);
      this.#waiting.delete(answered.id);
      if ("error" in answered) asked?.reject(new Error(answered.error));
      else asked?.resolve(answered.answer);
    });
    let reason = "it was closed";
    this.#worker.on("error", (error: Error) => (reason = error.message));
    this.#ended = new Promise((resolve) => {
      this.#worker.once("exit", () => {
        this.#over = reason;
        for (const { reject } of this.#waiting.values()) reject(new Error(reason));
        this.#waiting.clear();
        if (!this.#isClosing) ended(reason);
        resolve();
      });
    });
  }

  ask(method: Method, args: readonly unknown[]): Promise<unknown> {
    // It would never be answered.
    if (this.#over !== undefined) return Promise.reject(new Error(this.#over));
    const id = ++this.#count;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#post({ id, method, args });
    });
  }

  #post(message: Asked, moved: readonly ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, moved);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#worker.ref();
    this.#post({ id: 0, method: "close", args: [] });
    await this.#ended;
  }
}

/** The file of the worker: beside the command, or from the sources, what the build made. */
function workerFile(): string {
  const own = typeof __filename === "string" ? dirname(__filename) : join(dirname(process.argv[1] ?? ""), "history");
  const found = [join(own, "../history.js"), join(own, "history.js"), join(own, "../dist/service/history.js")].find(
    (file) => existsSync(file),
  );
  if (found !== undefined) return found;
  throw new Error(
    "dist/service/history.js is missing: install the package machines-service again, or run `npm run build` in a clone",
  );
}

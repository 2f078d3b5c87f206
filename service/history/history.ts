// The history as the service sees it: entries are gathered, and written a moment later by a worker thread. What is asked sees all that
// was added before.
import { dirname, join } from "node:path";
import { existsSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { Entry, Sender, Stored } from "./entry.ts";
import { HistoryStore, type Bounds, type EntryQuery, type Method, type RolloutDetail } from "./historyStore.ts";
import type { Answered, Asked } from "./historyWorker.ts";
import type { Course, CourseQuery, Point } from "./points.ts";
import type { Rollout, RolloutQuery } from "./rollouts.ts";

export type { Bounds, EntryQuery, RolloutDetail } from "./historyStore.ts";
export type { Rollout, RolloutQuery } from "./rollouts.ts";

// ASSUMED: the history keeps a million entries and 90 days, in memory the newest ten thousand.
/** How much is kept by default. */
export const usualBounds: Bounds = { entries: 1_000_000, ageMs: 90 * 86_400_000 };
const boundsInMemory: Bounds = { ...usualBounds, entries: 10_000 };

/** An entry is written after that many milliseconds. A kill before that loses it. */
const gatherMs = 50;
/** Runs of Pulumi whose last request is remembered. */
const mostHeard = 1000;

/** Name of the file in a data folder. */
export const historyFile = (folder: string): string => join(folder, "history.db");

/** What does the work. */
interface Keeper {
  ask(method: Method, args: readonly unknown[]): Promise<unknown>;
  close(): Promise<void>;
}

/** Options of a history. */
export interface HistoryOptions {
  /** Folder of the data; undefined in memory. */
  readonly folder: string | undefined;
  /** `off`: nothing is kept. */
  readonly bounds?: Partial<Bounds> | "off" | undefined;
  /** The time of the service. */
  readonly now: () => number;
  /** Gets what could not be written, and why. */
  readonly failed: (reason: string) => void;
}

/** What was asked, what happened, and rollouts. */
export class History {
  /** Whether nothing is kept. */
  readonly isOff: boolean;
  readonly #options: HistoryOptions;
  readonly #begun: number;
  #keeper: Keeper | undefined;
  #lines: string[] = [];
  #orgs = new Set<string>();
  /** When the last of them was, and whether a run of Pulumi sent one. */
  #at = 0;
  #isOfUpdate = false;
  #timer: NodeJS.Timeout | undefined;
  #stored = (_: ReadonlySet<string>): void => {};
  #closing = false;
  readonly #heard = new Map<string, number>();
  /** Who sent the request whose change is being made; undefined outside of one. */
  sender: Sender | undefined;

  constructor(options: HistoryOptions) {
    this.#options = options;
    this.isOff = options.bounds === "off";
    this.#begun = options.now();
  }

  /** Calls back after entries were written, with the organizations that they are about. */
  onStored(stored: (orgs: ReadonlySet<string>) => void): void {
    this.#stored = stored;
  }

  /** Notes that a run of Pulumi sent a request. */
  hear(update: string): void {
    this.#heard.delete(update);
    this.#heard.set(update, this.#options.now());
    if (this.#heard.size > mostHeard) for (const oldest of this.#heard.keys()) return void this.#heard.delete(oldest);
  }

  /** Adds an entry. */
  add(entry: Entry): void {
    if (this.#closing || this.isOff) return;
    this.#lines.push(JSON.stringify(entry));
    this.#orgs.add(entry.org);
    this.#at = entry.at;
    this.#isOfUpdate ||= entry.kind === "event" ? entry.by?.update != null : entry.update !== null;
    this.#timer ??= setTimeout(() => void this.#flush(), gatherMs).unref();
  }

  /** Entries after a number, oldest first. */
  async entries(query: EntryQuery): Promise<readonly Stored[]> {
    return (await this.#ask("entries", query)) as readonly Stored[];
  }

  /** Rollouts, newest first. */
  async rollouts(query: RolloutQuery): Promise<readonly Rollout[]> {
    return (await this.#ask("rollouts", query, this.#options.now(), this.#lastHeard())) as readonly Rollout[];
  }

  /** A rollout of an organization with its course; undefined if there is none. */
  async rollout(org: string, id: string): Promise<RolloutDetail | undefined> {
    const answer = await this.#ask("rollout", org, id, this.#options.now(), this.#lastHeard());
    return answer as RolloutDetail | undefined;
  }

  /** Adds what was measured at a moment. Points are kept also if there is no history, then in memory. */
  async addPoints(at: number, points: readonly Point[]): Promise<void> {
    if (!this.#closing) await this.#ask("addPoints", at, points);
  }

  /** Names of the series that begin so. */
  async series(prefix: string): Promise<readonly string[]> {
    return (await this.#ask("series", prefix)) as readonly string[];
  }

  /** What was measured of one series. */
  async course(query: CourseQuery): Promise<Course> {
    return (await this.#ask("course", query)) as Course;
  }

  /** Number of entries. */
  async count(): Promise<number> {
    return (await this.#ask("count")) as number;
  }

  /** When each run was heard of last; of others nothing was heard since the service was started. */
  #lastHeard(): { readonly begun: number; readonly heard: ReadonlyMap<string, number> } {
    return { begun: this.#begun, heard: this.#heard };
  }

  async #ask(method: Method, ...args: unknown[]): Promise<unknown> {
    if (this.#lines.length > 0) void this.#flush();
    return this.#running.ask(method, args);
  }

  get #running(): Keeper {
    const { folder, bounds: wanted, failed } = this.#options;
    const bounds = wanted === "off" ? {} : wanted;
    if (this.#keeper) return this.#keeper;
    if (folder === undefined || this.isOff) return (this.#keeper = new InMemory({ ...boundsInMemory, ...bounds }));
    const file = historyFile(folder);
    // A thread that has ended is replaced by the next one.
    const ended = (reason: string): void => {
      this.#keeper = undefined;
      failed(`its thread has ended: ${reason}`);
    };
    return (this.#keeper = new InWorker({ file, bounds: { ...usualBounds, ...bounds }, notice: failed, ended }));
  }

  async #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const [lines, orgs] = [this.#lines, this.#orgs];
    [this.#lines, this.#orgs] = [[], new Set()];
    if (lines.length === 0) return;
    const about = { at: this.#at, isOfUpdate: this.#isOfUpdate };
    this.#isOfUpdate = false;
    try {
      await this.#running.ask("add", [lines.join("\n"), about]);
      this.#stored(orgs);
    } catch (error) {
      this.#options.failed(
        `${lines.length} entries are lost: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }

  /** Writes what was added, and ends. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#flush();
    await this.#keeper?.close();
  }
}

/** A history of a service in memory. */
class InMemory implements Keeper {
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

interface WorkerOptions {
  readonly file: string;
  readonly bounds: Bounds;
  /** Gets what happened apart from the answers. */
  readonly notice: (text: string) => void;
  /** The thread has ended by itself. */
  readonly ended: (reason: string) => void;
}

/** A history in a file, which a worker thread writes. */
class InWorker implements Keeper {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve: (answer: unknown) => void; reject: (error: Error) => void }>();
  readonly #ended: Promise<void>;
  #isClosing = false;
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
        for (const { reject } of this.#waiting.values()) reject(new Error(reason));
        this.#waiting.clear();
        if (!this.#isClosing) ended(reason);
        resolve();
      });
    });
  }

  ask(method: Method, args: readonly unknown[]): Promise<unknown> {
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

// The history as the service sees it: entries are gathered, and written a moment later by a worker thread. What is asked sees all that
// was added before.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LogUnavailable, type SharedHistory } from "../replication/log.ts";
import type { Entry, Sender, Stored } from "./entry.ts";
import type { Bounds, EntryQuery, Method, RolloutDetail } from "./historyStore.ts";
import { InMemory, InWorker, type Keeper } from "./keeper.ts";
import type { Course, CourseQuery, Point } from "./points.ts";
import type { Rollout, RolloutQuery } from "./rollouts.ts";
import { reasonOf } from "../reasonOf.ts";
import { SentHistory } from "./sharing.ts";

export type { Bounds, EntryQuery, RolloutDetail } from "./historyStore.ts";
export type { Rollout, RolloutQuery } from "./rollouts.ts";

// ASSUMED: the history keeps a million entries and 90 days, in memory the newest ten thousand.
/** How much is kept by default. */
export const usualBounds: Bounds = { entries: 1_000_000, ageMs: 90 * 86_400_000 };
const boundsInMemory: Bounds = { ...usualBounds, entries: 10_000 };

/** An entry is written after that many milliseconds. A kill before that loses it. */
const gatherMs = 50;
/** It is sent to the other members after that many milliseconds. */
const sendMs = 500;
const closingMs = 2000;
/** Runs of Pulumi whose last request is remembered. */
const mostHeard = 1000;

/** Name of the file in a data folder. */
export const historyFile = (folder: string): string => join(folder, "history.db");

/** What keeps the history of a folder. `failed` gets what happened to it, and `ended` is called when its thread has ended. */
export const historyKeeper = (
  folder: string,
  bounds: Partial<Bounds>,
  failed: (reason: string) => void,
  ended: () => void = () => {},
): Keeper =>
  new InWorker({
    file: historyFile(folder),
    bounds: { ...usualBounds, ...bounds },
    notice: failed,
    ended(reason) {
      ended();
      failed(`its thread has ended: ${reason}`);
    },
  });

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
  /** What the leader of several members shares with the others; undefined for a service that is one process. */
  readonly shared?: SharedOptions | undefined;
}

/** How a history is shared. */
export interface SharedOptions {
  readonly history: SharedHistory;
  /** The leadership. */
  readonly epoch: number;
  /** Resolves when nothing else writes the file. */
  readonly isFree: Promise<void>;
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
  readonly #sent: SentHistory | undefined;
  /** Resolves when the file has what other leaders have added. */
  readonly #begin: Promise<void> | undefined;
  #sendTimer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  /** Who sent the request whose change is being made; undefined outside of one. */
  sender: Sender | undefined;

  constructor(options: HistoryOptions) {
    this.#options = options;
    this.isOff = options.bounds === "off";
    this.#begun = options.now();
    const { shared, now } = options;
    if (!shared || this.isOff) return;
    const { history, epoch, isFree } = shared;
    const keeper = (): Keeper => this.#running;
    this.#sent = new SentHistory({ ...{ keeper, epoch, now }, shared: history, bounds: this.#bounds });
    this.#begin = this.#beginSharing(this.#sent, isFree);
  }

  async #beginSharing(sent: SentHistory, isFree: Promise<void>): Promise<void> {
    await isFree;
    try {
      await sent.begin();
      this.#sendSoon();
    } catch (error) {
      this.#options.failed(`what other members have added cannot be read: ${reasonOf(error)}`);
    }
  }

  get #bounds(): Bounds {
    const { folder, bounds } = this.#options;
    const usual = folder === undefined || this.isOff ? boundsInMemory : usualBounds;
    return { ...usual, ...(bounds === "off" ? {} : bounds) };
  }

  #sendSoon(): void {
    if (this.#closing) return;
    this.#sendTimer ??= setTimeout(() => {
      this.#sendTimer = undefined;
      void this.#send();
    }, sendMs).unref();
  }

  /** Sends what the others do not have. */
  #send(): Promise<void> {
    this.#sending ??= (async () => {
      try {
        await this.#sent?.send();
      } catch (error) {
        if (error instanceof LogUnavailable) this.#sendSoon();
        else this.#options.failed(`it cannot be shared: ${reasonOf(error)}`);
      } finally {
        this.#sending = undefined;
      }
    })();
    return this.#sending;
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
    if (this.#begin) await this.#begin;
    if (this.#lines.length > 0) void this.#flush();
    return this.#running.ask(method, args);
  }

  get #running(): Keeper {
    const { folder, failed } = this.#options;
    if (this.#keeper) return this.#keeper;
    if (folder === undefined || this.isOff) return (this.#keeper = new InMemory(this.#bounds));
    // A thread that has ended is replaced by the next one.
    return (this.#keeper = historyKeeper(folder, this.#bounds, failed, () => (this.#keeper = undefined)));
  }

  async #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#begin) await this.#begin;
    const [lines, orgs] = [this.#lines, this.#orgs];
    [this.#lines, this.#orgs] = [[], new Set()];
    if (lines.length === 0) return;
    const about = { at: this.#at, isOfUpdate: this.#isOfUpdate };
    this.#isOfUpdate = false;
    try {
      await this.#running.ask("add", [lines.join("\n"), about]);
      this.#stored(orgs);
      if (this.#sent) this.#sendSoon();
    } catch (error) {
      this.#options.failed(`${lines.length} entries are lost: ${reasonOf(error)}`);
    }
  }

  /** Writes what was added, sends it to the other members, and ends. */
  async close(): Promise<void> {
    this.#closing = true;
    clearTimeout(this.#sendTimer);
    const ended = async (): Promise<void> => {
      await this.#flush();
      await this.#sending;
      await this.#send();
    };
    // A database that does not answer must not keep the leadership from another member.
    if (this.#sent) await Promise.race([ended(), sleep(closingMs, undefined, { ref: false })]);
    else await this.#flush();
    await this.#keeper?.close();
  }
}

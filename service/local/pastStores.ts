// Stores of past moments, for the console. Another process writes each one from the log, so that neither its processor time nor its
// memory delays the leader. They are removed when no page reads them any more.
import { execFile } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Past } from "../console/past.ts";
import { LogUnavailable, type Log } from "../replication/log.ts";
import { entryAt, firstMoment } from "../replication/moments.ts";
import { Refusal, refuse } from "../refusal.ts";
import { storeFile } from "../store/database.ts";
import { ReadOnlyStore, type StoreReader } from "../store/readOnlyStore.ts";
import { mainArguments } from "./entry.ts";

// ASSUMED: the console keeps the stores of three past moments, each until it was not read for five minutes; at most ten more may be waited for.
const most = { kept: 3, waiting: 10 } as const;
const idleMs = 300_000;

/** A store that can be read, or will be. */
interface Kept {
  readonly folder: string;
  readonly store: Promise<ReadOnlyStore>;
  /** Reads that have begun. */
  reading: number;
  idle?: NodeJS.Timeout;
}

/** What a store is written from. */
interface Source {
  readonly log: Log;
  readonly url: string;
  readonly keyFile: string;
  /** Where the stores are; removed with all in it. */
  readonly folder: string;
  readonly failed: (error: unknown) => void;
}

/** The stores of past moments that are kept, each by the last entry that it has. */
export class PastStores implements Past {
  readonly #source: Source;
  readonly #kept = new Map<number, Kept>();
  /** The stores are written one after the other. */
  #written: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  readonly #closing = new AbortController();

  constructor(source: Source) {
    this.#source = source;
    rmSync(source.folder, { recursive: true, force: true });
  }

  async read<T>(moment: number, use: (store: StoreReader) => T | Promise<T>): Promise<T> {
    const seq = await this.#ask(() => entryAt(this.#source.log, moment));
    if (seq === undefined) {
      const first = (await this.#ask(() => firstMoment(this.#source.log))) ?? moment;
      throw refuse(404, `the log has nothing of that time; its first moment is ${new Date(first).toISOString()}`);
    }
    const kept = this.#kept.get(seq) ?? this.#make(seq, moment);
    kept.reading++;
    clearTimeout(kept.idle);
    try {
      return await use(await kept.store);
    } finally {
      kept.reading--;
      if (kept.reading === 0) this.#rest(seq, kept);
    }
  }

  /** Removes all of them, also those that are being written. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#kept].map(([seq, kept]) => this.#remove(seq, kept)));
  }

  async #ask<T>(question: () => Promise<T>): Promise<T> {
    try {
      return await question();
    } catch (error) {
      if (!(error instanceof LogUnavailable)) throw error;
      throw new Refusal(503, { error: "the database with the log does not answer; try again" }, { "retry-after": "1" });
    }
  }

  #make(seq: number, moment: number): Kept {
    if (this.#waiting >= most.waiting)
      throw new Refusal(429, { error: "too many past moments are being read; try again" }, { "retry-after": "5" });
    this.#waiting++;
    mkdirSync(this.#source.folder, { recursive: true, mode: 0o700 });
    const folder = mkdtempSync(join(this.#source.folder, "at-"));
    const store = this.#written.then(() => this.#write(folder, moment)).finally(() => this.#waiting--);
    this.#written = store.catch(() => {});
    const kept: Kept = { folder, store, reading: 0 };
    this.#kept.set(seq, kept);
    store.catch(() => this.#remove(seq, kept));
    return kept;
  }

  async #write(folder: string, moment: number): Promise<ReadOnlyStore> {
    const { url, keyFile, failed } = this.#source;
    const { signal } = this.#closing;
    const at = new Date(moment).toISOString();
    const command = mainArguments("export", "--at", at, "--data", folder);
    // Others see the arguments of a process, and the URL may have a password.
    const env = { ...process.env, MACHINES_SERVICE_STORE: url, MACHINES_SERVICE_KEY_FILE: keyFile };
    try {
      await promisify(execFile)(process.execPath, command, { env, signal });
      return new ReadOnlyStore(storeFile(folder));
    } catch (error) {
      if (!signal.aborted) failed(error);
      throw refuse(503, "the store of that moment cannot be written; the service's log has the reason");
    }
  }

  /** The oldest store that is not read makes room. */
  #rest(seq: number, kept: Kept): void {
    if (this.#kept.get(seq) !== kept) return;
    kept.idle = setTimeout(() => void this.#remove(seq, kept), idleMs).unref();
    this.#kept.delete(seq);
    this.#kept.set(seq, kept);
    const unused = [...this.#kept].filter(([, { reading }]) => reading === 0);
    for (const [oldest, one] of unused.slice(0, Math.max(0, this.#kept.size - most.kept)))
      void this.#remove(oldest, one);
  }

  async #remove(seq: number, kept: Kept): Promise<void> {
    clearTimeout(kept.idle);
    if (this.#kept.get(seq) === kept) this.#kept.delete(seq);
    (await kept.store.catch(() => undefined))?.close();
    await rm(kept.folder, { recursive: true, force: true });
  }
}

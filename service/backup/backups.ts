// The backups of a running service: on schedule, on request, one at a time. Of several members, the leader makes them.
import { writeFileSync } from "node:fs";
import type { Context } from "../context.ts";
import { systemRandom } from "../ids.ts";
import { reasonOf } from "../reasonOf.ts";
import type { Service } from "../service.ts";
import { backupMetrics as of } from "../watch/catalogue.ts";
import type { Measured } from "../watch/exposition.ts";
import { backUp, wantedOf, type Made, type Source, type Written } from "./backUp.ts";
import { Catalogue, tags, type Logs, type Manifest } from "./contents.ts";
import { lineageOf, placesOf, readLast, writeEngines, writeLast, writeRepository, type LastResult } from "./places.ts";
import { readPolicy, usualPolicy, type Policy } from "./policy.ts";
import { restoreApp } from "./restoreApp.ts";
import { BackupError } from "./backupError.ts";
import { Restic, type Repository } from "./restic.ts";
import { removeOutdated } from "./retention.ts";

/** Options of the backups of a service. */
export interface BackupsOptions {
  readonly folder: string;
  /** Where backups are made on schedule; undefined for no schedule. */
  readonly repository?: Repository | undefined;
  /** Milliseconds from one backup to the next. */
  readonly everyMs: number;
  readonly policy: Policy;
  /** Writes the store, as an export, and what is beside it, into a folder. */
  readonly writeStore: (folder: string, signal: AbortSignal) => Promise<Written>;
  /** Name of the engine of clusters. */
  readonly postgres: string;
}

// ASSUMED: the logs of Postgres clusters are stored every five minutes, so a lost disk costs at most their last five minutes.
const logMs = 300_000;
// ASSUMED: a backup that failed is tried again after ten minutes.
const retryMs = 600_000;

/** Milliseconds until the next backup. */
export function untilNext(last: LastResult | undefined, everyMs: number, now: number): number {
  if (last === undefined) return 0;
  const due = last.result === "failed" ? last.ended + Math.min(retryMs, everyMs) : last.begun + everyMs;
  // The clock may have been ahead when the last one was made.
  return Math.min(Math.max(0, due - now), everyMs);
}

/** Makes the backups of a service. */
export class Backups {
  readonly #options: BackupsOptions;
  readonly #closed = new AbortController();
  #service: Service | undefined;
  #cancel: () => void = () => {};
  #cancelLog: () => void = () => {};
  #last: LastResult | undefined;
  /** Until when the logs of clusters are stored. */
  #logged = 0;
  /** The backup that the logs belong to. */
  #since: string | undefined;
  /** Backups and logs are stored one after the other. */
  #working: Promise<unknown> = Promise.resolve();

  constructor(options: BackupsOptions) {
    this.#options = options;
    this.#last = readLast(options.folder);
  }

  get metrics(): readonly Measured[] {
    const { repository, everyMs } = this.#options;
    if (!repository) return Object.values(of).map((one): Measured => [one, []]);
    const last = this.#last;
    return [
      [of.lastComplete, [[{}, (last?.lastComplete ?? 0) / 1000]]],
      [of.interval, [[{}, everyMs / 1000]]],
      [
        of.result,
        last
          ? (["complete", "incomplete", "failed"] as const).map((result) => [
              { result },
              last.result === result ? 1 : 0,
            ])
          : [],
      ],
      [of.duration, last ? [[{}, (last.ended - last.begun) / 1000]] : []],
      [of.added, last ? [[{}, last.addedBytes]] : []],
      [of.log, this.#service?.context.postgres.archives ? [[{}, this.#logged / 1000]] : []],
    ];
  }

  /** What is wrong with the backups, for the console; undefined if nothing is, or if there is no schedule. */
  problem(now: number): { readonly since: number | undefined; readonly reason: string | undefined } | undefined {
    const { repository, everyMs } = this.#options;
    if (!repository) return undefined;
    const { lastComplete, result, reason, missing = [] } = this.#last ?? {};
    const isOld = lastComplete === undefined ? this.#last !== undefined : now - lastComplete > 2 * everyMs;
    if (!isOld && (result === undefined || result === "complete")) return undefined;
    const [first] = missing;
    return {
      since: lastComplete,
      reason: reason ?? (first && `${first.kind} ${first.id} is missing: ${first.reason}`),
    };
  }

  /** Begins the schedule. */
  async begin(service: Service): Promise<void> {
    this.#service = service;
    const { folder, repository, postgres } = this.#options;
    writeEngines(folder, { runtime: this.#context.runtime.name, postgres });
    if (!repository) return;
    // At once: a wrong option is an error of the start.
    const restic = this.#restic(repository);
    writeRepository(folder, repository);
    const plan = async (): Promise<void> => {
      // Another member may have made the last one. In turn, because two at once would create the repository twice, which damages it.
      if (!this.#last) await this.#inTurn(() => this.#find(restic));
      this.#plan();
    };
    void plan().catch((error: unknown) => {
      this.#say("warn", { reason: reasonOf(error) }, "the backups cannot be read");
      this.#plan();
    });
    if (service.context.postgres.archives) this.#planLog();
  }

  /** Makes one now, in another repository if one is given. */
  backUp(repository = this.#options.repository): Promise<LastResult> {
    if (!repository)
      return Promise.reject(new BackupError("name a repository with --to, or start the service with --backup"));
    return this.#inTurn(() => this.#make(repository));
  }

  /** Restores one App into the service. */
  restoreApp(
    app: string,
    wanted: { readonly id?: string; readonly at?: number },
    repository = this.#options.repository,
  ) {
    if (!repository) return Promise.reject(new BackupError("name a repository with --from"));
    return this.#inTurn(() => {
      const { folder } = this.#options;
      const { signal } = this.#closed;
      return restoreApp({ restic: this.#restic(repository), folder, context: this.#context, app, ...wanted, signal });
    });
  }

  /** Ends what runs. */
  async close(): Promise<void> {
    this.#cancel();
    this.#cancelLog();
    this.#closed.abort(new BackupError("the service is closing"));
    await this.#working.catch(() => {});
  }

  get #context(): Context {
    if (!this.#service) throw new BackupError("the service does not run");
    return this.#service.context;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#working.then(() => {
      this.#closed.signal.throwIfAborted();
      return work();
    });
    this.#working = result.catch(() => {});
    return result;
  }

  #restic(repository: Repository): Restic {
    return new Restic(repository, placesOf(this.#options.folder).cache, this.#closed.signal);
  }

  /** Looks in the repository for the last backup. */
  async #find(restic: Restic): Promise<void> {
    await restic.prepare();
    const { folder } = this.#options;
    const own = lineageOf(folder, systemRandom());
    const all = await new Catalogue(restic, placesOf(folder).cache, own).all();
    const found = all.at(-1)?.manifest;
    if (found) this.#keep(resultOf(found, 0, found.at, all.filter(isComplete).at(-1)?.manifest.at));
  }

  #plan(): void {
    if (this.#closed.signal.aborted) return;
    const { clock } = this.#context;
    this.#cancel();
    this.#cancel = clock.after(untilNext(this.#last, this.#options.everyMs, clock.now()), () => {
      void this.backUp()
        .catch((error: unknown) =>
          this.#say("warn", { reason: reasonOf(error) }, "the backup failed; it is tried again"),
        )
        .finally(() => this.#plan());
    });
  }

  #planLog(): void {
    this.#cancelLog = this.#context.clock.after(logMs, () => {
      void this.#inTurn(() => this.#storeLog())
        .catch((error: unknown) =>
          this.#say("warn", { reason: reasonOf(error) }, "the logs of Postgres clusters could not be stored"),
        )
        .finally(() => {
          if (!this.#closed.signal.aborted) this.#planLog();
        });
    });
  }

  async #make(repository: Repository): Promise<LastResult> {
    const { folder, policy, writeStore, postgres } = this.#options;
    const { clock, runtime, store, postgres: engine } = this.#context;
    const { signal } = this.#closed;
    const isScheduled = repository.at === this.#options.repository?.at;
    const begun = clock.now();
    try {
      const restic = this.#restic(repository);
      // Otherwise no backup would lead to the moments since the last log.
      if (isScheduled) await this.#storeLog();
      await store.unsettled;
      const source: Source = {
        ...{ folder, postgres, signal },
        lineage: lineageOf(folder, systemRandom()),
        runtime: runtime.name,
        volumes: runtime.archives,
        clusters: engine.archives,
        writeStore: (target) => writeStore(target, signal),
        now: () => clock.now(),
      };
      const wanted = wantedOf(<T>(sql: string) => store.all<T>(sql));
      const result = await backUp(restic, source, wanted, (made) => this.#stored(made, isScheduled));
      // The schedule thins out its own repository; another one keeps all.
      const notRemoved = isScheduled ? await removeOutdated(restic, source, policy) : undefined;
      const { missing, ...said } = result;
      this.#say(missing.length > 0 ? "warn" : "info", { ...said, missing: missing.length }, "made a backup");
      if (notRemoved !== undefined) this.#say("warn", { reason: notRemoved }, "outdated backups were not removed");
      for (const one of missing) this.#say("warn", one, "the backup lacks this");
      return result;
    } catch (error) {
      if (!signal.aborted && isScheduled)
        this.#keep({
          ...{ result: "failed", begun, ended: clock.now(), addedBytes: 0, reason: reasonOf(error), missing: [] },
          ...(this.#last?.stored === undefined ? {} : { stored: this.#last.stored }),
          ...(this.#last?.lastComplete === undefined ? {} : { lastComplete: this.#last.lastComplete }),
        });
      throw error;
    }
  }

  /** Notes a backup that is stored. */
  async #stored({ manifest, addedBytes, firstFiles }: Made, isScheduled: boolean): Promise<LastResult> {
    const { clock, postgres } = this.#context;
    const result = resultOf(manifest, addedBytes, clock.now(), isScheduled ? this.#last?.lastComplete : undefined);
    // A backup on request must not remove changes that the log of the schedule needs.
    if (!isScheduled) return result;
    // First: after a kill, the logs that follow must belong to the backup since which changes are kept.
    this.#since = manifest.id;
    this.#logged = manifest.at;
    this.#keep(result);
    for (const [id, file] of firstFiles) await postgres.archives?.stored(id, file);
    return result;
  }

  /** Stores the logs of clusters since the last backup, so that they can be restored to any time until now. */
  async #storeLog(): Promise<void> {
    const { folder, repository } = this.#options;
    const { postgres, store } = this.#context;
    const since = (this.#since ??= this.#last?.stored);
    if (!repository || !postgres.archives || since === undefined) return;
    const clusters: Record<string, Logs["clusters"][string]> = {};
    for (const id of wantedOf(<T>(sql: string) => store.all<T>(sql)).clusters) {
      const log = await postgres.archives.log(id);
      if (log) clusters[id] = log;
    }
    const folders = Object.values(clusters).map((log) => log.folder);
    if (folders.length === 0) return;
    const { log } = placesOf(folder);
    writeFileSync(log, JSON.stringify({ clusters } satisfies Logs), { mode: 0o600 });
    const own = [tags.log, tags.service(lineageOf(folder, systemRandom())), tags.since(since)];
    await this.#restic(repository).storePaths([log, ...folders], own);
    this.#logged = Math.min(...Object.values(clusters).map(({ until }) => until));
  }

  #keep(last: LastResult): void {
    this.#last = last;
    writeLast(this.#options.folder, last);
  }

  #say(level: "info" | "warn", details: object, message: string): void {
    if (!this.#closed.signal.aborted) this.#context.log[level](details, message);
  }
}

const isComplete = ({ manifest }: { readonly manifest: Manifest }): boolean => manifest.missing.length === 0;

function resultOf(manifest: Manifest, addedBytes: number, ended: number, before: number | undefined): LastResult {
  const { id, begun, at, missing } = manifest;
  const lastComplete = missing.length === 0 ? at : before;
  return {
    ...{ id, begun, ended, addedBytes, missing, stored: id },
    result: missing.length === 0 ? "complete" : "incomplete",
    ...(lastComplete === undefined ? {} : { lastComplete }),
  };
}

/** The reason of a failure as a sentence. */

/** The policy of an option. @throws BackupError if it is none. */
export function policyOf(text: string = usualPolicy): Policy {
  const policy = readPolicy(text);
  if (policy) return policy;
  throw new BackupError(
    `--backup-keep takes days, weeks and months such as ${usualPolicy}, got ${JSON.stringify(text)}`,
  );
}

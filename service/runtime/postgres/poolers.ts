// The poolers of all clusters of an engine. Without PgBouncer there are none, and clients use the servers.
import type { Cluster } from "../postgresEngine.ts";
import * as pooler from "./pooler.ts";
import type { PoolerProgram, RunningPooler } from "./pooler.ts";
import { PostgresError } from "./postgresError.ts";
import type { Installation } from "./installation.ts";
import type { Paths } from "./paths.ts";
import type { Running } from "./server.ts";

/** Keeps one pooler for each cluster. */
export class Poolers {
  readonly #installation: Installation;
  readonly #program: PoolerProgram | undefined;
  readonly #ended: (id: string) => void;
  readonly #running = new Map<string, RunningPooler>();

  /** Calls `ended` with the id of a cluster whose pooler has ended by itself. */
  constructor(installation: Installation, program: PoolerProgram | undefined, ended: (id: string) => void) {
    this.#installation = installation;
    this.#program = program;
    this.#ended = ended;
  }

  /** Starts the pooler of a cluster unless it runs; returns the port of its clients. */
  async keep(cluster: Cluster, paths: Paths, server: Running, signal: AbortSignal): Promise<number> {
    const { id, endpoints } = cluster;
    const known = this.#running.get(id);
    if (known) return known.port;
    if (!this.#program) {
      // It may be running since a start of the service that had one.
      await pooler.stop(paths);
      return server.port;
    }
    const { direct, pooler: before } = endpoints?.primary ?? {};
    const wanted = before?.port === direct?.port ? undefined : before?.port;
    const running = await pooler.start(this.#installation, this.#program, paths, cluster, server, wanted, signal);
    this.#running.set(id, running);
    running.console.once("end", () => {
      if (this.#running.get(id) !== running) return;
      this.#running.delete(id);
      this.#ended(id);
    });
    return running.port;
  }

  /** The users or databases of a server have changed. */
  async refresh(id: string, paths: Paths, server: Running): Promise<void> {
    if (this.#program) await pooler.refresh(this.#installation, paths, server, this.#runningOf(id));
  }

  /** Ends the sessions of a user. */
  async endSessions(id: string, user: string): Promise<void> {
    if (this.#program) await pooler.endSessions(this.#program, this.#runningOf(id), user);
  }

  #runningOf(id: string): RunningPooler {
    const running = this.#running.get(id);
    // The change is applied again once the pooler is back.
    if (!running) throw new PostgresError("the pooler has ended");
    return running;
  }

  /** Ends the service's connection to a pooler; the next look at the cluster continues with the pooler. */
  async release(id: string): Promise<void> {
    const running = this.#running.get(id);
    this.#running.delete(id);
    await running?.console.end().catch(() => {});
  }

  /** Stops the pooler of a cluster. */
  async stop(id: string, paths: Paths): Promise<void> {
    await this.release(id);
    await pooler.stop(paths);
  }
}

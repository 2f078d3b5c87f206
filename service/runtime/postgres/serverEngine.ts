// What engines with real servers have in common: requests that wait for a change of a server, and questions that a server answers.
import type pg from "pg";
import { reasonOf } from "../../reasonOf.ts";
import { refuse } from "../../refusal.ts";
import {
  ChangeRefused,
  type Cluster,
  type ClusterChange,
  type EngineHost,
  type ExtensionOffer,
  type Primary,
  type Relation,
  type RunningQuery,
  type ServerLoad,
  type SlowQuery,
  type Statement,
  type StatementAnswer,
} from "../postgresEngine.ts";
import { asSuperuser, type Access } from "./access.ts";
import * as contents from "./contents.ts";
import { isRefusal } from "./postgresError.ts";
import * as queries from "./queries.ts";
import { Steps } from "../steps.ts";
import type { Session } from "./sessions.ts";
import * as statements from "./statements.ts";
import * as users from "./users.ts";

/** A server that can be used. */
export interface ReadyServer extends Access {
  readonly offers: readonly ExtensionOffer[];
}

interface Waiting {
  readonly cluster: string;
  resolve(): void;
  reject(error: Error): void;
}

/** Changes that are applied until they succeed: earlier passwords and roles are not kept. */
const lasting: ReadonlySet<ClusterChange["kind"]> = new Set(["changeRole", "setPassword", "dropUser"]);

/** The common part of these engines. */
export abstract class ServerEngine<R extends ReadyServer> {
  protected readonly host: EngineHost;
  /** The servers that can be used. */
  protected readonly ready = new Map<string, R>();
  protected readonly clusterSteps: Steps;
  protected readonly backupSteps: Steps;
  /** The cluster of each backup that is being written. */
  protected readonly clusterOf = new Map<string, string>();
  /** Requests that wait for a change, by its number. */
  readonly #waiting = new Map<number, Waiting>();

  constructor(host: EngineHost, reason: (error: unknown) => string) {
    this.host = host;
    const failed = "a Postgres cluster could not continue; it is tried again";
    this.clusterSteps = new Steps(host, { kind: "cluster", failed, reasonOf: reason, step: (id) => this.step(id) });
    this.backupSteps = new Steps(host, {
      kind: "backup",
      failed,
      reasonOf: reason,
      step: (id) => this.writeBackup(id),
    });
  }

  /** The next step of a cluster; true if another one is due. */
  protected abstract step(id: string): Promise<boolean>;

  /** Writes a backup; true if another attempt is due. */
  protected abstract writeBackup(backup: string): Promise<boolean>;

  /** Opens a connection as a user of a cluster. */
  protected abstract openAs(id: string, ready: R, database: string, session: Session): Promise<pg.Client>;

  /** Another part of the engine that a size was measured with. */
  protected abstract measured(id: string, client: pg.Client): Promise<void>;

  create({ id }: Cluster): void {
    this.clusterSteps.changed(id);
  }

  destroy({ id }: Cluster): void {
    this.clusterSteps.changed(id);
  }

  backUp({ id }: Pick<Cluster, "id">, backup: string): void {
    this.clusterOf.set(backup, id);
    this.backupSteps.changed(backup);
  }

  recover(): void {
    for (const id of this.host.ids()) {
      this.clusterSteps.changed(id);
      for (const backup of this.host.backups(id)) if (backup.isRunning) this.backUp({ id }, backup.id);
    }
  }

  change({ id }: Cluster, change: ClusterChange): Promise<void> {
    const number = this.host.keep(id, change);
    this.clusterSteps.changed(id);
    return new Promise((resolve, reject) => this.#waiting.set(number, { cluster: id, resolve, reject }));
  }

  extensions({ id }: Cluster): readonly ExtensionOffer[] | undefined {
    return this.ready.get(id)?.offers;
  }

  activeQueries({ id }: Cluster, database: string | undefined): Promise<readonly RunningQuery[]> {
    return this.#ask(id, (admin) => queries.activeQueries(admin, database));
  }

  slowQueries({ id }: Cluster, withinMs: number): Promise<readonly SlowQuery[]> {
    return this.#ask(id, (admin) => queries.slowQueries(admin, withinMs));
  }

  primary({ id }: Cluster): Primary {
    return { isAvailable: this.ready.has(id) };
  }

  async load({ id }: Cluster): Promise<ServerLoad | undefined> {
    return this.ready.has(id) ? this.#ask(id, queries.loadOf) : undefined;
  }

  run(cluster: Cluster, statement: Statement): Promise<StatementAnswer> {
    return this.#asUser(cluster, statement, (client) => statements.run(client, statement));
  }

  relations(cluster: Cluster, asking: Omit<Statement, "text" | "isWrite">, most: number): Promise<readonly Relation[]> {
    return this.#asUser(cluster, { ...asking, isWrite: false }, (client) => statements.relationsOf(client, most));
  }

  // ASSUMED: the size of a server is known as soon as it is ready. The platform measures it within an hour.
  measure({ id }: Cluster): void {
    const measure = async (): Promise<void> => {
      const ready = this.ready.get(id);
      if (!ready) return;
      await this.with(ready, async (client) => {
        this.host.events.measured(id, await queries.storedBytes(client));
        await queries.keepCounts(client);
        await this.measured(id, client);
      });
    };
    measure().catch((error: unknown) => this.host.log.warn({ cluster: id, reason: reasonOf(error) }, "not measured"));
  }

  /** Does work as a user of a cluster, with its password and its rights. */
  #asUser<T>({ id }: Cluster, asking: Omit<Statement, "text">, work: (client: pg.Client) => Promise<T>): Promise<T> {
    const ready = this.#readyOr503(id);
    const open = (session: Session): Promise<pg.Client> => this.openAs(id, ready, asking.database, session);
    return statements.asUser(ready.connect, open, asking, work);
  }

  async #ask<T>(id: string, ask: (admin: pg.Client) => Promise<T>): Promise<T> {
    return this.with(this.#readyOr503(id), ask);
  }

  #readyOr503(id: string): R {
    const ready = this.ready.get(id);
    if (!ready) throw refuse(503, "The server of the cluster does not answer");
    return ready;
  }

  /** Does work over a connection of its own: the one of the steps takes one statement at a time. */
  protected with<T>(ready: R, work: (client: pg.Client) => Promise<T>): Promise<T> {
    return asSuperuser(ready.connect, work);
  }

  /** Prepares a server for its clients; returns what it can install. */
  protected async prepare(id: string, access: Access, password?: string): Promise<readonly ExtensionOffer[]> {
    try {
      await users.prepare(access, this.report(id), password);
      return await contents.offersOf(access.admin);
    } catch (error) {
      await access.admin.end().catch(() => {});
      throw error;
    }
  }

  protected report(id: string): users.Report {
    return (what, message) => this.host.log.warn({ cluster: id, ...what }, message);
  }

  /** Brings a new server to its wanted contents: those of its source if it has one, else those of the store. */
  protected async fill({ id, source }: Cluster, ready: R): Promise<void> {
    if (source) {
      const found = await contents.contentsOf(ready, this.host.contents(id));
      this.host.events.copied(id, found);
    }
    const wanted = this.host.contents(id);
    for (const database of wanted.databases) await contents.ensureDatabase(ready.admin, database);
    for (const { name, role } of wanted.users)
      await users.ensureUser(ready.admin, name, role, this.host.password(id, name));
  }

  /** Applies the changes of a ready cluster in their order; `done` follows each of them. */
  protected async applyChanges(id: string, ready: R, done: (change: ClusterChange) => Promise<void>): Promise<void> {
    for (let next = this.host.next(id); next; next = this.host.next(id)) {
      const { number, change } = next;
      const waiting = this.#waiting.get(number);
      try {
        await this.#apply(id, ready, change);
        await done(change);
        this.host.events.applied(number);
        await this.host.settled();
        waiting?.resolve();
      } catch (error) {
        // Another attempt follows where the store cannot take the change back.
        if (!isRefusal(error) || lasting.has(change.kind)) throw error;
        this.host.events.refused(number);
        await this.host.settled();
        waiting?.reject(new ChangeRefused(error.message));
      }
      this.#waiting.delete(number);
    }
  }

  async #apply(id: string, ready: R, change: ClusterChange): Promise<void> {
    const { admin } = ready;
    const user = "user" in change ? this.host.contents(id).users.find(({ name }) => name === change.user) : undefined;
    const password = user && this.host.password(id, user.name);
    // A server cannot take back what the store then loses.
    await this.host.settled();
    switch (change.kind) {
      case "createDatabase":
        return contents.ensureDatabase(admin, change.database);
      case "dropDatabase":
        return contents.dropDatabase(admin, change.database);
      case "installExtension":
        return contents.installExtension(ready, change.extension);
      case "removeExtension":
        return contents.removeExtension(ready, change.extension, change.force);
      case "dropUser":
        return users.dropUser(ready, change.user, this.report(id));
      case "createUser":
      case "changeRole":
      case "setPassword": {
        // It was deleted meanwhile, by a later change.
        if (!user || password === undefined) return;
        await users.ensureUser(admin, user.name, user.role, password);
      }
    }
  }

  /** Answers the requests that wait for a cluster that is deleted. */
  protected refuseWaiting(id: string): void {
    for (const [number, waiting] of this.#waiting) {
      if (waiting.cluster !== id) continue;
      this.#waiting.delete(number);
      waiting.reject(new ChangeRefused("This cluster is being deleted"));
    }
  }
}

/** The user whose sessions are to end after a change; undefined if none are. */
export const endedBy = (change: ClusterChange): string | undefined =>
  change.kind === "dropUser" || (change.kind === "setPassword" && change.endSessions) ? change.user : undefined;

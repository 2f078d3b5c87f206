// What a proxy of its own knows of the service: a copy in memory, which the lines of the feed keep up to date. The proxy routes by it
// as that of the service does by its store, also while the service cannot be reached.
import { setTimeout as sleep } from "node:timers/promises";
import type { NamesOfService } from "../lifecycle/hostnames.ts";
import { keyNames } from "../lifecycle/hostnames.ts";
import { findMachine } from "../lifecycle/machines.ts";
import { systemRandom } from "../ids.ts";
import { accepts } from "../runtime/probe.ts";
import type { Reach } from "../runtime/runtime.ts";
import { Store } from "../store/database.ts";
import { BoundedCache } from "../store/rowCache.ts";
import type { MachineRow } from "../store/rows.ts";
import type { StoredConfig } from "../store/storedConfig.ts";
import { openVault } from "../store/vault.ts";
import { MovableClock, systemClock } from "../time/clock.ts";
import type { ProxyContext } from "./context.ts";
import type { FedApp, FedMachine, FeedLine } from "./feedLines.ts";

const mi = 2 ** 20;
const rowWeight = 600;
/** Pause between two attempts to connect to a program that does not listen yet. */
const listenPause = 20;

/** What the proxy does after a change. */
interface Listener {
  /** These Apps and Machines have changed. */
  changed(touched: ReadonlySet<string>): void;
  /** An endpoint is no longer a Machine's. */
  forget(endpoint: string): void;
}

/** The copy. */
export class Followed {
  readonly context: ProxyContext;
  readonly reach: Reach;
  readonly #store = new Store(":memory:");
  readonly #endpoints = new Map<string, ReadonlyMap<number, string>>();
  readonly #retried = new Set<string>();
  /** Ids in the lines since the feed began with everything; undefined once it has sent all. */
  #mentioned: Set<string> | undefined;
  readonly #listener: Listener;

  constructor(publicNames: NamesOfService["publicNames"], log: ProxyContext["log"], listener: Listener) {
    const store = this.#store;
    this.#listener = listener;
    // The line of a Machine may come before that of its App.
    store.db.exec("PRAGMA foreign_keys = OFF");
    store.hooks = { beforeCommit() {}, afterCommit: (touched) => listener.changed(touched) };
    this.context = {
      store,
      clock: new MovableClock(systemClock()),
      machineRows: new BoundedCache<MachineRow>(store, () => rowWeight, 16 * mi),
      configs: new BoundedCache<StoredConfig>(store, ({ weight }) => weight, 16 * mi),
      publicNames,
      ownNames: new Set(),
      vault: openVault(undefined, systemRandom(), false),
      dataId: "",
      log,
      issuer: {},
      timers: { pending: (machine) => this.#retried.has(machine) },
      counted: undefined,
    };
    this.reach = {
      endpoint: (machine, port) => this.#endpoints.get(machine)?.get(port),
      listens: (machine, port) => this.#listens(machine, port),
    };
  }

  /** From now on, the feed sends everything: what has no line until {@link complete} no longer exists. */
  begin(): void {
    this.#mentioned = new Set();
  }

  /** Takes lines over, all at once. Requests see them when it resolves. */
  async apply(lines: readonly FeedLine[]): Promise<void> {
    if (lines.length === 0) return;
    await this.#store.write(() => {
      for (const line of lines) this.#take(line);
    });
  }

  /** The feed has sent everything. */
  async complete(): Promise<void> {
    const mentioned = this.#mentioned;
    if (!mentioned) return;
    this.#mentioned = undefined;
    const left = this.#store
      .all<{ id: string }>("SELECT id FROM apps UNION ALL SELECT id FROM machines")
      .filter(({ id }) => !mentioned.has(id));
    await this.apply(left.map(({ id }) => ({ gone: id })));
  }

  close(): void {
    this.#store.close();
  }

  #take(line: FeedLine): void {
    if ("app" in line) this.#app(line.app);
    else if ("machine" in line) this.#machine(line.machine);
    else if ("gone" in line) this.#gone(line.gone);
  }

  #app({ id, org, name, network, hostnames }: FedApp): void {
    const store = this.#store;
    this.#mentioned?.add(id);
    // Another App may have had the name until a moment ago.
    for (const other of store.all<{ id: string }>("SELECT id FROM apps WHERE name = ? AND id <> ?", name, id))
      this.#gone(other.id);
    store.run(
      `INSERT INTO apps (id, org, name, network, created_at) VALUES (?, ?, ?, ?, 0)
       ON CONFLICT (id) DO UPDATE SET org = excluded.org, name = excluded.name, network = excluded.network`,
      ...[id, org, name, network],
    );
    store.run("DELETE FROM hostnames WHERE app = ?", id);
    for (const { issued_key, custom_key, ...row } of hostnames) {
      const of = { app: id, hostname: row.hostname };
      const seal = (sealedFor: string, key: string | null) => key && this.context.vault.seal(sealedFor, key);
      store.run("DELETE FROM hostnames WHERE hostname = ?", row.hostname);
      store.insert("hostnames", {
        ...row,
        ...{
          app: id,
          owner_code: "",
          acme_requested: 0,
          dns_seen: 1,
          ownership_seen: 1,
          attempts: "[]",
          problems: "[]",
        },
        ...{ created_at: 0, updated_at: 0 },
        issued_key: seal(keyNames.issued(of), issued_key),
        custom_key: seal(keyNames.custom(of), custom_key),
      });
    }
    store.touch(id);
  }

  #machine({ results, isRetried, config, endpoints, ...machine }: FedMachine): void {
    const { id, version } = machine;
    this.#mentioned?.add(id);
    const check_results =
      results &&
      JSON.stringify(
        Object.fromEntries(Object.entries(results).map(([name, status]) => [name, { status, output: "" }])),
      );
    const columns = { ...machine, check_results, name: id };
    const known = findMachine(this.context, id);
    if (known) this.#store.update("machines", "id", id, columns);
    else this.#store.insert("machines", { ...columns, ...unused });
    if (known?.version !== version) {
      const text = JSON.stringify(config);
      this.#store.run("DELETE FROM machine_versions WHERE machine = ?", id);
      this.#store.insert("machine_versions", { machine: id, version, size: text.length, config: text });
      this.context.configs.forget(`${id} ${version}`);
    }
    if (isRetried) this.#retried.add(id);
    else this.#retried.delete(id);
    this.#reached(id, new Map(Object.entries(endpoints).map(([port, endpoint]) => [Number(port), endpoint])));
    this.context.machineRows.forget(id);
    this.#store.touch(id);
  }

  #gone(id: string): void {
    const store = this.#store;
    // Requests look for it until the end of the transaction.
    store.touch(id);
    const app = store.get<{ app: string }>("SELECT app FROM machines WHERE id = ?", id)?.app;
    if (app !== undefined) store.touch(app);
    for (const table of ["hostnames WHERE app", "machine_versions WHERE machine", "machines WHERE id", "apps WHERE id"])
      store.run(`DELETE FROM ${table} = ?`, id);
    this.#retried.delete(id);
    this.#reached(id, new Map());
    this.context.machineRows.forget(id);
  }

  #reached(id: string, endpoints: ReadonlyMap<number, string>): void {
    const still = new Set(endpoints.values());
    for (const endpoint of this.#endpoints.get(id)?.values() ?? [])
      if (!still.has(endpoint)) this.#listener.forget(endpoint);
    if (endpoints.size > 0) this.#endpoints.set(id, endpoints);
    else this.#endpoints.delete(id);
  }

  async #listens(machine: string, port: number): Promise<boolean> {
    for (;;) {
      const endpoint = this.#endpoints.get(machine)?.get(port);
      if (endpoint === undefined) return false;
      if (await accepts(endpoint)) return true;
      await sleep(listenPause);
    }
  }
}

/** Columns of a Machine by which no request is routed. */
const unused = {
  ...{ private_ip: "", launch: 1, restarts: 0, retried_from: 0, restarted: 0, cpu_kind: "shared" },
  ...{ standby: 0, checked_at: 0, updated_at: 0, image_ref: "{}", brief: "{}" },
};

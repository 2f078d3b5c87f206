// Starts Machines for requests, and stops or suspends those that had none for a while, as their services ask.
import type { Context } from "../context.ts";
import { configOf, findMachine, operate } from "../lifecycle/machines.ts";
import type { MachineConfig } from "../../api/machineConfig.ts";
import type { MachineRow } from "../store/rows.ts";
import { startForRequest, type Power } from "./power.ts";
import type { Targets } from "./targets.ts";

/** What a configuration asks for when it is idle; undefined if it shall run on. */
export function whenIdle({ services = [] }: MachineConfig): "stop" | "suspend" | undefined {
  const asked = services.filter(({ ports }) => ports?.length).map(({ autostop }) => autostop ?? "off");
  if (asked.length === 0 || asked.some((one) => one === "off" || one === false)) return undefined;
  return asked.every((one) => one === "suspend") ? "suspend" : "stop";
}

/** Requests that come by other ways than the proxy of this process. */
export interface Elsewhere {
  /** Whether all ways are known by which requests reach Machines. Otherwise none is known to be idle. */
  readonly isKnown: boolean;
  /** Whether a Machine has a request of another proxy. */
  isBusy(machine: string): boolean;
  /** Whether a request of another proxy waits for a Machine of an App. */
  isAwaited(app: string): boolean;
}

/** Acts in the store of the service. It has a timer for each idle Machine. */
export class Autostop implements Power {
  readonly #context: Context;
  readonly #targets: Targets;
  readonly #elsewhere: Elsewhere;
  readonly #timers = new Map<string, () => void>();
  /** Machines that take requests. */
  readonly #running = new Set<string>();
  /** Idle Machines that min_machines_running keeps, with their Apps: they are looked at again when another one begins to run. */
  readonly #kept = new Map<string, string>();
  #isClosed = false;

  constructor(context: Context, targets: Targets, elsewhere: Elsewhere) {
    this.#context = context;
    this.#targets = targets;
    this.#elsewhere = elsewhere;
  }

  wake(id: string): boolean {
    const { store, log } = this.#context;
    store
      .write(() => startForRequest(this.#context, id))
      .catch((error: unknown) => log.error({ err: error, machine: id }, "a Machine could not be started"));
    return true;
  }

  changed(id: string): void {
    if (this.#isClosed) return;
    const machine = findMachine(this.#context, id);
    this.#noteRunning(id, machine);
    const isIdle =
      machine?.state === "started" && !this.#isBusy(id) && whenIdle(configOf(this.#context, machine)) !== undefined;
    if (!isIdle) return this.#forget(id);
    if (this.#timers.has(id) || this.#kept.has(id)) return;
    this.#timers.set(
      id,
      this.#context.clock.after(this.#context.delays.idle, () => void this.#stop(id)),
    );
  }

  loaded(id: string): void {
    this.#forget(id);
    this.changed(id);
  }

  close(): void {
    this.#isClosed = true;
    for (const id of [...this.#timers.keys()]) this.#forget(id);
  }

  #isBusy(id: string): boolean {
    return this.#targets.openOf(id) > 0 || this.#elsewhere.isBusy(id);
  }

  #noteRunning(id: string, machine: MachineRow | undefined): void {
    if (machine?.state !== "started" || machine.cordoned !== 0) return void this.#running.delete(id);
    if (this.#running.has(id)) return;
    this.#running.add(id);
    for (const [other, app] of this.#kept) {
      if (app !== machine.app) continue;
      this.#kept.delete(other);
      this.changed(other);
    }
  }

  #forget(id: string): void {
    this.#timers.get(id)?.();
    this.#timers.delete(id);
    this.#kept.delete(id);
  }

  async #stop(id: string): Promise<void> {
    this.#timers.delete(id);
    const { store, log } = this.#context;
    const stop = (): void => {
      const machine = findMachine(this.#context, id);
      if (machine?.state !== "started" || this.#isBusy(id)) return;
      // Its checks may not have run yet.
      const isAwaited = this.#targets.isAwaited(machine.app) || this.#elsewhere.isAwaited(machine.app);
      if (isAwaited || !this.#elsewhere.isKnown) return this.changed(id);
      const config = configOf(this.#context, machine);
      const operation = whenIdle(config);
      const least = Math.max(0, ...(config.services ?? []).map(({ min_machines_running: min = 0 }) => min));
      if (!operation) return;
      if (this.#runningBeside(machine) <= least) return void this.#kept.set(id, machine.app);
      operate(this.#context, machine, operation, { type: operation, source: "flyd" });
    };
    try {
      await store.write(stop);
    } catch (error) {
      log.error({ err: error, machine: id }, "an idle Machine keeps running");
      this.changed(id);
    }
  }

  /**
   * The number of Machines that take requests for a public port of this one, itself included.
   * ASSUMED: min_machines_running counts the started Machines that have a public port of this one, in every region, because an App has
   * no primary region.
   */
  #runningBeside({ id, app }: MachineRow): number {
    const beside = new Set([id]);
    for (const { offers } of this.#targets.portsOf(app).values())
      if (offers.some(({ machine }) => machine.id === id)) for (const { machine } of offers) beside.add(machine.id);
    // The ports may be those from before this transaction, in which others may have been stopped.
    const sql = `SELECT count(*) AS count FROM machines
      WHERE id IN (SELECT value FROM json_each(?)) AND state = 'started' AND cordoned = 0`;
    return this.#context.store.get<{ count: number }>(sql, JSON.stringify([...beside]))?.count ?? 0;
  }
}

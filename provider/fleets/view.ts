// What a rollout knows of the Machines of its fleet: a list that is at most a second old, and the results of steps since then.
// A list after every step would take longer than the steps of a large fleet.
import { type Machine } from "../client/wait.ts";
import type { Call } from "../core/resource.ts";
import { fleetMachines, type FleetKey } from "./members.ts";

/** Milliseconds after which the Machines are listed again. */
export const lookEvery = 1000;

/** The Machines of a fleet during a rollout. */
export class View {
  readonly #call: Call;
  readonly #fleet: FleetKey;
  #machines = new Map<string, Machine>();
  #listedAt = -Infinity;
  /** Machines that steps have changed: a list may be behind. */
  readonly #changed = new Set<string>();
  /** Results of steps since the last list was requested; undefined for a Machine that is gone. */
  readonly #since = new Map<string, Machine | undefined>();

  constructor(call: Call, fleet: FleetKey) {
    this.#call = call;
    this.#fleet = fleet;
  }

  /** The Machines, listed if the last list is too old. */
  async look(): Promise<readonly Machine[]> {
    return this.#call.api.clock.now() - this.#listedAt < lookEvery ? [...this.#machines.values()] : this.list();
  }

  /** The Machines, listed now. */
  async list(): Promise<readonly Machine[]> {
    const { api } = this.#call;
    this.#since.clear();
    const listed = await fleetMachines(api, this.#fleet.app, this.#fleet.name, this.#changed);
    this.#machines = new Map(listed.map((machine) => [machine.id, machine]));
    for (const [id, machine] of this.#since) this.#put(id, machine);
    this.#listedAt = api.clock.now();
    return [...this.#machines.values()];
  }

  /** Whether no step has changed anything since the last list. */
  get isListed(): boolean {
    return this.#since.size === 0;
  }

  /** Records the result of a step; undefined if the Machine is gone. */
  set(id: string, machine: Machine | undefined): void {
    this.#changed.add(id);
    this.#since.set(id, machine);
    this.#put(id, machine);
  }

  #put(id: string, machine: Machine | undefined): void {
    if (machine === undefined) this.#machines.delete(id);
    else this.#machines.set(id, machine);
  }
}

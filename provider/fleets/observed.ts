// What a rollout knows of the Machines of its fleet: a list that is at most a second old, and the results of steps since then.
// A list after every step would take longer than the steps of a large fleet.
import type { Machine } from "../client/machine.ts";
import type { Call } from "../core/resource.ts";
import { lookAt, type FleetKey } from "./members.ts";

/** Milliseconds after which the Machines are listed again. */
export const lookEvery = 1000;

/** The Machines of a fleet during a rollout. */
export class Observed {
  readonly #call: Call;
  readonly #fleet: FleetKey;
  #machines = new Map<string, Machine>();
  #taken: ReadonlySet<string> = new Set();
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
    return this.#call.api.clock.now() - this.#listedAt < lookEvery ? this.machines : this.list();
  }

  /** The Machines, listed now. */
  async list(api = this.#call.api): Promise<readonly Machine[]> {
    this.#since.clear();
    const { machines, taken } = await lookAt(api, this.#fleet, this.#changed);
    this.#machines = new Map(machines.map((machine) => [machine.id, machine]));
    this.#taken = taken;
    for (const [id, machine] of this.#since) this.#put(id, machine);
    this.#listedAt = api.clock.now();
    return this.machines;
  }

  /** The Machines as the last look found them. */
  get machines(): readonly Machine[] {
    return [...this.#machines.values()];
  }

  /** Names that Machines of others had in the last list. */
  get taken(): ReadonlySet<string> {
    return this.#taken;
  }

  /** Whether no step has changed anything since the last list. */
  get isListed(): boolean {
    return this.#since.size === 0;
  }

  /** Records the result of a step; undefined if the Machine is gone. */
  set(id: string, machine: Machine | undefined): void {
    this.#changed.add(id);
    this.#fleet.machines.add(id);
    this.#since.set(id, machine);
    this.#put(id, machine);
  }

  #put(id: string, machine: Machine | undefined): void {
    if (machine === undefined) this.#machines.delete(id);
    else this.#machines.set(id, machine);
  }
}

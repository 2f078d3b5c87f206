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
  /** Machines that steps have changed: a list, and even a read, may be behind. */
  readonly #changed = new Set<string>();
  /** Machines that are certainly gone. */
  readonly #gone = new Set<string>();
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
    // R8: a list does not prove absence, so the known ones that it lacks are requested.
    const known = new Set([...this.#fleet.machines].filter((id) => !this.#gone.has(id)));
    const { machines, taken } = await lookAt(api, this.#fleet, known);
    this.#machines = new Map(machines.map((machine) => [machine.id, machine]));
    for (const id of known) if (!this.#machines.has(id) && !this.#changed.has(id)) this.#gone.add(id);
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
    if (machine === undefined) this.#gone.add(id);
    this.#since.set(id, machine);
    this.#put(id, machine);
  }

  #put(id: string, machine: Machine | undefined): void {
    if (machine === undefined) this.#machines.delete(id);
    else this.#machines.set(id, machine);
  }
}

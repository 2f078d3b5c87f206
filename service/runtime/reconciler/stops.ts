// How Machines are stopped: requests that are open may end, then the process is asked to end, and killed when its time is over.
import type { RuntimeHost, StopRequest } from "../runtime.ts";
import type { Driver, Instance, Reports } from "./driver.ts";

/** A time limit of a Machine. The Machine is looked at again when it is over. */
interface Limit {
  isOver: boolean;
  readonly timer: NodeJS.Timeout;
}

/** The time limit of an instance that was asked to end. */
interface StopLimit extends Limit {
  readonly instance: string;
}

/** The stops of all Machines. */
export class Stops<I extends Instance> {
  readonly #host: RuntimeHost;
  readonly #reports: Reports;
  readonly #driver: Driver<I>;
  /** The time limits of those that were asked to end. */
  readonly #stops = new Map<string, StopLimit>();
  readonly #drains = new Map<string, Limit>();

  constructor(host: RuntimeHost, reports: Reports, driver: Driver<I>) {
    this.#host = host;
    this.#reports = reports;
    this.#driver = driver;
  }

  /** A Machine is to be stopped in this way. An instance that was asked to end keeps the time that it has. */
  request(id: string, request: StopRequest): void {
    const { stops } = this.#host;
    stops.keep(id, { request, asked: stops.of(id)?.asked });
  }

  /** The way in which a Machine is to be stopped; undefined for the configured one. */
  requested(id: string): StopRequest | undefined {
    return this.#host.stops.of(id)?.request;
  }

  /** Takes the next step of stopping an instance. */
  async step(id: string, instance: I, request: StopRequest): Promise<void> {
    const known = this.#stops.get(id) ?? this.#continued(id, instance);
    if (known?.instance === instance.id) return known.isOver ? this.#driver.kill(instance) : undefined;
    if (this.isDraining(id, request.timeoutMs)) return;
    await this.#driver.stop(instance, request);
    clearTimeout(known?.timer);
    this.#stops.set(id, this.#stopLimit(id, instance, request.timeoutMs));
    this.#host.stops.keep(id, { request, asked: { instance: instance.id, leftMs: request.timeoutMs } });
  }

  /** The limit of an instance that was asked to end before this service was started: many programs end at once at a second signal. */
  #continued(id: string, instance: I): StopLimit | undefined {
    const asked = this.#host.stops.of(id)?.asked;
    if (asked?.instance !== instance.id) return undefined;
    const limit = this.#stopLimit(id, instance, asked.leftMs);
    this.#stops.set(id, limit);
    return limit;
  }

  /** Kills an instance that should not run. */
  async kill(id: string, instance: I): Promise<void> {
    if (!this.isDraining(id, 0)) await this.#driver.kill(instance);
  }

  /** Whether a Machine may still have requests. The step is repeated when they have ended, or when the time is over. */
  isDraining(id: string, timeoutMs: number): boolean {
    const { routes } = this.#driver;
    const left = routes?.drainMs(id) ?? 0;
    if (left > 0) {
      this.#reports.lookLater(id, left);
      return true;
    }
    const begun = this.#drains.get(id);
    if (begun) return !begun.isOver;
    const drained = timeoutMs > 0 ? this.#host.drained(id) : undefined;
    if (!drained) return false;
    const drain = this.#limit(id, timeoutMs);
    this.#drains.set(id, drain);
    void drained.then(() => this.#end(id, drain));
    return true;
  }

  /** A Machine has ended, or is started again. */
  forget(id: string): void {
    for (const limits of [this.#stops, this.#drains]) {
      clearTimeout(limits.get(id)?.timer);
      limits.delete(id);
    }
    this.#host.stops.forget(id);
  }

  close(): void {
    for (const { timer } of [...this.#stops.values(), ...this.#drains.values()]) clearTimeout(timer);
  }

  #stopLimit(id: string, { id: instance }: I, ms: number): StopLimit {
    return Object.assign(this.#limit(id, ms), { instance });
  }

  #limit(id: string, ms: number): Limit {
    const limit: Limit = { isOver: false, timer: setTimeout(() => this.#end(id, limit), ms) };
    return limit;
  }

  #end(id: string, limit: Limit): void {
    limit.isOver = true;
    clearTimeout(limit.timer);
    this.#reports.changed(id);
  }
}

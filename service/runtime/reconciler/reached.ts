// Where started Machines are reached, and their checks.
import { setTimeout as sleep } from "node:timers/promises";
import { Checker } from "../checker.ts";
import { accepts, unseen } from "../probe.ts";
import type { Reach, RuntimeHost, Subject } from "../runtime.ts";
import type { Published, Reports } from "./driver.ts";

/** Pause between two attempts to connect to a program that does not listen yet. */
const listenPause = 20;

/** The started Machines. */
export class Reached implements Reach {
  readonly #host: RuntimeHost;
  readonly #reports: Reports;
  readonly #published = new Map<string, Published>();
  readonly #checkers = new Map<string, Checker>();
  readonly hasOtherWays: boolean;

  /** `hasOtherWays`: {@link Reach.hasOtherWays}. */
  constructor(host: RuntimeHost, reports: Reports, hasOtherWays: boolean) {
    this.#host = host;
    this.#reports = reports;
    this.hasOtherWays = hasOtherWays;
  }

  endpoint(machine: string, port: number): string | undefined {
    return this.#published.get(machine)?.endpoints.get(port);
  }

  async listens(machine: string, port: number): Promise<boolean> {
    for (;;) {
      const endpoint = this.endpoint(machine, port);
      if (endpoint === undefined || this.#reports.closed.aborted) return false;
      if (await accepts(endpoint, () => this.#listens(machine, port))) return true;
      await sleep(listenPause);
    }
  }

  /** Whether a Machine can be reached. */
  has(id: string): boolean {
    return this.#published.has(id);
  }

  /** Whether all checks of a started Machine pass. */
  isServing(id: string): boolean {
    return this.#checkers.get(id)?.isServing === true;
  }

  /** A Machine is started, and its ports are here. */
  publish(machine: Subject, published: Published | undefined): void {
    const { id } = machine;
    const known = this.#published.get(id);
    const isKnown =
      published?.run === known?.run &&
      [...(published?.endpoints ?? [])].every(([port, at]) => known?.endpoints.get(port) === at);
    if (published && !isKnown) {
      this.#unpublish(id);
      this.#published.set(id, published);
      this.#host.reachable(id);
    }
    const checker = this.#checkers.get(id);
    checker?.pause(false);
    if (checker?.version === machine.version) return;
    checker?.end();
    const ports = {
      endpoint: (port: number) => this.endpoint(id, port),
      listens: (port: number) => this.#listens(id, port),
    };
    this.#checkers.set(id, new Checker(machine, this.#host.events, ports));
  }

  /** A Machine is not started any more. */
  withdraw(id: string): void {
    this.#checkers.get(id)?.end();
    this.#checkers.delete(id);
    this.#unpublish(id);
  }

  /** The results of a Machine's checks mean nothing until it is published again. */
  pauseChecks(id: string): void {
    this.#checkers.get(id)?.pause(true);
  }

  close(): void {
    for (const checker of this.#checkers.values()) checker.end();
  }

  #listens(machine: string, port: number): Promise<boolean | undefined> {
    return this.#published.get(machine)?.listens(port) ?? unseen();
  }

  #unpublish(id: string): void {
    const before = this.#published.get(id);
    this.#published.delete(id);
    if (before) this.#host.unreachable([...before.endpoints.values()]);
  }
}

// The client of the specification tests of clusters on engines with real servers: each request finds the servers settled.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import { ManualClock, type Clock, type Service, type ServiceOptions } from "../../../../service/index.ts";
import type { EngineFactory, EngineHost } from "../../../../service/runtime/postgresEngine.ts";
import { callerWith as plainCallerWith, requestsOfWeb, withApp as plainWithApp, type Call } from "../../client.ts";
import { afterThisTest } from "../../../support/leftovers.ts";
import { hang } from "../../../support/patience.mts";

/** Waits for the servers before each request to a service. */
const waits = new WeakMap<Service, () => Promise<void>>();

/** Resolves when nothing of the clusters follows by itself, as after every request on the simulation without delays. */
const settled = ({ context: { store } }: Service): Promise<void> =>
  vi.waitFor(
    () => {
      const moving = store.all<{ id: string; status: string }>(
        `SELECT id, status FROM clusters WHERE status IN ('creating', 'initializing', 'deleting')
          UNION ALL SELECT id, status FROM backups WHERE status = 'running'`,
      );
      if (moving.length > 0) throw new Error(`not settled: ${JSON.stringify(moving)}`);
    },
    { interval: 5, timeout: hang },
  );

const waiting =
  (service: Service, call: Call): Call =>
  async (...request) => {
    await waits.get(service)?.();
    return call(...request);
  };

/** Sends requests with a new token. */
export const callerWith: typeof plainCallerWith = (app, ...more) => waiting(app.service, plainCallerWith(app, ...more));

/** The shortest time that is enough for what servers have begun. */
const enoughMs = 1000;

/** A clock that stands still, also for servers: they begin only when it is moved. */
class StillClock extends ManualClock {
  readonly #begins: (() => void)[] = [];
  /** The times of servers' clocks at which this clock had reached a time. */
  readonly #reached: { readonly until: number; readonly time: number }[] = [];
  #wasEnough = false;

  override advance(ms: number): void {
    super.advance(ms);
    for (const begin of this.#begins.splice(0)) begin();
    this.#wasEnough ||= ms >= enoughMs;
  }

  /** Waits for what servers do in the time that has passed. */
  async catchUp(service: Service): Promise<void> {
    if (!this.#wasEnough) return;
    this.#wasEnough = false;
    await settled(service);
    this.#reached.push({ until: this.now(), time: Date.now() });
  }

  /** An engine that this clock halts. */
  halting =
    (create: EngineFactory): EngineFactory =>
    (host) => {
      const later =
        <T extends unknown[]>(begin: (...args: T) => void) =>
        (...args: T): void =>
          void this.#begins.push(() => begin(...args));
      const engine = create(this.#inServerTime(host));
      return Object.assign(engine, {
        create: later(engine.create.bind(engine)),
        destroy: later(engine.destroy.bind(engine)),
        backUp: later(engine.backUp.bind(engine)),
      });
    };

  /** The time to restore is one of the servers' clock. */
  #inServerTime(host: EngineHost): EngineHost {
    const cluster: EngineHost["cluster"] = (id) => {
      const found = host.cluster(id);
      const { source } = found ?? {};
      const wanted = source?.time;
      const time = wanted === undefined ? undefined : this.#reached.find(({ until }) => wanted <= until)?.time;
      return found && source && time !== undefined ? { ...found, source: { ...source, time } } : found;
    };
    return { ...host, cluster };
  }
}

/** The client for services with an engine, each of which has a folder of its own. */
export function clientOn(engineOf: (data: string) => Promise<EngineFactory>) {
  async function start<C extends Clock | undefined>(
    options: ServiceOptions & { clock?: C },
    adapt: (engine: EngineFactory) => EngineFactory,
    wait: (service: Service) => Promise<void>,
  ) {
    const data = mkdtempSync(join(tmpdir(), "machines-postgres-spec-"));
    afterThisTest(() => rmSync(data, { recursive: true, force: true }));
    const app = await plainWithApp<C>({ ...options, data, postgres: adapt(await engineOf(data)) });
    waits.set(app.service, () => wait(app.service));
    return { ...app, ...requestsOfWeb(waiting(app.service, app.call)) };
  }
  return {
    /** A service with the App `web` whose clusters are servers. Each request finds them settled. */
    withApp: <C extends Clock | undefined = undefined>(options: ServiceOptions & { clock?: C } = {}) =>
      start<C>(options, (engine) => engine, settled),
    /** The same with a clock that stands still. */
    withStillClock(options: Omit<ServiceOptions, "clock"> = {}) {
      const clock = new StillClock();
      return start<StillClock>({ delays: "believable", ...options, clock }, clock.halting, (service) =>
        clock.catchUp(service),
      );
    },
  };
}

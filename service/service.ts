// The service, put together. In a test it lives in the test's process; the command (main.ts) lets it listen.
import { chmodSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import { addRoutes, createServer, type LogStream, type Seen } from "./app.ts";
import { Faults } from "./faults.ts";
import { createIds, systemRandom, type RandomBytes } from "./ids.ts";
import { systemClock, type Clock } from "./lifecycle/clock.ts";
import { delayProfiles, type DelayProfile, type Delays } from "./lifecycle/delays.ts";
import { happenings } from "./lifecycle/index.ts";
import { Timers } from "./lifecycle/timers.ts";
import { Waits } from "./lifecycle/waits.ts";
import { nearest, regions, type Region } from "./runtime/regions.ts";
import { simulated, type Runtime } from "./runtime/simulated.ts";
import { Store, StoreError } from "./store/database.ts";
import { lockData } from "./store/lock.ts";
import { ownToken } from "./store/tokenFile.ts";
import { Tokens } from "./store/tokens.ts";
import type { World } from "./world.ts";

/** What a service is made from; everything may be left out. */
export interface ServiceOptions {
  /** Folder of the data, or `":memory:"`, which is the default. */
  readonly data?: string;
  readonly clock?: Clock;
  /** Randomness behind every identifier, nonce and token. */
  readonly random?: RandomBytes;
  /** Name of a set of delays, or one of its own. `realistic` when left out. */
  readonly delays?: DelayProfile | Delays;
  /** Refuses unknown fields, and checks the service's own answers. */
  readonly strict?: boolean;
  readonly runtime?: Runtime;
  /** Room in regions, by code, where it differs from the usual. */
  readonly capacity?: Readonly<Record<string, number>>;
  /** Host names allowed beside those of this computer; `"any"` when it listens to others. */
  readonly allowHosts?: readonly string[] | "any";
  /** Where log lines go; nowhere when left out. */
  readonly log?: LogStream;
  /** Told of every request that was answered. */
  readonly onRequest?: (request: Seen) => void;
}

/** A service that runs in this process. */
export interface Service {
  /** Listens by `app.listen`, or answers `app.inject` without. */
  readonly app: FastifyInstance;
  /** Token of the organization `personal`. */
  readonly token: string;
  readonly faults: Faults;
  readonly world: World;
  /** Ends held requests, lets the others finish, and gives the data folder back. */
  close(): Promise<void>;
}

/** Makes a service. Throws a StoreError when the data folder cannot be used. */
export function createService(options: ServiceOptions = {}): Service {
  const {
    data = ":memory:",
    clock = systemClock(),
    random = systemRandom(),
    delays = "realistic",
    allowHosts = [],
  } = options;
  const folder = data === ":memory:" ? undefined : prepareFolder(data);
  const lock = folder === undefined ? undefined : lockData(folder);
  try {
    const store = new Store(folder === undefined ? ":memory:" : join(folder, "service.db"));
    if (folder !== undefined) chmodSync(join(folder, "service.db"), 0o600);
    const boot = Buffer.from(random(4)).toString("hex");
    let count = 0;
    const app = createServer(options.log, () => `${boot}-${(++count).toString(36).padStart(6, "0")}`);
    const world = createWorld(store, clock, random, delays, options, app.log);
    const token = ownToken(store, folder, world.ids, clock.now());
    const faults = new Faults();
    addRoutes(app, {
      world,
      tokens: new Tokens(store),
      faults,
      strict: options.strict ?? false,
      allowedHosts: allowHosts === "any" ? undefined : new Set(allowHosts.map((host) => host.toLowerCase())),
      seen: options.onRequest ?? (() => {}),
    });
    world.timers.arm();
    let closing: Promise<void> | undefined;
    const end = async (): Promise<void> => {
      world.waits.close();
      await app.close();
      world.timers.disarm();
      store.close();
      lock?.release();
    };
    return { app, token, faults, world, close: () => (closing ??= end()) };
  } catch (error) {
    lock?.release();
    throw error;
  }
}

function createWorld(
  store: Store,
  clock: Clock,
  random: RandomBytes,
  delays: DelayProfile | Delays,
  options: ServiceOptions,
  log: FastifyBaseLogger,
): World {
  const lastEvent = store.get<{ id: string | null }>("SELECT max(id) AS id FROM events")?.id ?? undefined;
  const lastVersion =
    store.get<{ id: string | null }>("SELECT max(version) AS id FROM machine_versions")?.id ?? undefined;
  const timers = new Timers(
    store,
    clock,
    (kind, subject, data) => happenings[kind](world, subject, data),
    (error, kind) => log.error({ err: error, kind }, "something that was due did not happen"),
  );
  const waits = new Waits(clock);
  const roomy = regions.map((region): [string, Region] => [
    region.code,
    { ...region, capacity: options.capacity?.[region.code] ?? region.capacity },
  ]);
  const world: World = {
    store,
    clock,
    ids: createIds(random, [lastEvent, lastVersion].sort().at(-1)),
    delays: typeof delays === "string" ? delayProfiles[delays] : delays,
    timers,
    waits,
    runtime: options.runtime ?? simulated,
    regions: new Map(roomy),
    nearest,
    machineTexts: new Map(),
    log,
  };
  store.hooks = {
    beforeCommit: () => timers.runDue(),
    afterCommit(touched) {
      timers.arm();
      waits.wake(touched);
    },
    undone: () => world.machineTexts.clear(),
  };
  return world;
}

function prepareFolder(data: string): string {
  const folder = resolve(data);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
  } catch (error) {
    throw new StoreError(
      `${folder} cannot be the data folder (${error instanceof Error && "code" in error ? String(error.code) : "unknown"}). Choose another with --data.`,
    );
  }
  return folder;
}

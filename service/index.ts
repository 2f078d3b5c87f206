// The exports of the package: a service inside this process for tests, or the one of this computer, started on demand.
export { createService, type Service, type ServiceOptions } from "./service.ts";
export { ManualClock, systemClock, type Clock } from "./time/clock.ts";
export { seededRandom, type RandomBytes } from "./ids.ts";
export type { Fault } from "./faults/faults.ts";
export type { Audited } from "./http/audit.ts";
export { startAdmin, type Admin, type AdminOptions } from "./http/admin.ts";
export type { Seen } from "./http/app.ts";
export type { Runtime, RuntimeEvents, RuntimeFactory, RuntimeHost, Subject } from "./runtime/runtime.ts";
export type { Cluster, EngineEvents, EngineFactory, EngineHost, PostgresEngine } from "./runtime/postgresEngine.ts";
export { consoleLink } from "./local/console.ts";
export { findLocal, startLocal, type Local } from "./local/daemon.ts";
export type { LocalOptions } from "./local/options.ts";

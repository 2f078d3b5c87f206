// The hosts: what a runtime, an engine of Postgres clusters and an issuer of certificates get of the service, and report to it.
import { touchAnswer, type Context } from "./context.ts";
import type { RandomBytes } from "./ids.ts";
import { appSubject } from "./lifecycle/appSubject.ts";
import { issued, refused } from "./lifecycle/certificates.ts";
import * as clusterContents from "./lifecycle/clusterContents.ts";
import * as clusters from "./lifecycle/clusters.ts";
import { checked, exited, findMachine, resolved, runtimeEvent, subjectOf, unprepared } from "./lifecycle/machines.ts";
import { isOwnSubject, ownIssued, ownRefused } from "./lifecycle/ownCertificates.ts";
import { storedStops } from "./lifecycle/storedStops.ts";
import * as volumes from "./lifecycle/volumes.ts";
import type { Feed } from "./proxy/feed.ts";
import type { Proxy } from "./proxy/proxy.ts";
import type { IssuerHost } from "./runtime/certificateIssuer.ts";
import type { LocalAuthority } from "./runtime/localAuthority.ts";
import type { EngineHost } from "./runtime/postgresEngine.ts";
import type { Resolver } from "./runtime/resolver.ts";
import type { RuntimeHost } from "./runtime/runtime.ts";
import type { Store } from "./store/database.ts";
import { dataIdOf } from "./store/dataId.ts";
import type { MovableClock } from "./time/clock.ts";
import type { Delays } from "./time/delays.ts";
import type { Timers } from "./time/timers.ts";

/** The parts of the service that its hosts use. */
export interface HostParts {
  readonly store: Store;
  readonly folder: string | undefined;
  readonly authority: LocalAuthority;
  readonly clock: MovableClock;
  readonly random: RandomBytes;
  readonly delays: Delays;
  readonly timers: Timers;
  readonly resolver: Resolver | undefined;
  readonly log: Context["log"];
  /** Made after the hosts, which call it only later. */
  readonly context: () => Context;
  /** Made after the hosts, which call them only later. */
  readonly proxy: () => Proxy | undefined;
  readonly feed: () => Feed | undefined;
}

/** Makes a change that is reported. Calls `lost` if the change is not durable, because the disk is full for example. */
type Report = (change: () => void, lost?: () => void) => void;

/** The hosts of one service. */
export function hostsOf(parts: HostParts): {
  readonly runtime: RuntimeHost;
  readonly engine: EngineHost;
  readonly issuer: IssuerHost;
} {
  const report = reporting(parts);
  const runtime = runtimeHost(parts, report);
  return {
    runtime,
    engine: engineHost(parts, report, () => runtime.dataId),
    issuer: issuerHost(parts, report),
  };
}

/** A runtime reports during a change (the simulated one does, with its timers) or at any other time. */
function reporting({ store, log }: HostParts): Report {
  return (change, lost) => {
    if (store.isInPart) return change();
    const logLost = (error: unknown): void => {
      log.error({ err: error }, "the report of a runtime is lost");
      lost?.();
    };
    try {
      store.write(change).catch(logLost);
    } catch (error) {
      logLost(error);
    }
  };
}

/** Resolves when both have; undefined if there is none. */
function bothOf(first: Promise<void> | undefined, second: Promise<void> | undefined): Promise<void> | undefined {
  if (!first || !second) return first ?? second;
  const both = async (): Promise<void> => {
    await Promise.all([first, second]);
  };
  return both();
}

const settling = (store: Store) => async (): Promise<void> => {
  await store.unsettled;
};

function runtimeHost(
  { store, folder, clock, random, delays, timers, log, context, proxy, feed }: HostParts,
  report: Report,
): RuntimeHost {
  let dataId: string | undefined;
  return {
    clock,
    delays,
    timers,
    events: {
      prepared: (machine) => report(() => runtimeEvent(context(), machine, "prepared")),
      unprepared: (machine, reason) => report(() => unprepared(context(), machine, reason)),
      started: (machine) => report(() => runtimeEvent(context(), machine, "started")),
      suspended: (machine) => report(() => runtimeEvent(context(), machine, "suspended")),
      destroyed: (machine) => report(() => runtimeEvent(context(), machine, "destroyed")),
      resolved: (machine, digest) => report(() => resolved(context(), machine, digest)),
      hostChanged: (id) => report(() => touchAnswer(context(), id)),
      exited: (machine, exit) => report(() => exited(context(), machine, exit)),
      checked: (machine, status, results, lost) => report(() => checked(context(), machine, status, results), lost),
      written: (id, bytes) => report(() => volumes.written(context(), id, bytes)),
      discarded: (id) => report(() => volumes.discarded(context(), id)),
    },
    stops: storedStops(timers, clock, report),
    subject: (id) => {
      const machine = findMachine(context(), id);
      return machine?.destroyed_at === null ? subjectOf(context(), machine) : undefined;
    },
    ids: () => store.all<{ id: string }>("SELECT id FROM machines WHERE destroyed_at IS NULL").map(({ id }) => id),
    app: (id) => appSubject(context(), id),
    // A network belongs to an organization (lifecycle/appSubject.ts).
    databases: (network) => clusters.addressesOf(context(), network.split("/", 1)[0] ?? ""),
    volume: (id) => volumes.volumeSubject(context(), id),
    unsettledVolumes: () => volumes.unsettledVolumes(context()),
    reachable: (machine) => {
      proxy()?.changed(new Set([machine]));
      feed()?.changed([machine]);
    },
    unreachable: (endpoints) => {
      for (const endpoint of endpoints) proxy()?.forget(endpoint);
    },
    drained: (machine) => bothOf(proxy()?.drained(machine), feed()?.drained(machine)),
    settled: settling(store),
    get unsure() {
      return store.unsure;
    },
    get dataId() {
      return (dataId ??= dataIdOf(folder, random));
    },
    log,
  };
}

const engineHost = (
  { store, authority, delays, timers, log, context }: HostParts,
  report: Report,
  dataId: () => string,
): EngineHost => ({
  delays,
  timers,
  events: {
    initializing: (id) => report(() => clusters.initializing(context(), id)),
    ready: (id, endpoints) => report(() => clusters.ready(context(), id, endpoints)),
    moved: (id, endpoints) => report(() => clusters.moved(context(), id, endpoints)),
    failed: (id, reason) => report(() => clusters.failed(context(), id, reason)),
    destroyed: (id) => report(() => clusters.destroyed(context(), id)),
    copied: (id, contents) => report(() => clusterContents.copied(context(), id, contents)),
    applied: (change) => report(() => clusterContents.applied(context(), change)),
    refused: (change) => report(() => clusterContents.refused(context(), change)),
    measured: (id, bytes) => report(() => clusters.measured(context(), id, bytes)),
    backedUp: (backup, bytes) => report(() => clusters.finishBackup(context(), backup, bytes)),
    backupFailed: (backup) => report(() => clusters.finishBackup(context(), backup, undefined)),
  },
  log,
  cluster: (id) => {
    const row = clusters.findCluster(context(), id);
    return row && clusters.clusterOf(row);
  },
  get dataId() {
    return dataId();
  },
  organization: (id) => clusters.organizationOf(context(), id),
  ids: () => clusters.liveClusters(context()),
  backups: (id) => clusters.backupsOf(context(), id),
  contents: (id) => clusterContents.contentsOf(context(), id),
  password: (id, user) => clusterContents.passwordOf(context(), id, user),
  secret: (name) => context().vault.digest(name, ""),
  keep: (id, change) => clusterContents.keepChange(context(), id, change),
  next: (id) => clusterContents.nextChange(context(), id),
  certificate: (names, until) => authority.issue(names, until),
  settled: settling(store),
});

const issuerHost = ({ store, folder, clock, resolver, log, context }: HostParts, report: Report): IssuerHost => ({
  clock,
  log,
  folder,
  resolver,
  get challengeRoutes() {
    return context().runtime.challengeRoutes;
  },
  events: {
    issued: (subject, certificate) =>
      report(() => (isOwnSubject(subject) ? ownIssued : issued)(context(), subject, certificate)),
    refused: (subject, problem) =>
      report(() => (isOwnSubject(subject) ? ownRefused : refused)(context(), subject, problem)),
  },
  settled: settling(store),
});

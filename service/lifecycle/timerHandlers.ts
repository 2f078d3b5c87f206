// The handler of each kind of timer.
import type { Context } from "../context.ts";
import { expired, renew, requestCertificate } from "./certificates.ts";
import { measure } from "./clusters.ts";
import { retry, scheduled } from "./machines.ts";
import { clearCluster, forgetMachine, removeApp } from "./removal.ts";
import { ownCertificateDue } from "./ownCertificates.ts";
import type { TimerKind } from "../time/timers.ts";
import { backup, removeSnapshot, removeVolume, stepVolume, unbind } from "./volumes.ts";

/** Handles a timer of the object with that identifier; an object that no longer exists is ignored. */
export type TimerHandler = (context: Context, subject: string, data: string) => void;

/** The handlers by kind of timer. */
export const timerHandlers: Readonly<Record<TimerKind, TimerHandler>> = {
  "app.remove": removeApp,
  "machine.retry": retry,
  "machine.schedule": scheduled,
  "machine.forget": forgetMachine,
  "volume.step": stepVolume,
  "volume.unbind": unbind,
  "volume.remove": removeVolume,
  "volume.backup": backup,
  "snapshot.done": (context, id) => context.store.run("UPDATE snapshots SET status = 'created' WHERE id = ?", id),
  "snapshot.expire": removeSnapshot,
  "certificate.issue": requestCertificate,
  "certificate.renew": renew,
  "certificate.expire": expired,
  // It has only kept the limits until now.
  "certificate.limit": () => {},
  "certificate.own": ownCertificateDue,
  "cluster.step": (context, id) => context.postgres.due?.("cluster.step", id),
  "cluster.measure": measure,
  "cluster.clear": clearCluster,
  "cluster.discard": (context, id) => context.store.onCommit(() => context.postgres.discard?.(id)),
  "backup.done": (context, id) => context.postgres.due?.("backup.done", id),
  "runtime.step": (context, id) => context.runtime.due?.("runtime.step", id),
  "runtime.exit": (context, id) => context.runtime.due?.("runtime.exit", id),
  "runtime.checks": (context, id) => context.runtime.due?.("runtime.checks", id),
};

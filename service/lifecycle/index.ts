// What each kind of timer does when its time has come.
import type { World } from "../world.ts";
import { issue, renew } from "./certificates.ts";
import { finishBackup, measure } from "./clusters.ts";
import { retry, scheduled } from "./machines.ts";
import { clearCluster, forgetMachine, removeApp } from "./removal.ts";
import type { TimerKind } from "./timers.ts";
import { backup, removeVolume, stepVolume, unbind } from "./volumes.ts";

/** Something that happens by itself to the thing with that identifier; one that is gone by then is passed over. */
export type Happening = (world: World, subject: string, data: string) => void;

/** Every kind of timer. */
export const happenings: Readonly<Record<TimerKind, Happening>> = {
  "app.remove": removeApp,
  "machine.retry": retry,
  "machine.schedule": scheduled,
  "machine.forget": forgetMachine,
  "volume.step": stepVolume,
  "volume.unbind": unbind,
  "volume.remove": removeVolume,
  "volume.backup": backup,
  "snapshot.done": (world, id) => world.store.run("UPDATE snapshots SET status = 'created' WHERE id = ?", id),
  "snapshot.expire": (world, id) => world.store.run("DELETE FROM snapshots WHERE id = ?", id),
  "certificate.issue": issue,
  "certificate.renew": renew,
  "cluster.step": (world, id) => world.postgres.due?.(id),
  "cluster.measure": measure,
  "cluster.clear": clearCluster,
  "backup.done": finishBackup,
  "runtime.step": (world, id) => world.runtime.due?.("runtime.step", id),
  "runtime.exit": (world, id) => world.runtime.due?.("runtime.exit", id),
  "runtime.checks": (world, id) => world.runtime.due?.("runtime.checks", id),
};

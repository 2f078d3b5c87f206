// What each kind of timer does when its time has come.
import type { MachineRow } from "../store/rows.ts";
import { touch, type World } from "../world.ts";
import { issue, renew } from "./certificates.ts";
import { finishBackup, measure } from "./clusters.ts";
import { retry, scheduled, subjectOf } from "./machines.ts";
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
  "backup.done": finishBackup,
  "runtime.step": (world, id) => world.runtime.due?.("runtime.step", id),
  "runtime.exit": (world, id) => world.runtime.due?.("runtime.exit", id),
  "runtime.checks": (world, id) => world.runtime.due?.("runtime.checks", id),
};

/** An App goes with everything in it (bodies 3). */
function removeApp(world: World, id: string): void {
  const { store } = world;
  for (const machine of store.all<MachineRow>("SELECT * FROM machines WHERE app = ? AND destroyed_at IS NULL", id))
    world.runtime.destroy(subjectOf(world, machine));
  // Those of its hostnames; '0' is what follows '/'.
  store.run("DELETE FROM timers WHERE subject > ?1 || '/' AND subject < ?1 || '0'", id);
  for (const table of ["machines", "volumes", "snapshots"]) {
    store.run(`DELETE FROM timers WHERE subject IN (SELECT id FROM ${table} WHERE app = ?)`, id);
  }
  const machines = store.all<{ id: string }>("SELECT id FROM machines WHERE app = ?", id);
  store.run("DELETE FROM apps WHERE id = ?", id);
  for (const machine of machines) touch(world, machine.id);
  touch(world, id);
}

function forgetMachine(world: World, id: string): void {
  world.store.run("DELETE FROM machines WHERE id = ?", id);
  touch(world, id);
}

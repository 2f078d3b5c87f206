// Lets the backups of a service begin, and commands ask for them.
import type { Backups } from "../backup/backups.ts";
import { BackupError } from "../backup/restic.ts";
import { addBackupRoute, type Done, type Task } from "../backup/route.ts";
import type { Service } from "../service.ts";
import { memberKeyOf } from "./commandStore.ts";
import type { Plan } from "./plan.ts";
import { Problem } from "./problem.ts";

/** Begins the backups of a service that does not listen yet. Throws a Problem if its options are wrong. */
export async function beginBackups(
  { folder, backups }: Pick<Plan, "folder" | "backups">,
  service: Service,
): Promise<void> {
  addBackupRoute(service.app, memberKeyOf(folder), (task) => act(backups, task));
  try {
    await backups.begin(service);
  } catch (error) {
    await service.close();
    throw error instanceof BackupError ? new Problem(error.message) : error;
  }
}

async function act(backups: Backups, task: Task): Promise<Done> {
  if (task.kind === "restore an App") {
    const { app, repository, kind: _, ...wanted } = task;
    return { kind: task.kind, restored: await backups.restoreApp(app, wanted, repository) };
  }
  return { kind: "back up", result: await backups.backUp(task.repository) };
}

// Lets the backups of a service begin, and commands ask for them.
import { problemOf } from "./backupProblem.ts";
import type { Backups } from "../backup/backups.ts";
import { addBackupRoute, type Done, type Task } from "../backup/route.ts";
import type { Service } from "../service.ts";
import { memberKeyOf } from "./commandStore.ts";
import type { Plan } from "./plan.ts";

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
    problemOf(error);
  }
}

async function act(backups: Backups, task: Task): Promise<Done> {
  if (task.kind === "restore an App") {
    const { app, repository, kind: _, ...wanted } = task;
    return { kind: task.kind, restored: await backups.restoreApp(app, wanted, repository) };
  }
  return { kind: "back up", result: await backups.backUp(task.repository) };
}

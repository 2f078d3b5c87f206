// What each role may do (docs/service.md#roles).
import { refuse } from "../refusal.ts";
import { hasRole, type Role } from "../store/roles.ts";
import type { Caller } from "./rule.ts";

/** Operations that use POST but only read. */
export const mayRead: ReadonlySet<string> = new Set(["platform.placements"]);

/** Operations that keep existing Machines running, by the role `operate` and by the console. */
export const operatesMachines = [
  "machines.start",
  "machines.stop",
  "machines.restart",
  "machines.suspend",
  "machines.cordon",
  "machines.uncordon",
  "machines.exec",
  "machines.signal",
] as const;

/**
 * ASSUMED: the role `operate` keeps what exists running: it starts and stops Machines, runs commands in them, takes leases, snapshots
 * and backups, and changes nothing that a program declares.
 */
const operations: ReadonlySet<string> = new Set([
  ...operatesMachines,
  "machines.acquireLease",
  "machines.releaseLease",
  "volumes.createSnapshot",
  "postgres.createBackup",
]);

/** The role that an operation needs which does not use GET. */
export const roleFor = (operation: string): Role =>
  mayRead.has(operation) ? "read" : operations.has(operation) ? "operate" : "deploy";

/** Refuses a caller without a role. */
export function requireRole({ role }: Pick<Caller, "role">, needed: Role): void {
  if (!hasRole(role, needed)) throw refuse(403, `unauthorized: this needs the role ${needed}, not ${role}`);
}

// What each role may do (docs/service.md#roles).
import { refuse } from "../refusal.ts";
import { hasRole, type Role } from "../store/roles.ts";
import type { Caller } from "./rule.ts";

/** Operations that use POST but only read. */
export const mayRead: ReadonlySet<string> = new Set(["platform.placements"]);

/**
 * ASSUMED: the role `operate` keeps what exists running: it starts and stops Machines, runs commands in them, takes leases, snapshots
 * and backups, and changes nothing that a program declares.
 */
const operations: ReadonlySet<string> = new Set([
  "machines.start",
  "machines.stop",
  "machines.restart",
  "machines.suspend",
  "machines.cordon",
  "machines.uncordon",
  "machines.exec",
  "machines.signal",
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

// The files that the process may open. Each connection takes one.
import { readFileSync } from "node:fs";

/** Files that the service needs for itself. */
export const reservedFiles = 256;

/** Number of files that the process may open, where the system reports it. */
function openFiles(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Number of files that the service may open for connections of all kinds. */
export const filesForConnections = (): number => openFiles() - reservedFiles;

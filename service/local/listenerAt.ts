// Which program listens at a port of this computer, as far as Linux lets this user see it.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The state of a socket that listens, in the tables of the kernel. */
const listens = "0A";

/** The program that listens at a port, as in `nginx (pid 812)`; undefined if it cannot be seen. */
export function listenerAt(port: number): string | undefined {
  const sockets = new Set(["tcp", "tcp6"].flatMap((table) => socketsAt(`/proc/net/${table}`, port)));
  if (sockets.size === 0) return undefined;
  for (const pid of entries("/proc").filter((name) => /^\d+$/.test(name)))
    for (const fd of entries(`/proc/${pid}/fd`)) {
      const inode = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`))?.[1];
      if (inode === undefined || !sockets.has(inode)) continue;
      const name = textOf(`/proc/${pid}/comm`)
        .trim()
        .replaceAll(/[^ -~]/g, "?");
      return `${name === "" ? "another program" : name} (pid ${pid})`;
    }
  return undefined;
}

/** The inodes of the sockets that listen at a port. */
function socketsAt(table: string, port: number): string[] {
  const end = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return textOf(table)
    .split("\n")
    .flatMap((line) => {
      const [, local = "", , state, , , , , , inode] = line.trim().split(/\s+/);
      return local.endsWith(end) && state === listens && inode !== undefined ? [inode] : [];
    });
}

/** Others' processes cannot be read, and each may end meanwhile. */
function tried<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

const entries = (folder: string): string[] => tried(() => readdirSync(folder), []);
const linkOf = (file: string): string => tried(() => readlinkSync(file), "");
const textOf = (file: string): string => tried(() => readFileSync(file, "utf8"), "");

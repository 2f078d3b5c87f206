// Which ports the programs of a container listen at, read from the kernel of this computer.
import { readFile } from "node:fs/promises";

/** A running container. */
export interface Running {
  /** Its id. */
  readonly container: string;
  /** Its process, as the engine numbers it. */
  readonly pid: number;
}

/** The state of a socket that listens. */
const listening = "0A";

/**
 * Whether a program of a container listens at a port, and not only for the container itself. Undefined if that cannot be seen: the
 * engine runs in a virtual machine or on another computer, or this one is no Linux.
 */
export async function listensIn({ container, pid }: Running, port: number): Promise<boolean | undefined> {
  try {
    // Of another computer, the number means nothing here.
    if (!(await readFile(`/proc/${pid}/cgroup`, "utf8")).includes(container)) return undefined;
    const tables = await Promise.all(["tcp", "tcp6"].map((table) => readFile(`/proc/${pid}/net/${table}`, "utf8")));
    return tables.some((table) => hasListener(table, port));
  } catch {
    return undefined;
  }
}

/** Whether a table has a socket that listens at a port. One at `::` takes IPv4 too, unless its program limits it to IPv6. */
export const hasListener = (table: string, port: number): boolean =>
  socketsIn(table).some((socket) => socket.state === listening && socket.port === port && !isLoopback(socket.address));

/** A socket of a table, with its own address and state as the kernel writes them. */
export interface Socket {
  readonly address: string;
  readonly port: number;
  readonly state: string;
}

/** The sockets of a table such as `/proc/net/tcp`. */
export const socketsIn = (table: string): readonly Socket[] =>
  table
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => {
      const [, local = "", , state = ""] = line.trim().split(/\s+/);
      const [address = "", port = ""] = local.split(":");
      return { address, port: Number.parseInt(port, 16), state };
    });

/** Addresses are hexadecimal, in the byte order of the computer for each four bytes. */
const isLoopback = (address: string): boolean =>
  /^(0{16}FFFF0000|)[0-9A-F]{6}7F$/.test(address) || address === "00000000000000000000000001000000";

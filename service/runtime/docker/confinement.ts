// What a container may do and use, so that a Machine cannot take the computer from the others.
import type Dockerode from "dockerode";

/**
 * The capabilities of every container. Official images begin as root, give their folders to another user and become that user
 * (nginx, postgres, redis, mariadb): CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID. The init process and supervisors send signals to
 * programs of other users: KILL. Web servers listen below port 1024: NET_BIND_SERVICE.
 */
const usualCapabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"];

/** The capabilities that an operator can add. Others, such as SYS_ADMIN, reach out of a container. */
export const furtherCapabilities: readonly string[] = [
  "AUDIT_WRITE",
  "FSETID",
  "IPC_LOCK",
  "MKNOD",
  "NET_ADMIN",
  "NET_RAW",
  "SETFCAP",
  "SETPCAP",
  "SYS_CHROOT",
  "SYS_NICE",
  "SYS_PTRACE",
];

// ASSUMED: a Machine has at most 2,048 processes and threads.
const mostProcesses = 2048;

/** ASSUMED: each process has at most 65,536 open files; where the engine may not have so many, 16,384 or as many as the engine. */
export const fileLimits: readonly number[] = [65_536, 16_384];

// ASSUMED: a Machine writes at most 10 GB outside of its volumes, if the engine can limit it.
const diskSize = "10G";

/** The limits that an engine can set. */
export interface EngineLimits {
  /** Whether it can limit what a container writes outside of volumes; true at most until it refuses to. */
  hasDiskLimit: boolean;
  /** How many files a process of a container may have open; undefined as many as the engine itself may. */
  mostFiles: number | undefined;
}

/** The limits of a Machine's container, with these capabilities in addition to the usual ones. */
export const confinement = (
  { hasDiskLimit, mostFiles }: EngineLimits,
  capabilities: readonly string[] = [],
): Partial<Dockerode.HostConfig> => ({
  CapDrop: ["ALL"],
  CapAdd: [...usualCapabilities, ...capabilities],
  SecurityOpt: ["no-new-privileges"],
  PidsLimit: mostProcesses,
  ...(mostFiles === undefined ? {} : { Ulimits: [{ Name: "nofile", Soft: mostFiles, Hard: mostFiles }] }),
  LogConfig: { Type: "json-file", Config: { "max-size": "10m", "max-file": "3" } },
  ...(hasDiskLimit ? { StorageOpt: { size: diskSize } } : {}),
});

/** What an engine says about where it keeps containers. */
export interface StorageInfo {
  readonly Driver?: string;
  readonly DriverStatus?: readonly (readonly [string, string])[] | null;
}

/**
 * Whether an engine may be able to limit what a container writes outside of volumes. With overlay2 on xfs, that also takes the mount
 * option `pquota`, which the engine tells only when it refuses a container.
 */
export function mayLimitDisk({ Driver = "", DriverStatus }: StorageInfo): boolean {
  if (Driver !== "overlay2") return ["btrfs", "zfs"].includes(Driver);
  return (DriverStatus ?? []).some(([name, value]) => name === "Backing Filesystem" && value === "xfs");
}

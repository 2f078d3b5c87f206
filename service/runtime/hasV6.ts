import { readFile } from "node:fs/promises";

/** Whether this computer speaks IPv6. */
export const hasV6 = async (): Promise<boolean> =>
  (await readFile("/proc/net/if_inet6", "utf8").catch(() => "")).trim() !== "";

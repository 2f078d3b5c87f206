// The memory limit of a running Machine, set with its balloon device (docs/interface.md#memory); every new version begins
// without one.
import { sizeOf, type MachineConfig } from "../../api/machineConfig.ts";
import type { Api } from "../client/api.ts";
import type { Machine, MachineKey } from "../client/machine.ts";
import { ApiError } from "../client/errors.ts";
import type { Problem } from "../core/resource.ts";

/** Sets the limit of a running Machine if it differs, and returns the Machine afterwards. */
export async function keepMemory(
  api: Api,
  key: MachineKey,
  live: Machine,
  limitMb: number | undefined,
): Promise<Machine> {
  if (limitMb === undefined || live.state !== "started") return live;
  const now = await api.machines.getMemory(key);
  if (now.limitMb === limitMb) return live;
  await api.machines.setMemory({ ...key, body: { limitMb } });
  return api.machines.get(key);
}

/** The limit of a Machine, read only if one was set; a Machine that does not run reports none. */
export async function memoryOf(
  api: Api,
  key: MachineKey,
  live: Machine,
  written: number | undefined,
): Promise<number | undefined> {
  if (written === undefined || live.state !== "started") return undefined;
  try {
    return (await api.machines.getMemory(key)).limitMb;
  } catch (error) {
    if (error instanceof ApiError && error.status === 412) return undefined;
    throw error;
  }
}

/** A limit above the memory that the configuration gives the Machine. */
export function memoryProblems(limitMb: number | undefined, config: MachineConfig): Problem[] {
  const own = sizeOf(config).memoryMb;
  const most = Math.max(own, config.guest?.max_memory_mb ?? own);
  return limitMb === undefined || limitMb <= most
    ? []
    : [
        {
          path: ["memoryLimitMb"],
          message: `got ${limitMb}; the Machine has ${own} MiB, so that ${most} is the most (config.guest.maxMemoryMb raises it)`,
        },
      ];
}

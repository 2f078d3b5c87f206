// The memory limit of a Machine.
import { sizeOf } from "../../api/machineConfig.ts";
import type { Memory, Subject } from "./runtime.ts";

/** The limit that applies, and how much it can still be raised. */
export function memoryLimit({ config, memoryLimitMb }: Subject): Memory {
  const configured = sizeOf(config).memoryMb;
  const limitMb = memoryLimitMb ?? configured;
  return { limitMb, availableMb: Math.max(configured, config.guest?.max_memory_mb ?? configured) - limitMb };
}

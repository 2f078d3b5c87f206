// How a Machine is stopped, by its configuration.
import type { MachineConfig } from "../../api/machineConfig.ts";
import { parseDuration } from "../../api/schema.ts";
import type { StopRequest } from "./runtime.ts";

/** The default way to stop a Machine (docs/interface.md#limits: five seconds, at most 300). */
export function stopRequest({ signal = "SIGINT", timeout }: MachineConfig["stop_config"] = {}): StopRequest {
  const lasts = timeout === undefined ? undefined : parseDuration(timeout);
  return { signal, timeoutMs: Math.min(lasts === undefined ? 5000 : lasts / 1e6, 300_000) };
}

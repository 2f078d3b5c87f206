// The environment of a Machine's processes.
import { sizeOf } from "../../api/machineConfig.ts";
import type { Subject } from "./runtime.ts";

/** The variables that the platform sets, then the App's secrets, then those of the configuration. */
export function environmentOf({
  app,
  id,
  region,
  privateIp,
  version,
  config,
  secrets,
}: Subject): Record<string, string> {
  return {
    FLY_APP_NAME: app,
    FLY_MACHINE_ID: id,
    FLY_ALLOC_ID: id,
    FLY_REGION: region,
    FLY_PRIVATE_IP: privateIp,
    FLY_MACHINE_VERSION: version,
    FLY_IMAGE_REF: config.image,
    FLY_VM_MEMORY_MB: String(sizeOf(config).memoryMb),
    ...secrets(),
    ...config.env,
  };
}

// The wire contract: every operation, by group.
import { apps } from "./apps.ts";
import { machines } from "./machines.ts";
import { platform } from "./platform.ts";
import { volumes } from "./volumes.ts";

/** Every operation of the interface, as `contract.group.method`. */
export const contract = { apps, machines, volumes, platform };

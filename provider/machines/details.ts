// A Machine in the answers of functions (docs/interface.md#machine).
import { z } from "zod";
import { machine, machineEvent } from "../../api/machines.ts";
import { named, optional, required } from "../../api/schema.ts";
import { versionOf, type Machine } from "../client/machine.ts";
import { config, fromService } from "./settings.ts";
import { camelObject } from "../shared/fields.ts";

const wire = camelObject(machine);

/** A Machine in the answers of functions. A lease's nonce is not part of it. */
export const machineDetails = z.object({
  id: required(z.string(), "Id of the Machine, `app/machineId`, as inputs and `pulumi import` take it."),
  app: required(z.string(), "App the Machine belongs to."),
  machineId: required(z.string(), "Identifier within the App; stable for life."),
  ...wire.pick({
    name: true,
    state: true,
    region: true,
    version: true,
    privateIp: true,
    cordoned: true,
    hostStatus: true,
    hostFeatures: true,
    createdAt: true,
    updatedAt: true,
  }).shape,
  config: optional(
    config,
    "The configuration, with the fields of a Machine's `config`; metadata keys of the platform and the provider are left out. It is absent while the host is not reachable.",
  ),
  imageRef: named("ImageDetails", wire.shape.imageRef),
  checks: named("CheckResult", wire.shape.checks),
  containers: named("ContainerDetails", wire.shape.containers),
});

/** Warns about plain text in a configuration that is read. */
export const clearValues =
  "Values of `env`, files and headers are returned as they are, and none is marked as secret. If they are secret, pass the answer through `pulumi.secret(…)`.";

/** The outputs of functions about a Machine. */
export const toMachineDetails = (app: string, live: Machine): z.output<typeof machineDetails> => ({
  id: `${app}/${live.id}`,
  app,
  machineId: live.id,
  name: live.name,
  state: live.state,
  region: live.region,
  version: versionOf(live),
  privateIp: live.privateIp,
  cordoned: live.cordoned,
  hostStatus: live.hostStatus,
  hostFeatures: live.hostFeatures,
  createdAt: live.createdAt,
  updatedAt: live.updatedAt,
  config: live.config && fromService(live.config, undefined),
  imageRef: live.imageRef,
  checks: live.checks,
  containers: live.containers,
});

/** An event of a Machine. */
export const machineEventDetails = named("MachineEventDetails", camelObject(machineEvent));

/** Metadata as programs see it, without the provider's own tags (R6). */
export const withoutTags = (metadata: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(metadata).filter(([key]) => !key.startsWith("pulumi-")));

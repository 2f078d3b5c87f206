// The functions about volumes.
import { z } from "zod";
import { orgs, orgVolume } from "../../api/orgs.ts";
import { named, optional, required } from "../../api/schema.ts";
import { volume, volumeSnapshot } from "../../api/volumes.ts";
import type { Volume } from "../client/listCache.ts";
import { everyOrgVolume } from "../client/pages.ts";
import { defineFunction, listFunction } from "../core/function.ts";
import { camelObject, commaSeparated, inApp, ofOrganization, ofVolume, withoutNull } from "../shared/fields.ts";

// docs/interface.md#volumes
const volumeDetails = z.object({
  id: required(z.string(), "Id of the volume, `app/volumeId`, as inputs and `pulumi import` take it."),
  app: required(z.string(), "App that owns the volume."),
  volumeId: required(z.string(), "Identifier within the App."),
  ...camelObject(volume).omit({ id: true }).shape,
  attachedMachineId: optional(z.string(), "Machine that mounts the volume, if any."),
  attachedAllocId: optional(z.string(), "Allocation that mounts the volume, if any."),
});

const toVolumeDetails = (app: string, { id, ...live }: Volume): z.output<typeof volumeDetails> => ({
  ...withoutNull(live),
  id: `${app}/${id}`,
  app,
  volumeId: id,
});

export const getVolume = defineFunction({
  name: "getVolume",
  summary: "Looks up a volume.",
  inputs: z.object(ofVolume),
  outputs: volumeDetails,
  call: async ({ inputs: { app, volume: volumeId }, api }) =>
    toVolumeDetails(app, await api.volumes.get({ appName: app, volumeId })),
});

export const getVolumes = listFunction({
  name: "getVolumes",
  summary: "Lists the volumes of an App.",
  inputs: inApp,
  items: ["volumes", "The volumes.", named("VolumeDetails", volumeDetails)],
  list: async ({ app }, api) => (await api.volumes.list({ appName: app })).map((live) => toVolumeDetails(app, live)),
});

// docs/interface.md#organization-lists
const { region, includeDeleted, updatedAfter } = camelObject(orgs.volumes.query).shape;

export const getOrgVolumes = listFunction({
  name: "getOrgVolumes",
  summary: "Lists the volumes of an organization, in the order of their last change, the oldest first.",
  description: "The list may be a few seconds old: volumes that were just created or deleted may be missing from it.",
  inputs: {
    ...ofOrganization,
    region,
    states: optional(
      z.array(z.string()),
      "Only volumes in one of these states, for example `created`; in any when left out.",
    ),
    includeDeleted,
    updatedAfter: optional(updatedAfter.unwrap(), "Only volumes that changed after this RFC 3339 time."),
  },
  items: [
    "volumes",
    "The volumes.",
    named("OrgVolumeDetails", volumeDetails.extend(camelObject(orgVolume).pick({ updatedAt: true }).shape)),
  ],
  async list({ organization, states, ...filters }, api) {
    const orgSlug = organization ?? api.config.organization;
    const found = await everyOrgVolume(api, { orgSlug, state: commaSeparated(states), ...filters });
    return found.map(({ appName, updatedAt, ...live }) => ({ ...toVolumeDetails(appName, live), updatedAt }));
  },
});

// docs/interface.md#snapshots
const snapshotDetails = z.object({
  id: optional(z.string(), "Id of the snapshot, `app/volumeId/snapshotId`, as `pulumi import` takes it."),
  snapshotId: optional(z.string(), "Identifier; a volume is restored from it."),
  ...camelObject(volumeSnapshot).omit({ id: true }).shape,
});

export const getVolumeSnapshots = listFunction({
  name: "getVolumeSnapshots",
  summary: "Lists the snapshots of a volume, also of a deleted one until they expire.",
  inputs: ofVolume,
  items: ["snapshots", "The snapshots.", named("VolumeSnapshotDetails", snapshotDetails)],
  list: async ({ app, volume: volumeId }, api) =>
    (await api.volumes.listSnapshots({ appName: app, volumeId })).map(({ id, ...live }) => ({
      ...live,
      ...(id === undefined ? {} : { id: `${app}/${volumeId}/${id}`, snapshotId: id }),
    })),
});

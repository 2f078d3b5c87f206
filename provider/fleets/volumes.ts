// The volumes of a fleet's Machines. Each is named after its Machine, so that a Machine that is created again under the same
// name mounts the same volume, and an interrupted run creates none twice.
import type { Api } from "../client/api.ts";
import { MachinesError } from "../client/errors.ts";
import type { Volume } from "../client/listCache.ts";
import { retryWhilePreconditionFails } from "../client/poll.ts";
import { isLeaving } from "../apps/app.ts";
import type { Call } from "../core/resource.ts";
import { begin, bringToSize } from "../volumes/steps.ts";
import type { FleetInputs } from "./inputs.ts";
import { fleetMachines, volumeOf } from "./members.ts";

type Wanted = NonNullable<FleetInputs["volume"]>;

/** Name of the volume of a Machine. Volumes have no hyphens in their names. */
export const volumeNameOf = (machine: string): string => machine.replaceAll("-", "_");

/** The size of a volume when none is given. */
const sizeOf = ({ sizeGb = 3 }: Wanted): number => sizeGb;

/** The volumes of an App that are not being deleted. */
export const volumesIn = async (api: Api, app: string): Promise<Volume[]> =>
  (await api.volumes.list({ appName: app })).filter(({ state }) => !isLeaving(state));

const namedFor = async ({ api }: Call, app: string, machine: string, region: string): Promise<Volume[]> =>
  (await volumesIn(api, app)).filter((one) => one.name === volumeNameOf(machine) && one.region === region);

/** Names of Machines that have or had the volumes. */
export const machinesOf = (volumes: readonly Volume[]): Set<string> =>
  new Set(volumes.map(({ name = "" }) => name.replaceAll("_", "-")));

/** A copy of a volume for a new Machine. `isBegun`: an interrupted run may have made it. */
export async function copyFor(
  call: Call,
  app: string,
  machine: string,
  region: string,
  { source, isBegun, wanted }: { source: string; isBegun: boolean; wanted: Wanted },
): Promise<string> {
  const known = isBegun ? await namedFor(call, app, machine, region) : [];
  const found = known.find(({ attachedMachineId }) => !attachedMachineId);
  const body = { name: volumeNameOf(machine), region, sourceVolumeId: source };
  const volume = found ?? (await begin(call, undefined, app, body));
  call.progress(`volume ${volume.id} of Machine ${machine} is a copy of ${source} from this moment`);
  return (await grow(call, app, volume, wanted)).id;
}

/** The volume for a new Machine: the one that an earlier Machine of the name had, or a new one. */
export async function volumeFor(
  call: Call,
  app: string,
  machine: string,
  region: string,
  wanted: Wanted,
): Promise<string> {
  const name = volumeNameOf(machine);
  const known = await namedFor(call, app, machine, region);
  const [found, ...more] = known.filter(({ attachedMachineId }) => !attachedMachineId);
  if (more.length > 0 || known.length > 1)
    throw new MachinesError(
      "ambiguous",
      `App ${app} has several volumes for Machine ${machine}: ${known.map(({ id }) => id).join(", ")}. Delete those without the wanted data, and run up again.`,
    );
  const { snapshotRetention, encrypted } = wanted;
  const body = { name, region, sizeGb: sizeOf(wanted), snapshotRetention, encrypted };
  const volume = found ?? (await begin(call, undefined, app, body));
  if (found) call.progress(`Machine ${machine} gets the volume ${found.id} again, with its data`);
  return (await grow(call, app, volume, wanted)).id;
}

/** Makes a volume as large as wanted, and waits until it can be used. It never shrinks. */
const grow = (call: Call, app: string, volume: Volume, wanted: Wanted): Promise<Volume> =>
  bringToSize(call, { appName: app, volumeId: volume.id }, volume, sizeOf(wanted), (needsRestart) => {
    if (needsRestart) call.warn(`volume ${app}/${volume.id} was enlarged; its Machine sees that after a restart`);
  });

/** Makes those of the volumes that the fleet's Machines mount as large as wanted. */
export async function growVolumes(
  call: Call,
  app: string,
  fleet: string,
  volumes: readonly Volume[],
  wanted: Wanted,
): Promise<void> {
  const mounted = new Set((await fleetMachines(call.api, app, fleet)).map(volumeOf));
  for (const volume of volumes)
    if (mounted.has(volume.id) && (volume.sizeGb ?? 0) < sizeOf(wanted)) await grow(call, app, volume, wanted);
}

/** After its Machine is gone: keeps the volume and says how to find it, or deletes it if that is wanted. */
export async function leaveVolume(
  call: Call,
  app: string,
  machine: string,
  volumeId: string,
  deleteVolumes: boolean,
): Promise<void> {
  if (deleteVolumes) {
    // The volume is detached a moment after its Machine is gone.
    await retryWhilePreconditionFails(call, "the volume to be detached", () =>
      call.api.volumes.delete({ appName: app, volumeId }),
    );
    return;
  }
  call.warn(
    `volume ${app}/${volumeId} of Machine ${machine} is kept with its data; a Machine ${machine} of the fleet mounts it again. ` +
      `To manage it: pulumi import machines:index:Volume ${volumeNameOf(machine)} ${app}/${volumeId}`,
  );
}

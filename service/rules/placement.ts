// Where a Machine may go and what it may mount: the conditions of docs/interface.md#refusals and
// docs/interface.md#machine-configuration that look beyond its own fields.
import { configProblems, sizeOf, type MachineConfig } from "../../api/machineConfig.ts";
import { changeVolume, findVolume } from "../lifecycle/volumes.ts";
import { isLeaving } from "../states/volumeStates.ts";
import { refuse, type Refusal } from "../refusal.ts";
import type { Region } from "../runtime/regions.ts";
import type { AppRow, MachineRow, VolumeRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import { spelledConfig } from "./machineAnswer.ts";
import { regionOf } from "./platform.ts";
import { capacityFor, capacityIn } from "./capacity.ts";

const longestConfig = 2 ** 20;
const longestMetadata = 65_536;

/** Metadata as the store has them; null for none. Refuses what is too long. */
export function metadataTextOf(metadata: Readonly<Record<string, string>>): string | null {
  const text = JSON.stringify(metadata);
  // ASSUMED: the metadata of a Machine may have 65,536 characters in all: it is in every answer that shows the Machine.
  if (text.length > longestMetadata)
    throw refuse(400, `invalid metadata, got ${text.length} characters in all, must be at most ${longestMetadata}`);
  return text === "{}" ? null : text;
}

/** A configuration taken apart for the store: what a version holds, and the metadata that changes without one. */
export interface Accepted {
  readonly config: MachineConfig;
  readonly configText: string;
  readonly metadataText: string | null;
  readonly noCapacity: boolean;
}

const pathText = (path: readonly (string | number)[]): string =>
  path.reduce<string>((text, part) => (typeof part === "number" ? `${text}[${part}]` : `${text}.${part}`), "config");

/** Refuses what the types of a configuration let through. */
export function accept(context: Context, sent: MachineConfig): Accepted {
  const [problem] = configProblems(sent);
  // The platform's own wording has no "got" (docs/interface.md#refusals).
  if (problem) throw refuse(400, `invalid ${pathText(problem.path)}, ${problem.message.replace(/^got [^;]*; /, "")}`);
  const unfit = context.runtime.problem(sent);
  if (unfit) throw refuse(400, `invalid ${unfit.field}, ${unfit.message}`);
  const { metadata, ...config } = spelledConfig(sent);
  const nonEmpty = Object.entries(metadata ?? {}).filter(([, value]) => value !== "");
  const configText = JSON.stringify(config);
  // ASSUMED: a configuration may have 1,048,576 characters as JSON, without its metadata: files are sent inside it, and it is
  // in every answer that shows the Machine.
  if (configText.length > longestConfig)
    throw refuse(400, `invalid config, got ${configText.length} characters, must be at most ${longestConfig}`);
  return {
    config,
    configText,
    metadataText: metadataTextOf(Object.fromEntries(nonEmpty)),
    noCapacity: !context.runtime.hasRoom(sent),
  };
}

/** Ids of the volumes a configuration mounts. */
export const mountedIn = (config: MachineConfig): string[] => (config.mounts ?? []).map(({ volume }) => volume);

/** The volumes a Machine is to mount; each must be the App's, free, and not on its way out. */
export function volumesFor(context: Context, app: AppRow, ids: readonly string[], machine?: MachineRow): VolumeRow[] {
  return ids.map((id) => {
    const volume = findVolume(context, id);
    if (!volume || volume.app !== app.id) throw refuse(404, `volume ${JSON.stringify(id)} not found`);
    if (volume.machine !== null && volume.machine !== machine?.id) {
      throw refuse(412, `failed_precondition: volume already claimed by machine ${volume.machine}`);
    }
    // ASSUMED: mounting a volume that is being destroyed is 412.
    if (isLeaving(volume.state)) throw refuse(412, `failed_precondition: volume ${id} is being destroyed`);
    return volume;
  });
}

/** The region for a Machine; that of its volume when none is named, and only that. */
export function placeFor(context: Context, asked: string | undefined, volumes: readonly VolumeRow[]): Region {
  const region = regionOf(context, asked ?? volumes[0]?.region);
  requireSameRegion(region.code, volumes);
  return region;
}

/** ASSUMED: mounting a volume of another region is 400; that it must be in the same region is known. */
export function requireSameRegion(region: string, volumes: readonly VolumeRow[]): void {
  for (const [i, volume] of volumes.entries()) {
    if (volume.region !== region) {
      throw refuse(
        400,
        `invalid config.mounts[${i}].volume, ${volume.id} is in region ${volume.region}, the machine in ${region}`,
      );
    }
  }
}

/** Refuses when no host can take one more Machine; the host of its volume is the only one that could. */
export function requireCapacity(
  context: Context,
  region: Region,
  { noCapacity, config }: Accepted,
  [volume]: readonly VolumeRow[],
): void {
  if (!noCapacity && capacityIn(context, region, sizeOf(config).kind) > 0) return;
  throw noHost(volume?.id);
}

/** No host takes a new Machine, or none that has its volume. */
export const noHost = (volume: string | undefined): Refusal =>
  volume === undefined
    ? refuse(422, "could not find a candidate host", "insufficient_capacity")
    : refuse(
        412,
        `insufficient resources to create new machine with existing volume '${volume}'`,
        "volume_placement_capacity",
      );

/** The host a Machine is on cannot give it what it now needs. */
export const noCapacityOnHost = (): Refusal =>
  refuse(
    409,
    "aborted: could not reserve resource for machine: insufficient memory available to fulfill request on the current host",
  );

/** Whether the region takes a Machine as it is to be; one that keeps its kind of CPU keeps its place. */
export function hasCapacityFor(context: Context, machine: MachineRow, { config }: Accepted): boolean {
  const { kind } = sizeOf(config);
  const region = context.regions.get(machine.region);
  return kind === machine.cpu_kind || region === undefined || capacityFor(context, region, kind) > 0;
}

/** Makes volumes the Machine's own and lets go of those it mounts no longer. */
export function attach(context: Context, machine: MachineRow, volumes: readonly VolumeRow[]): void {
  const before = context.store.all<VolumeRow>("SELECT * FROM volumes WHERE machine = ?", machine.id);
  for (const volume of before)
    if (!volumes.some(({ id }) => id === volume.id)) changeVolume(context, volume, { machine: null });
  for (const volume of volumes) {
    context.timers.cancel(volume.id, "volume.unbind");
    changeVolume(context, volume, { machine: machine.id });
  }
}

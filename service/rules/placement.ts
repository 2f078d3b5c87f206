// Checks the region, capacity and volumes of a Machine: the conditions of docs/interface.md#refusals and
// docs/interface.md#machine-configuration that involve other objects.
import { configProblems, sizeOf, type ConfigProblem, type MachineConfig } from "../../api/machineConfig.ts";
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

/** Metadata as stored; null for none. Refuses metadata that is too long. */
export function metadataTextOf(metadata: Readonly<Record<string, string>>): string | null {
  const text = JSON.stringify(metadata);
  // ASSUMED: the metadata of a Machine may have 65,536 characters in all, because every answer with the Machine contains it.
  if (text.length > longestMetadata)
    throw refuse(400, `invalid metadata, got ${text.length} characters in all, must be at most ${longestMetadata}`);
  return text === "{}" ? null : text;
}

/** A configuration prepared for the store; its metadata is separate, because it changes without a new version. */
export interface Accepted {
  readonly config: MachineConfig;
  readonly configText: string;
  readonly metadataText: string | null;
}

const pathText = ({ path, key }: ConfigProblem): string =>
  path.reduce<string>((text, part) => (typeof part === "number" ? `${text}[${part}]` : `${text}.${part}`), "config") +
  (key === undefined ? "" : `[${JSON.stringify(key.slice(0, 200))}]`);

/** Checks a configuration beyond its types. */
export function accept(context: Context, sent: MachineConfig): Accepted {
  const [problem] = configProblems(sent);
  // The platform's own wording has no "got" (docs/interface.md#refusals).
  if (problem) throw refuse(400, `invalid ${pathText(problem)}, ${problem.message.replace(/^got [^;]*; /, "")}`);
  const unfit = context.runtime.problem(sent);
  if (unfit) throw refuse(400, `invalid ${unfit.field}, ${unfit.message}`);
  const { metadata, ...config } = spelledConfig(sent);
  const nonEmpty = Object.entries(metadata ?? {}).filter(([, value]) => value !== "");
  const configText = JSON.stringify(config);
  // ASSUMED: a configuration may have 1,048,576 characters as JSON, without its metadata: it contains files, and every answer with
  // the Machine contains it.
  if (configText.length > longestConfig)
    throw refuse(400, `invalid config, got ${configText.length} characters, must be at most ${longestConfig}`);
  return {
    config,
    configText,
    metadataText: metadataTextOf(Object.fromEntries(nonEmpty)),
  };
}

/** Ids of the volumes that a configuration mounts. */
export const mountedIn = (config: MachineConfig): string[] => (config.mounts ?? []).map(({ volume }) => volume);

/** The volumes for a Machine; each must belong to the App, be free, and not be under deletion. */
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

/** The region for a Machine; it must be the one of its volume. */
export function placeFor(context: Context, asked: string | undefined, volumes: readonly VolumeRow[]): Region {
  const region = regionOf(context, asked ?? volumes[0]?.region);
  requireSameRegion(region.code, volumes);
  return region;
}

/** ASSUMED: mounting a volume of another region is 400; only the condition itself is known. */
export function requireSameRegion(region: string, volumes: readonly VolumeRow[]): void {
  for (const [i, volume] of volumes.entries()) {
    if (volume.region !== region) {
      throw refuse(
        400,
        `invalid config.mounts[${i}].volume, got ${JSON.stringify(volume.id)}, which is in region ${volume.region}, must be a volume in the machine's region ${region}`,
      );
    }
  }
}

/** Refuses a Machine if no host has capacity; with a volume, only the host of the volume counts. */
export function requireCapacity(
  context: Context,
  region: Region,
  { config }: Accepted,
  [volume]: readonly VolumeRow[],
): void {
  if (context.runtime.hasRoom?.(config, region.code) !== false && capacityIn(context, region, sizeOf(config).kind) > 0)
    return;
  throw noHost(volume?.id);
}

/** No host has capacity for a new Machine, or not the one with its volume. */
export const noHost = (volume: string | undefined): Refusal =>
  volume === undefined
    ? refuse(422, "could not find a candidate host", "insufficient_capacity")
    : refuse(
        412,
        `insufficient resources to create new machine with existing volume '${volume}'`,
        "volume_placement_capacity",
      );

/** No host has capacity for a new volume. */
export const noVolumeHost = (): Refusal => refuse(409, "aborted: no capacity");

/** The host of a Machine has no capacity for its new size. */
export const noCapacityOnHost = (): Refusal =>
  refuse(
    409,
    "aborted: could not reserve resource for machine: insufficient memory available to fulfill request on the current host",
  );

/** Whether the region has capacity for the new size of a Machine; with the same kind of CPU it keeps its place. */
export function hasCapacityFor(context: Context, machine: MachineRow, { config }: Accepted): boolean {
  const { kind } = sizeOf(config);
  if (context.runtime.hasRoom?.(config, machine.region, machine.id) === false) return false;
  const region = context.regions.get(machine.region);
  return kind === machine.cpu_kind || region === undefined || capacityFor(context, region, kind) > 0;
}

/** Attaches volumes to a Machine. Those that it no longer mounts are released later (lifecycle/machines.ts). */
export function attach(context: Context, machine: MachineRow, volumes: readonly VolumeRow[]): void {
  for (const volume of volumes) {
    context.timers.cancel(volume.id, "volume.unbind");
    changeVolume(context, volume, { machine: machine.id });
  }
}

// The states of a volume as data (docs/interface.md#volume-states).

/** The states of volumes in this service. A volume that is `gone` has no row. */
export const volumeStates = [
  "creating",
  "restoring",
  "enabling_remote_export",
  "hydrating",
  "created",
  "extending",
  "scheduling_destroy",
  "pending_destroy",
] as const;

/** A state of a volume. */
export type VolumeState = (typeof volumeStates)[number];

/** The source of a new volume's contents. */
export type VolumeOrigin = "empty" | "snapshot" | "fork";

/** States a new volume goes through, in order. */
export const volumePaths: Readonly<Record<VolumeOrigin, readonly VolumeState[]>> = {
  empty: ["creating", "created"],
  snapshot: ["creating", "restoring", "created"],
  fork: ["creating", "enabling_remote_export", "hydrating", "created"],
};

/** Paths of later operations. */
export const extendPath: readonly VolumeState[] = ["extending", "created"];
/** After `pending_destroy` it is kept for a day (time/delays.ts) and then removed. */
export const deletePath: readonly VolumeState[] = ["scheduling_destroy", "pending_destroy"];

/** Whether a volume is being deleted. */
export const isLeaving = (state: VolumeState): boolean => deletePath.includes(state);

// The life of a volume as data (docs/interface.md#volume-states).

/** States a volume of this service is ever in; `gone` is left out because its row goes with it. */
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

/** Where a new volume's contents come from. */
export type VolumeOrigin = "empty" | "snapshot" | "fork";

/** States a new volume goes through, in order. */
export const volumePaths: Readonly<Record<VolumeOrigin, readonly VolumeState[]>> = {
  empty: ["creating", "created"],
  snapshot: ["creating", "restoring", "created"],
  fork: ["creating", "enabling_remote_export", "hydrating", "created"],
};

/** Paths of what is done to a volume later. */
export const extendPath: readonly VolumeState[] = ["extending", "created"];
/** After `pending_destroy` it is kept for a day (time/delays.ts), then gone. */
export const deletePath: readonly VolumeState[] = ["scheduling_destroy", "pending_destroy"];

/** Whether a volume is on its way out. */
export const isLeaving = (state: VolumeState): boolean => deletePath.includes(state);

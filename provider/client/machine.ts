// A Machine as the service shows it.
import type { AnswerOf } from "./api.ts";

/** A Machine as programs see it. */
export type Machine = AnswerOf<"machines", "get">;

/** The version of a Machine's configuration, under either of its names (docs/interface.md#versions). */
export const versionOf = (machine: Machine): string | undefined => machine.version ?? machine.instanceId;

/** Whether the service shows a Machine that it has destroyed, or is destroying. */
export const isDestroyed = ({ state }: Pick<Machine, "state">): boolean =>
  state === "destroyed" || state === "destroying";

/** One Machine. */
export interface MachineKey {
  readonly appName: string;
  readonly machineId: string;
}

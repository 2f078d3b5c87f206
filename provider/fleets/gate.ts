// The gate of a rollout with `promote: "manual"`, and the configuration that a rollback returns to. A gate is passed for one
// configuration: what an earlier rollout left in the program or in the state passes no later one.
import { equal } from "../core/values.ts";
import type { Config } from "../machines/settings.ts";
import type { FleetInputs } from "./inputs.ts";

/** What the state holds of the last update. */
export type Past = Partial<FleetInputs> & {
  readonly rollout?: string | undefined;
  readonly committed?: Config | undefined;
  readonly gatePassed?: boolean | undefined;
  readonly machines?: readonly unknown[] | undefined;
};

/**
 * The last configuration that a rollout has brought to all Machines. Without a Machine, a rollout is complete and has run nothing. In
 * a state with `committed`, `config` is another one: it did not reach all Machines, or others have set it.
 */
export const committedOf = ({ rollout, config, committed, machines = [] }: Past): Config | undefined =>
  committed ?? (rollout === "complete" && machines.length > 0 ? config : undefined);

/** Whether a rollout waits for its promotion. */
export const isWaiting = ({ rollout }: Pick<Past, "rollout">): boolean => rollout === "canary" || rollout === "green";

/** Whether two updates want the same version of the Machines. */
const isSame = (one: Partial<FleetInputs>, other: Partial<FleetInputs>): boolean =>
  equal(one.config, other.config) &&
  one.minSecretsVersion === other.minSecretsVersion &&
  one.volume?.path === other.volume?.path;

/** Whether an update promotes the configuration that waits: `promoted` became true since it was deployed. */
const promotes = (old: Past, next: Partial<FleetInputs>): boolean =>
  isWaiting(old) && isSame(old, next) && next.promoted === true && old.promoted !== true;

/** Whether all Machines have run a configuration already, so that it needs no gate: a repair, or the way back. */
function isProven(old: Past, next: Partial<FleetInputs>): boolean {
  if (old.rollout === "complete") return isSame(old, next) && committedOf(old) !== undefined;
  const { minSecretsVersion: before = 0 } = old;
  const { minSecretsVersion: now = 0 } = next;
  return !isSame(old, next) && now <= before && next.config !== undefined && equal(committedOf(old), next.config);
}

/** How an update meets its gate. `open`: there is none, or none for this configuration. */
export function gateOf(old: Past | undefined, next: Partial<FleetInputs>): "open" | "passed" | "closed" {
  if (next.strategy?.promote !== "manual") return "open";
  if (old === undefined) return "closed";
  if (isProven(old, next)) return "open";
  return promotes(old, next) || (old.gatePassed === true && isSame(old, next)) ? "passed" : "closed";
}

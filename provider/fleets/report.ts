// Reports the course of a rollout to a service that shows rollouts.
import type { RolloutReport } from "../client/rollouts.ts";
import { reasonOf, RolloutFailure } from "./messages.ts";
import type { Rollout } from "./members.ts";

/** Characters of a reason. */
const longestReason = 4000;

/** A rollout, as its report needs it. */
type Reported = Pick<Rollout, "call" | "fleet" | "wanted" | "committed" | "before">;

/** What is reported of one rollout, from its first step to its end. */
export class Report {
  readonly #rollout: Reported;
  #phase: RolloutReport["phase"] | undefined;

  constructor(rollout: Reported) {
    this.#rollout = rollout;
  }

  /** A step begins: the first one, or the first of the way back. A rollout without steps is none. */
  goesOn(isBack: boolean): void {
    const phase = isBack ? "rolling back" : "rolling out";
    if (this.#phase === phase) return;
    this.#phase = phase;
    void this.#send({});
  }

  /** It has ended. Returns once the service knows, or does not answer. */
  async ends(result: NonNullable<RolloutReport["result"]>, reason?: unknown): Promise<void> {
    if (this.#phase === undefined) return;
    const said =
      reason instanceof RolloutFailure
        ? reason.reason
        : reason === undefined
          ? ""
          : typeof reason === "string"
            ? reason
            : reasonOf(reason);
    await this.#send({ result, ...(said === "" ? {} : { reason: said }) });
  }

  async #send({ result, reason }: Pick<RolloutReport, "result" | "reason">): Promise<void> {
    const { call, fleet, wanted, committed, before } = this.#rollout;
    // Only a binding knows which values of its program are secret.
    const hide = call.hideSecrets;
    if (!hide) return;
    await call.api.reportRollout({
      ...{ app: fleet.app, fleet: fleet.name, strategy: wanted.strategy?.type ?? "rolling" },
      from: hide((committed ?? before)?.image ?? "") || null,
      to: hide(wanted.config?.image ?? ""),
      phase: this.#phase ?? "rolling out",
      ...(result === undefined ? {} : { result }),
      ...(reason === undefined ? {} : { reason: hide(reason).slice(0, longestReason) }),
    });
  }
}

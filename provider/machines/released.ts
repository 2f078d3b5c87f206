// Waits for a name or a volume that another Machine still has for a moment (docs/interface.md#refusals).
import { ApiError } from "../client/errors.ts";
import { orUndefined } from "../client/existence.ts";
import { Pending, retryWhile } from "../client/poll.ts";
import type { Call } from "../core/resource.ts";
import { isDestroyed } from "../client/machine.ts";

/** Retries while the service refuses a name or a volume whose Machine is deleted, or a volume whose Machine is being updated without it. */
export const retryWhileReleased = <T>(
  call: Pick<Call, "api" | "progress">,
  appName: string,
  send: () => Promise<T>,
): Promise<T> =>
  retryWhile(call, send, async (error) => {
    const machineId = holderOf(error);
    if (machineId === undefined) return undefined;
    const holder = await orUndefined(() => call.api.machines.get({ appName, machineId }));
    const isUpdated = holder?.state === "replacing";
    if (holder !== undefined && !isDestroyed(holder) && !isUpdated) return undefined;
    return new Pending(
      `waiting for the name or the volume of Machine ${machineId}, which is ${isUpdated ? "updated" : "deleted"}`,
      () => error as Error,
    );
  });

/** The Machine that has the name, or mounts the volume, for which a request was refused. */
export const holderOf = (error: unknown): string | undefined =>
  error instanceof ApiError && [409, 412].includes(error.status)
    ? /(?:volume already claimed by machine|unique machine name violation, machine ID) (\w+)/.exec(error.reason)?.[1]
    : undefined;

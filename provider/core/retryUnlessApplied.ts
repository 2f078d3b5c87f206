// Retries a change only if it was not applied. After a lost answer, a read decides that. Every create and change that the
// service would repeat is sent by this loop.
import { ApiError, isAmbiguous, MachinesError } from "../client/errors.ts";
import type { Api } from "../client/api.ts";
import { growingPause } from "../../api/growingPause.ts";

const attempts = 3;

/** A change, and a read that verifies it. */
export interface VerifiableRequest<T> {
  /** Sends the change. It returns undefined if the answer does not have the result. */
  readonly send: () => Promise<T | undefined>;
  /** The result of the change; undefined while it is not applied. `isLast`: the request is not sent again. */
  readonly look: (isLast: boolean) => Promise<T | undefined>;
  /** Failures after which the change may have been applied; by default the ambiguous ones. */
  readonly isUncertain?: ((error: unknown) => boolean) | undefined;
  /** Refusals of a repeated request that may mean that an earlier one was applied; by default all. */
  readonly isDuplicate?: (error: unknown) => boolean;
  /** Called when the first request is refused, so that certainly nothing was applied. */
  readonly refused?: () => void;
  /** The error if the service reports success and the change does not become visible. */
  readonly invisible?: () => Error;
}

/** Sends the change, and sends it again only after a read that does not show it (F19). */
export async function retryUnlessApplied<T>(
  api: Api,
  {
    send,
    look,
    isUncertain = isAmbiguous,
    isDuplicate = (error) => error instanceof ApiError,
    refused,
    invisible = () => new MachinesError("api", "the service reports success, but the result is not visible"),
  }: VerifiableRequest<T>,
): Promise<T> {
  const pause = growingPause(100, 2000);
  for (let attempt = 1; ; attempt++) {
    let failure: Error | undefined;
    try {
      const result = await send();
      if (result !== undefined) return result;
    } catch (error) {
      if (!isUncertain(error) && !(attempt > 1 && isDuplicate(error))) {
        if (attempt === 1) refused?.();
        throw error;
      }
      failure = error as Error;
      await api.clock.sleep(pause(), api.deadline.signal);
    }
    const isLast = failure === undefined || !isUncertain(failure) || attempt === attempts;
    const result = await look(isLast);
    if (result !== undefined) return result;
    if (isLast) throw failure ?? invisible();
  }
}

// Retries a change only if it was not applied. After a lost answer, a read decides that.
import { ApiError, isAmbiguous } from "../client/errors.ts";
import type { Api } from "../client/api.ts";
import { growingPause } from "../client/clock.ts";

const attempts = 3;

/** A change, and a read that verifies it. */
export interface VerifiableRequest<T> {
  readonly send: () => Promise<T>;
  /** The result of the change; undefined while it is not applied. */
  readonly look: () => Promise<T | undefined>;
}

/** Sends the change, and sends it again only after a read that does not show it (F19). */
export async function retryUnlessApplied<T>(api: Api, { send, look }: VerifiableRequest<T>): Promise<T> {
  const pause = growingPause(100, 2000);
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      // A second request is refused if the first one was applied after all.
      const refusedAsDouble = attempt > 1 && error instanceof ApiError;
      if (!isAmbiguous(error) && !refusedAsDouble) throw error;
      await api.clock.sleep(pause(), api.deadline.signal);
      const made = await look();
      if (made !== undefined) return made;
      if (!isAmbiguous(error) || attempt === attempts) throw error;
    }
  }
}

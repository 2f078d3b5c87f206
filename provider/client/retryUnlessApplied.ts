// Changes that are never sent a second time blindly: when an answer is lost, a look tells whether the change was made.
import { ApiError, isAmbiguous } from "../core/errors.ts";
import type { Api } from "./api.ts";
import { growingPause } from "./clock.ts";

const attempts = 3;

/** A change, and how to tell that it was made. */
export interface VerifiableRequest<T> {
  readonly send: () => Promise<T>;
  /** What the change has come to; undefined while it is not made. */
  readonly look: () => Promise<T | undefined>;
}

/** Makes the change, and sends it again only after a look that does not show it (F19). */
export async function retryUnlessApplied<T>(api: Api, { send, look }: VerifiableRequest<T>): Promise<T> {
  const pause = growingPause(100, 2000);
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      // A second request is refused when the first one was applied after all.
      const refusedAsDouble = attempt > 1 && error instanceof ApiError;
      if (!isAmbiguous(error) && !refusedAsDouble) throw error;
      await api.clock.sleep(pause(), api.deadline.signal);
      const made = await look();
      if (made !== undefined) return made;
      if (!isAmbiguous(error) || attempt === attempts) throw error;
    }
  }
}

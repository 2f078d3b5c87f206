// Waits that ask again and again: until something is visible, or until the service no longer refuses.
import { ApiError } from "./errors.ts";
import type { Api } from "./api.ts";
import { everyTenSeconds, growingPause } from "./clock.ts";

/** Milliseconds within which a new object is visible in every list (docs/interface.md#organization-lists). */
export const consistencyWindow = 10_000;

/** Milliseconds. The last try is early enough for its answer to be the reported reason. */
const longestPause = 1000;

/** Looks until `look` finds something, or the time or the operation's deadline is over. It looks at least once. */
export async function pollUntil<T>(api: Api, at: number, look: () => Promise<T | undefined>): Promise<T | undefined> {
  const until = Math.min(api.deadline.at, at);
  const pause = growingPause(100, 2000);
  for (;;) {
    const found = await look();
    if (found !== undefined || api.clock.now() >= until) return found;
    await api.clock.sleep(pause(), api.deadline.signal);
  }
}

/**
 * Sends a request again while the service refuses it with a 412 (docs/interface.md#refusals). After the deadline, the
 * refusal is the error.
 */
export async function retryWhilePreconditionFails<T>(
  { api, progress }: { readonly api: Api; readonly progress: (message: string) => void },
  awaited: string,
  send: () => Promise<T>,
): Promise<T> {
  const say = everyTenSeconds(api.clock, progress);
  const pause = growingPause(100, longestPause);
  for (;;) {
    try {
      return await send();
    } catch (error) {
      const early = error instanceof ApiError && error.status === 412;
      if (!early || api.clock.now() + longestPause >= api.deadline.at) throw error;
      say(`waiting for ${awaited}: ${error.reason}`);
      await api.clock.sleep(pause(), api.deadline.signal);
    }
  }
}

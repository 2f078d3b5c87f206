// What the service refuses with a 412 until something else is done (bodies 1.2).
import { ApiError } from "../core/errors.ts";
import type { Api } from "./api.ts";
import { everyTenSeconds, growingPause } from "./clock.ts";

/** Milliseconds; the last try is early enough for its answer to be the reason that is told. */
const longestPause = 1000;

/** Sends a request again while it is refused with a 412, until the deadline; then the refusal is the error. */
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

// What was just made may show up a little late (spec 4.6 rule 2).
import type { Api } from "./api.ts";
import { growingPause } from "./clock.ts";

/** Milliseconds. */
export const consistencyWindow = 10_000;

/** Looks until something shows, or the time or the operation's deadline has come; once in any case. */
export async function pollUntil<T>(api: Api, at: number, look: () => Promise<T | undefined>): Promise<T | undefined> {
  const until = Math.min(api.deadline.at, at);
  const pause = growingPause(100, 2000);
  for (;;) {
    const found = await look();
    if (found !== undefined || api.clock.now() >= until) return found;
    await api.clock.sleep(pause(), api.deadline.signal);
  }
}

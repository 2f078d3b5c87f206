// Repeats a request to the log, whose database may restart or fail over at any time.
import { setTimeout as sleep } from "node:timers/promises";
import { LogUnavailable } from "./log.ts";
import { usualTiming } from "./member.ts";

/** The answer to a request, which is repeated while the log does not answer. */
export async function untilAnswered<T>(request: () => Promise<T>): Promise<T> {
  for (;;)
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof LogUnavailable)) throw error;
      await sleep(usualTiming.retryMs);
    }
}

// The host of dynamic providers does not end with its engine. Once that was killed, it would wait for ever, or write to the closed
// standard error without pause, because the failure of each write is written, too.
import { exitAfterWork, whenEngineEnds } from "../core/engineEnd.ts";

const ended = new AbortController();
let isWatching = false;

/** Aborts when the engine has ended. */
export const engineEnded: AbortSignal = ended.signal;

/** Ends this process with its engine. */
export function endWithTheEngine(): void {
  if (isWatching) return;
  isWatching = true;
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  whenEngineEnds(() => {
    ended.abort();
    exitAfterWork(1);
  });
}

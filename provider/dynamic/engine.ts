// The host of dynamic providers does not end with its engine. Once that was killed, it would wait for ever, or write to the closed
// standard error without pause, because the failure of each write is written, too.
import { grace, whenEngineEnds } from "../core/engineEnd.ts";

const ended = new AbortController();
const working = new Set<Promise<unknown>>();
let isWatching = false;

/** Aborts when the engine has ended. */
export const engineEnded: AbortSignal = ended.signal;

/** Does some work, which may finish, as after a cancellation, before this process ends. */
export function tracked<T>(work: Promise<T>): Promise<T> {
  const settled = work.then(
    () => undefined,
    () => undefined,
  );
  working.add(settled);
  void settled.then(() => working.delete(settled));
  return work;
}

/** Ends this process with its engine. */
export function endWithTheEngine(): void {
  if (isWatching) return;
  isWatching = true;
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  whenEngineEnds(() => {
    ended.abort();
    setTimeout(() => process.exit(1), grace).unref();
    void Promise.all(working).then(() => process.exit(1));
  });
}

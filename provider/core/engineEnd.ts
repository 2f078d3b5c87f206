// Ends this process with its engine: one that was killed ends nothing, and nobody would save what this process answers.

/**
 * Milliseconds that work in progress has to finish after the process is asked to end; the engine kills it after five
 * seconds.
 */
export const grace = 4000;

/** Calls back once when the engine has ended, which started this process. */
export function whenEngineEnds(end: () => void): void {
  const engine = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === engine) return;
    clearInterval(timer);
    end();
  }, 1000).unref();
}

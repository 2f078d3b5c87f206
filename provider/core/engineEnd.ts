// Ends this process with its engine: one that was killed ends nothing, and nothing saves what this process answers.

/**
 * Milliseconds that work in progress has to finish after the process is asked to end; the engine kills it after five
 * seconds.
 */
const grace = 4000;

const working = new Set<Promise<unknown>>();

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

/** Exits with a code after the work in progress and one last step, or when they take too long. */
export function exitAfterWork(code: number, last: () => Promise<void> = async () => {}): void {
  const exit = (): never => process.exit(code);
  setTimeout(exit, grace).unref();
  void Promise.all(working).then(last).finally(exit);
}

/** Calls back once when the engine has ended, which started this process. */
export function whenEngineEnds(end: () => void): void {
  const engine = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === engine) return;
    clearInterval(timer);
    end();
  }, 1000).unref();
}

// The pauses of everything that tries again.

/**
 * Milliseconds before each attempt: `first`, then `factor` times as long each time, up to `longest`. Begin a new one after a
 * success.
 */
export function growingPause(first: number, longest: number, factor = 2): () => number {
  let next = first;
  return () => {
    const pause = next;
    next = Math.min(longest, next * factor);
    return pause;
  };
}

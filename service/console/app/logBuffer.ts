// The lines on the page, in bounds: those that are shown, and those that wait while the reader has paused.

/** What a buffer holds. */
export interface Buffer<T> {
  readonly shown: readonly T[];
  /** While paused; undefined if new lines are shown. */
  readonly waiting: readonly T[] | undefined;
  /** Number of waiting lines that were given up because too many wait. */
  readonly lost: number;
}

/** Nothing yet. */
export const empty: Buffer<never> = { shown: [], waiting: undefined, lost: 0 };

const last = <T>(all: readonly T[], most: number): readonly T[] => (all.length > most ? all.slice(-most) : all);

/** Adds lines; the oldest are given up when there are more than `most`. */
export function added<T>(buffer: Buffer<T>, more: readonly T[], most: number): Buffer<T> {
  if (buffer.waiting === undefined) return { ...buffer, shown: last([...buffer.shown, ...more], most) };
  const waiting = [...buffer.waiting, ...more];
  return { ...buffer, waiting: last(waiting, most), lost: buffer.lost + Math.max(0, waiting.length - most) };
}

/** From now on, new lines wait. */
export const paused = <T>(buffer: Buffer<T>): Buffer<T> => ({ ...buffer, waiting: buffer.waiting ?? [] });

/** Shows the lines that wait, and those that come. */
export const resumed = <T>({ shown, waiting = [] }: Buffer<T>, most: number): Buffer<T> => ({
  shown: last([...shown, ...waiting], most),
  waiting: undefined,
  lost: 0,
});

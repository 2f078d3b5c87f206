// Work on many things that neither the service nor this computer gets all at once.

/** Does something to all, `count` at a time. */
export async function fewAtATime<T>(
  count: number,
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = [...items];
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: count }, worker));
}

// Work on many things that neither the service nor this computer gets all at once.

const atATime = 4;

/** Does something to all, a few at a time. */
export async function fourAtATime<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: atATime }, worker));
}

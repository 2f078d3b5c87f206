// Ends what a test has started, in any file. Modules are loaded once for many files, so a hook in one of them would apply
// only to the first file; the hook is in newRun.ts, which every file runs.

const ends: (() => void | Promise<void>)[] = [];

/** Registers an action for the end of the current test. */
export const afterThisTest = (end: () => void | Promise<void>): void => void ends.push(end);

const endsOfFile: typeof ends = [];

/** Begins something once for the tests of a file, which leave it as it was; what it registers for the end is done after the file. */
export function onceInFile<T>(begin: () => Promise<T>): () => Promise<T> {
  let begun: Promise<T> | undefined;
  return async () => {
    if (begun) return begun;
    const ofTest = ends.splice(0);
    begun = begin();
    try {
      return await begun;
    } finally {
      endsOfFile.push(...ends.splice(0));
      ends.push(...ofTest);
    }
  };
}

/** Runs the actions for the end of a file. */
export async function endFile(): Promise<void> {
  for (const end of endsOfFile.splice(0).toReversed()) await end();
}

/** Runs all actions, the last registered first. */
export async function endLeftovers(): Promise<void> {
  for (const end of ends.splice(0).toReversed()) await end();
}

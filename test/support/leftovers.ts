// Ends what a test has started, in any file. Modules are loaded once for many files, so a hook in one of them would apply
// only to the first file; the hook is in newRun.ts, which every file runs.

const ends: (() => void | Promise<void>)[] = [];

/** Registers an action for the end of the current test. */
export const afterThisTest = (end: () => void | Promise<void>): void => void ends.push(end);

/** Runs all actions, the last registered first. */
export async function endLeftovers(): Promise<void> {
  for (const end of ends.splice(0).toReversed()) await end();
}

// What a test starts is ended after it, in whichever file it is. Modules are loaded once for many files, so that a hook in one
// of them would hold for the first file alone: the hook is in newRun.ts, which every file runs.

const ends: (() => void | Promise<void>)[] = [];

/** Has something done after the test that runs. */
export const afterThisTest = (end: () => void | Promise<void>): void => void ends.push(end);

/** Does all of it: what was started last ends first. */
export async function endLeftovers(): Promise<void> {
  for (const end of ends.splice(0).toReversed()) await end();
}

// How long tests wait before they take something to hang. A computer that is busy with other things is no reason to fail:
// a limit is only there so that a run ends in which something never comes.

/** Milliseconds in which whatever one step of a test waits for comes. */
export const hang = 3 * 60_000;

/** Milliseconds in which a test or a hook ends: longer, so that it is told which step hung. */
export const wholeTest = 3 * hang;

/** The same for one that runs the Pulumi CLI many times. */
export const wholeRun = 10 * hang;

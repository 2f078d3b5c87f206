// Timeouts of tests. A busy computer must not cause failures, so a limit only ends a run that would wait for ever.

/** The timeout in milliseconds of one wait within a test. */
export const hang = 3 * 60_000;

/** The timeout in milliseconds of a test or a hook: longer, so that the error shows which wait failed. */
export const wholeTest = 3 * hang;

/** The same for a test that runs the Pulumi CLI many times. */
export const wholeRun = 10 * hang;

// The outcome of a command, as a shell would report it.
import type { Outcome } from "./runtime.ts";

/** The outcome of a command that has exited. */
export const outcomeOf = (stdout: string, stderr: string, code: number): Outcome => ({
  ...{ stdout, stderr, exitCode: code },
  exitSignal: code > 128 ? code - 128 : 0,
});

/**
 * The outcome of a command that could not be started.
 * ASSUMED: as in a shell, 127 says that there is no such command, and 126 that it cannot be executed. Engines differ in the code.
 */
export const notExecuted = (reason: string): Outcome =>
  outcomeOf("", `${reason}\n`, /not found|no such file/.test(reason) ? 127 : 126);

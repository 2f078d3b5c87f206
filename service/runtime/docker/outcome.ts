// The outcome of a command, as a shell would report it.
import type { Outcome } from "../runtime.ts";

/** What an engine writes to the output of a command that it could not start. */
const failure =
  /^OCI runtime exec failed: (?:exec failed: )?(?:unable to start container process: )?(.+?)(?:: unknown)?\s*$/;
const absent = /not found|no such file/;

/** The outcome of a command that has exited, by its output and its exit code. */
export function outcomeOf(stdout: string, stderr: string, code: number): Outcome {
  const [, reason] = (code === 126 || code === 127 ? failure.exec(stdout) : null) ?? [];
  if (reason === undefined) return { stdout, stderr, exitCode: code, exitSignal: code > 128 ? code - 128 : 0 };
  // ASSUMED: as in a shell, 127 says that there is no such command. Engines differ in the code.
  return { stdout: "", stderr: `${reason}\n`, exitCode: absent.test(reason) ? 127 : 126, exitSignal: 0 };
}

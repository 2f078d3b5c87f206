// Explains failures that new configuration cannot repair yet: without a program, the engine passes stored configuration.
import { ApiError, MachinesError } from "../client/errors.ts";
import type { Caller } from "./verbs/caller.ts";

const hint =
  "Without --run-program, refresh and destroy use the configuration that the last `pulumi up` stored. If you have changed it since, run `pulumi up` first, or add --run-program.";

/**
 * Does work that may use stored configuration. In a run without a program, a refused token or a missing answer gets the hint, before
 * everything else: the user has often just set the new value that the rest of the message asks for.
 * Every resource of the run fails for the same reason, so only the first error explains it.
 * @param subject the resource of the work
 */
export async function withStoredConfiguration<T>(
  { run, hasStoredConfiguration = false }: Pick<Caller, "run" | "hasStoredConfiguration">,
  subject: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isStored = hasStoredConfiguration && run.program.size === 0;
    if (!isStored || !(error instanceof MachinesError) || !isOfConfiguration(error)) throw error;
    const failure = error instanceof ApiError ? `answered ${error.status}` : failures[error.code];
    const first = run.problems.firstSubject(`stored configuration: ${failure}`, subject);
    // Several resources may share one error, so it is not changed. The short text needs no page of its own.
    throw first === subject
      ? new MachinesError(error.code, `${hint} ${withoutAdvice(error)}`, { cause: error })
      : new Error(`${failure}, as for ${first}: see its error`, { cause: error });
  }
}

/** The token that a refused request used is the stored one, so the advice to set a new one would contradict the hint. */
const withoutAdvice = (error: MachinesError): string =>
  error instanceof ApiError && error.status === 401 ? error.problem : error.message;

const failures: Readonly<Partial<Record<MachinesError["code"], string>>> = {
  configuration: "the configuration cannot be used",
  network: "no answer",
  "missing-apps": "the service has none of the Apps",
};

const isOfConfiguration = (error: MachinesError): boolean =>
  error instanceof ApiError ? error.status === 401 || error.status === 403 : Object.hasOwn(failures, error.code);

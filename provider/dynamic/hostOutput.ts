// What Pulumi's host for dynamic providers prints of our errors, beside what their resources show.
import { messageForUser } from "../client/errors.ts";
import { InitializationFailed } from "../core/lifecycle.ts";

/** Removes secrets from a text. */
export type Clean = (text: string) => string;

/** Errors whose message already links to the docs. */
const printed = new WeakSet<Error>();

/**
 * The host prints the stack of every error beside its message. Our messages state the problem, so the stack is noise.
 */
export async function withoutNoise<T>(cleaned: Clean, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (error instanceof InitializationFailed) Object.assign(error, { reasons: error.reasons.map(cleaned) });
    // Many operations may fail for one reason, so its check is shared.
    if (!printed.has(error))
      error.message = error instanceof InitializationFailed ? error.message : messageForUser(error);
    printed.add(error);
    error.message = cleaned(error.message);
    error.stack = "";
    throw error;
  }
}

/** What the host prints of an error that its resource shows. */
const shown = "shown at its resource";

/**
 * Throws an error again, so that only its resource shows it. The host passes it on to the resource, and prints it in the
 * section of the stack as well, where each line would appear as often as there are resources.
 */
export function shownOnlyAtItsResource(error: unknown): never {
  if (error instanceof Error) {
    Object.defineProperty(error, "toString", { value: () => shown, configurable: true });
    if (console.error !== quietPrint) quietenHost();
  }
  throw error;
}

let quietPrint: typeof console.error | undefined;
function quietenHost(): void {
  const print = console.error.bind(console);
  quietPrint = (...words: unknown[]) => {
    if (words[0] !== `${shown}: `) print(...words);
  };
  console.error = quietPrint;
}

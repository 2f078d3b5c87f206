// Repeated reads: every wait of the provider that is not a long poll uses them.
import { growingPause } from "../../api/growingPause.ts";
import { inSpan } from "../../api/tracing.ts";
import { ApiError } from "./errors.ts";
import { everyTenSeconds, type Clock, type Deadline } from "./clock.ts";

/** Milliseconds within which a new object is visible in every list (docs/interface.md#organization-lists). */
export const consistencyWindow = 10_000;

/** The time of an operation. */
interface Timed {
  readonly clock: Clock;
  readonly deadline: Deadline;
}

/** The waiting client. */
export interface Waiting<Client extends Timed = Timed> {
  readonly api: Client;
  /** Gets a message every ten seconds. */
  readonly progress?: ((message: string) => void) | undefined;
}

/** A read returns this if it has to be repeated. */
export class Pending {
  /** The reason for waiting: `waiting for volume vol_1: it is creating`. */
  readonly message: string | undefined;
  /** The error after the time limit. Without one, the read itself decides when to end. */
  readonly tooLate: (() => Error) | undefined;
  constructor(message?: string, tooLate?: () => Error) {
    this.message = message;
    this.tooLate = tooLate;
  }
}

/** When to read. */
export interface PollOptions {
  /** Milliseconds before the second read, 100 by default. The pauses double up to `longest`. */
  readonly first?: number;
  /** Milliseconds, 1000 by default. */
  readonly longest?: number;
  /**
   * Milliseconds before the deadline at which the last read starts, so that its answer can still be reported; by default
   * `longest`.
   */
  readonly margin?: number;
  /** Milliseconds before the first message, 10,000 by default. */
  readonly sayAfter?: number;
}

/** Reads until there is a result. @throws the error of the last {@link Pending} when the operation's time is over */
export async function poll<T>(
  { api, progress }: Waiting,
  look: () => Promise<T | Pending>,
  { first = 100, longest = 1000, margin = longest, sayAfter }: PollOptions = {},
): Promise<T> {
  const { clock, deadline } = api;
  const report = everyTenSeconds(clock, progress ?? (() => undefined), sayAfter);
  const pause = growingPause(first, longest);
  for (;;) {
    const found = await look();
    if (!(found instanceof Pending)) return found;
    const remaining = deadline.at - margin - clock.now();
    if (found.tooLate && remaining <= 0) throw endedBy(deadline, found.tooLate());
    if (found.message !== undefined) report(found.message);
    const milliseconds = found.tooLate ? Math.min(pause(), remaining) : pause();
    await inSpan("pause before the next read", {}, () => clock.sleep(milliseconds, deadline.signal));
  }
}

/** A refusal of the service does not say that it lasted until the deadline; errors of our own do. */
function endedBy({ allowed }: Deadline, error: Error): Error {
  if (error instanceof ApiError) error.message += ` The time limit of ${allowed} ended the wait.`;
  return error;
}

/** Reads until `look` finds something, or the time or the operation's deadline is over. It reads at least once. */
export function pollUntil<T>(api: Timed, at: number, look: () => Promise<T | undefined>): Promise<T | undefined> {
  const until = Math.min(api.deadline.at, at);
  const lookOnce = async (): Promise<T | undefined | Pending> => {
    const found = await look();
    return found === undefined && api.clock.now() < until ? new Pending() : found;
  };
  return poll({ api }, lookOnce, { longest: 2000 });
}

/**
 * Repeats a request while `passing` considers its error temporary. `passing` returns the reason for waiting, or undefined.
 */
export const retryWhile = <T>(
  waiting: Waiting,
  send: () => Promise<T>,
  passing: (error: unknown) => Pending | undefined | Promise<Pending | undefined>,
  options?: PollOptions,
): Promise<T> =>
  poll(
    waiting,
    async () => {
      try {
        return await send();
      } catch (error) {
        const pending = await passing(error);
        if (!pending) throw error;
        return pending;
      }
    },
    options,
  );

/**
 * Sends a request again while the service refuses it with a 412 (docs/interface.md#refusals). After the deadline, the
 * refusal is the error.
 */
export const retryWhilePreconditionFails = <T>(waiting: Waiting, awaited: string, send: () => Promise<T>): Promise<T> =>
  retryWhile(waiting, send, (error) =>
    error instanceof ApiError && error.status === 412
      ? new Pending(`waiting for ${awaited}: ${error.reason}`, () => error)
      : undefined,
  );

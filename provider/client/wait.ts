// Waiting for a Machine: repeated long polls until the deadline (docs/interface.md#waits), never polls of the list.
import { growingPause } from "../../api/growingPause.ts";
import { ApiError, isNotFound, MachinesError, NetworkError } from "./errors.ts";
import { quotable } from "../../api/printable.ts";
import { inSpan } from "../../api/tracing.ts";
import type { Api } from "./api.ts";
import { exitSince, lastEvent, notReached } from "./events.ts";
import { versionOf, type Machine, type MachineKey } from "./machine.ts";
import { consistencyWindow, Pending, poll, retryWhile } from "./poll.ts";

/** States that a wait accepts. */
export type WaitState = "started" | "stopped" | "suspended" | "destroyed" | "failed" | "settled";

const longestHold = 60;

/** Options of a wait. */
export interface WaitOptions {
  /** Version that must reach the state. */
  readonly version?: string | undefined;
  readonly progress: (message: string) => void;
  /** The Machine was just created: the service may not find it yet. */
  readonly fresh?: boolean | undefined;
}

/** The result of a wait. */
export interface Reached {
  readonly state: string;
  /** The version that reached the state; unknown for a Machine that is gone. */
  readonly version: string | undefined;
}

/** Like {@link reached}, but returns nothing. */
export const waitForMachine = async (
  api: Api,
  key: MachineKey,
  states: readonly WaitState[],
  options: WaitOptions,
): Promise<string> => (await reached(api, key, states, options)).state;

/**
 * Waits until a version of the Machine is in one of the states and returns that state (docs/interface.md#waits).
 * @throws MachinesError `wait-timeout` when the operation's deadline comes first, `stale-version` when another version
 * replaced it.
 */
export const reached = (
  api: Api,
  key: MachineKey,
  states: readonly WaitState[],
  options: WaitOptions,
): Promise<Reached> =>
  inSpan("wait for Machine", { attributes: { "machines.states": states.join() } }, () =>
    untilReached(api, key, states, options),
  );

async function untilReached(
  api: Api,
  key: MachineKey,
  states: readonly WaitState[],
  options: WaitOptions,
): Promise<Reached> {
  const since = api.clock.now();
  const failurePause = growingPause(1000, 10_000);
  let ended = false;
  let lastFailure: Error | undefined;
  const report = async (): Promise<void> => {
    const live = await lookNow(api, key);
    const found = live ? `: it is ${live.state}; ${lastEvent(live)}` : "";
    const waited = Math.round((api.clock.now() - since) / 1000);
    if (!ended) options.progress(`waiting for Machine ${key.machineId} to be ${states[0]} for ${waited} s${found}`);
  };
  const stopReporting = api.clock.every(10_000, () => void report());
  try {
    // Not `poll`: the service holds each request, and the last one needs all of the time that is left.
    for (;;) {
      const remaining = Math.ceil((api.deadline.at - api.clock.now()) / 1000);
      if (remaining <= 0) throw await timedOut(api, key, states, lastFailure);
      const asked = api.clock.now();
      try {
        const timeout = Math.min(longestHold, remaining);
        const answer = await api.machines.wait({ ...key, state: [...states], timeout, version: options.version });
        const version = answer.version || options.version;
        lastFailure = undefined;
        if (answer.state !== undefined) return { state: answer.state, version };
        const live = await getFresh(api, key, options);
        return { state: live.state, version: version ?? versionOf(live) };
      } catch (error) {
        if (isNotFound(error)) {
          const late = options.fresh === true && api.clock.now() - since < consistencyWindow;
          if (!late && states.includes("destroyed")) return { state: "destroyed", version: options.version };
          if (!late) throw error;
        } else if (error instanceof ApiError && error.reason.includes("currently replaced")) {
          throw new MachinesError(
            "stale-version",
            `Machine ${key.machineId} was updated by another client while we waited: ${error.message}`,
            { cause: error },
          );
        } else if (!endedEarly(error)) throw error;
        lastFailure = isFailure(error) ? (error as Error) : undefined;
        if (lastFailure)
          await api.clock.sleep(Math.min(failurePause(), api.deadline.at - api.clock.now()), api.deadline.signal);
      }
      // A server that ends a long poll at once is not polled again at once.
      const took = api.clock.now() - asked;
      if (took < 1000) await api.clock.sleep(1000 - took, api.deadline.signal);
    }
  } finally {
    ended = true;
    stopReporting();
  }
}

/** The Machine. A new one may not be visible for a moment, even if an earlier read showed it (F13). */
export function getFresh(api: Api, key: MachineKey, { fresh }: Pick<WaitOptions, "fresh">): Promise<Machine> {
  const until = api.clock.now() + consistencyWindow;
  const isLate = (error: unknown): boolean => fresh === true && isNotFound(error) && api.clock.now() < until;
  return retryWhile(
    { api },
    () => api.machines.get(key),
    (error) => (isLate(error) ? new Pending() : undefined),
  );
}

/** Whether an object was created so recently, by any run, that the service may not show it yet (F13). */
export const isJustMade = (createdAt: string | undefined, now: number): boolean =>
  // Times of the service are whole seconds.
  Math.abs(now - Date.parse(createdAt ?? "")) < consistencyWindow + 1000;

/** The current Machine, if it answers soon. */
const lookNow = (api: Api, key: MachineKey): Promise<Machine | undefined> =>
  api
    .within({ at: api.clock.now() + 5000, allowed: "5s" })
    .machines.get(key)
    .catch(() => undefined);

const isFailure = (error: unknown): boolean =>
  (error instanceof ApiError && error.status >= 500) || error instanceof NetworkError;

/** A long poll that ended without a result: not yet, or interrupted by a proxy (F09). */
const endedEarly = (error: unknown): boolean => (error instanceof ApiError && error.status === 408) || isFailure(error);

async function timedOut(
  api: Api,
  key: MachineKey,
  states: readonly WaitState[],
  failure: Error | undefined,
): Promise<MachinesError> {
  const live = await lookNow(api, key);
  const last = live ? ` It is ${live.state}; ${lastEvent(live)}.` : failure ? ` ${failure.message}` : "";
  return new MachinesError(
    "wait-timeout",
    `Machine ${key.machineId} was not ${states[0]} within ${api.deadline.allowed}.${last} ${api.deadline.advice ?? "The next up continues from here."}`,
  );
}

const everyCheck = 1000;

/**
 * Waits until all checks of a Machine pass. `lastEventId` is the newest event before its start.
 * @throws MachinesError `machine-failed` when its program ends meanwhile, also if it is started again; `wait-timeout` with
 * the failing checks at the deadline.
 */
export function waitForChecks(
  api: Api,
  key: MachineKey,
  progress: (message: string) => void,
  lastEventId?: string,
): Promise<Machine> {
  const since = api.clock.now();
  const readMachine = async (): Promise<Machine | Pending> => {
    const live = await api.machines.get(key);
    if (live.state !== "started" || exitSince(live, lastEventId)) throw notReached(key, live, "started");
    const failing = (live.checks ?? []).filter(({ status }) => status !== "passing");
    if (failing.length === 0 && (live.checks ?? []).length > 0) return live;
    const list = failing
      .map(
        ({ name, status, output }) =>
          `${name ?? "?"} is ${status ?? "unknown"}${output ? ` (${quotable(output, 200)})` : ""}`,
      )
      .join("; ");
    return new Pending(
      `waiting for checks for ${Math.round((api.clock.now() - since) / 1000)} s: ${list}`,
      () =>
        new MachinesError(
          "wait-timeout",
          `checks of Machine ${key.machineId} did not pass within ${api.deadline.allowed}: ${list || "none reported yet"}. The next up continues from here.`,
        ),
    );
  };
  return poll({ api, progress }, readMachine, { first: everyCheck, longest: everyCheck });
}

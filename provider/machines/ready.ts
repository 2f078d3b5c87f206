// Waits until a Machine is in the state that it was started for, and decides when a wait has failed.
import { parseDuration } from "../../api/schema.ts";
import type { Api } from "../client/api.ts";
import { latestExit, notReached } from "../client/events.ts";
import type { Machine, MachineKey } from "../client/machine.ts";
import { getFresh, waitForChecks, waitForMachine } from "../client/wait.ts";
import type { Call } from "../core/resource.ts";
import { keepsRunning, type Start } from "./keepsRunning.ts";
import { isJob, type Config, type Power } from "./settings.ts";

/** The inputs that a wait depends on. */
export interface Expected {
  readonly config: Config;
  readonly waitForChecks?: boolean | undefined;
  readonly minHealthySeconds?: number | undefined;
  /** The wanted power state, if the program sets one. */
  readonly state?: Power | undefined;
  /** Time for the Machine to run, and then for its checks to pass; until the operation's deadline when left out. */
  readonly startDeadline?: string | undefined;
  readonly passDeadline?: string | undefined;
}

/** The same service for a part of an operation, which may take `allowed` at most. `option` allows more. */
function atMost<C extends Pick<Call, "api">>(call: C, allowed: string | undefined, option: string): C {
  if (allowed === undefined) return call;
  const { api } = call;
  const at = api.clock.now() + (parseDuration(allowed) ?? 0) / 1e6;
  return at >= api.deadline.at
    ? call
    : { ...call, api: api.within({ ...api.deadline, at, allowed, advice: `${option} allows more time.` }) };
}

const hasChecks = ({ checks, services }: Config): boolean =>
  Object.keys(checks ?? {}).length > 0 || (services ?? []).some((service) => (service.checks ?? []).length > 0);

/**
 * Waits until the Machine runs, checks included, and has kept running for its healthy time; a job, until it has ended well. Returns it.
 * @throws MachinesError `machine-failed` at once if it ends in another state, or if its program ends, with the reason
 */
export async function untilReady(call: Call, key: MachineKey, expected: Expected, start: Start): Promise<Machine> {
  const { config } = expected;
  const starting = atMost(call, expected.startDeadline, "startDeadline");
  if (isJob(config, expected.state)) {
    await waitForMachine(starting.api, key, ["settled", "destroyed"], { ...start, progress: call.progress });
    return endedWell(starting.api, key, start);
  }
  await untilIn(starting, key, "started", start);
  const isChecked = expected.waitForChecks !== false && hasChecks(config);
  const seconds = expected.minHealthySeconds ?? (isChecked ? 0 : call.api.config.minHealthySeconds);
  const { api } = atMost(call, expected.passDeadline, "passDeadline");
  const checked = isChecked ? await waitForChecks(api, key, call.progress, start.lastEventId) : undefined;
  if (checked && seconds === 0) return checked;
  return keepsRunning(call, key, { config, healthy: seconds * 1000, ...start });
}

/**
 * Waits until the Machine is in a power state.
 * @throws MachinesError `machine-failed` at once if it ends in another one
 */
export async function untilIn({ api, progress }: Call, key: MachineKey, state: Power, start: Start): Promise<void> {
  const others = (["stopped", "failed", "destroyed"] as const).filter((other) => other !== state);
  const reached = await waitForMachine(api, key, [state, ...others], { ...start, progress });
  if (reached === state) return;
  const live = await api.machines.get(key).catch(() => undefined);
  throw notReached(key, live, state, state === "started" ? start.lastEventId : undefined);
}

async function endedWell(api: Api, key: MachineKey, { fresh }: Start): Promise<Machine> {
  const live = await getFresh(api, key, { fresh });
  const exit = latestExit(live);
  const well = exit === undefined ? live.state !== "failed" : exit.requested || exit.exitCode === 0;
  if (!well) throw notReached(key, live, "done");
  return live;
}

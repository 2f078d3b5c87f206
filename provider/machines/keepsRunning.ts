// Watches that a Machine keeps running after its start (R16). Its events decide, because a look at its state misses a program that
// ends and is started again. Equal Machines of a run do not wait one after the other: what one has proved counts for the others.
import { MachinesError } from "../client/errors.ts";
import { eventsAfter, exitSince, notReached } from "../client/events.ts";
import type { Machine, MachineKey } from "../client/machine.ts";
import { getFresh } from "../client/wait.ts";
import type { Call } from "../core/resource.ts";
import type { Config } from "./settings.ts";

/**
 * Milliseconds that a Machine is watched when others of the run have kept running with the same program. The more there are, the
 * less it adds, so that a hundred equal Machines wait hardly longer than one.
 */
const shortLook = (keptRunning: number): number => Math.min(333, 2000 / keptRunning);

/** The start that a wait is about. */
export interface Start {
  readonly version: string | undefined;
  /** The newest event before the start; what happened before is not held against the Machine. */
  readonly lastEventId?: string | undefined;
  /** The Machine was just created: the service may not find it yet. */
  readonly fresh?: boolean | undefined;
}

/** A Machine that has just started. */
interface Started extends Start {
  readonly config: Config;
  /** Milliseconds that it has to keep running. */
  readonly healthy: number;
}

/** What this run knows of a program: how many Machines kept running with it, and whether the first is being watched. */
interface Proof {
  keptRunning: number;
  /** Ends when the Machine that is watched first has kept running, or has failed. */
  watched: Promise<void> | undefined;
}

/**
 * Waits until the Machine has kept running for its healthy time, and returns it. A Machine that someone stops meanwhile has not
 * failed.
 * @throws MachinesError `machine-failed` if its program ends without being asked to, also if it is started again
 */
export async function keepsRunning(call: Call, key: MachineKey, started: Started): Promise<Machine> {
  const { api, run } = call;
  const begun = api.clock.now();
  // A shorter time proves nothing for a longer one.
  const what = `${api.config.endpoint} ${key.appName} ${started.healthy} ${programOf(started)}`;
  const proof = run.memo.get<Proof>(`keeps running ${what}`, () => ({ keptRunning: 0, watched: undefined }));
  const remaining = (): number => {
    const time = proof.keptRunning > 0 ? Math.min(shortLook(proof.keptRunning), started.healthy) : started.healthy;
    return begun + time - api.clock.now();
  };
  while (remaining() > 0) {
    const { signal } = api.deadline;
    if (proof.keptRunning > 0) await api.clock.sleep(remaining(), signal);
    else if (proof.watched) await Promise.race([proof.watched, api.clock.sleep(remaining(), signal)]);
    else {
      const watched = watch(call, key, started, remaining());
      proof.watched = watched.then(
        () => undefined,
        () => undefined,
      );
      try {
        return noted(proof, await watched);
      } finally {
        proof.watched = undefined;
      }
    }
  }
  return noted(proof, await judged(call, key, started));
}

/** Counts a Machine that kept running. One that someone stopped has proved nothing. */
function noted(proof: Proof, live: Machine): Machine {
  if (live.state === "started") proof.keptRunning++;
  return live;
}

/** Holds one request until the Machine stops, or the time is over. */
async function watch(call: Call, key: MachineKey, started: Started, time: number): Promise<Machine> {
  const { clock, deadline, machines } = call.api;
  const until = clock.now() + time;
  if (until > deadline.at) throw tooLong(call, key, started);
  const timeout = Math.min(60, Math.ceil(time / 1000));
  const state = ["stopped", "failed", "suspended", "destroyed"] as const;
  const isAtRest = await machines.wait({ ...key, state: [...state], timeout, version: started.version }).then(
    () => true,
    () => false,
  );
  // Where a wait ends early, the events at the end still tell.
  if (!isAtRest && clock.now() < until) await clock.sleep(until - clock.now(), deadline.signal);
  return judged(call, key, started);
}

const tooLong = ({ api }: Call, { appName, machineId }: MachineKey, { healthy }: Started): MachinesError =>
  new MachinesError(
    "wait-timeout",
    `Machine ${appName}/${machineId} has to keep running for ${healthy / 1000} s (minHealthySeconds), and less is left of the ${api.deadline.allowed} that the operation may take. ${api.deadline.advice ?? "The next up continues from here."}`,
  );

/** The Machine, if it runs or was stopped on request. */
async function judged({ api }: Call, key: MachineKey, { fresh, lastEventId }: Started): Promise<Machine> {
  const live = await getFresh(api, key, { fresh });
  const { state } = live;
  const isAtRest = ["stopped", "suspended"].includes(state);
  const sinceStart = eventsAfter(live, lastEventId);
  const isOnRequest = isAtRest && sinceStart.some(({ type = "" }) => ["stop", "suspend", "exit"].includes(type));
  const ended = ["failed", "destroyed", "destroying"].includes(state) || (isAtRest && !isOnRequest);
  if (ended || exitSince(live, lastEventId)) throw notReached(key, live, "started", lastEventId);
  return live;
}

/** What makes two Machines run the same program: not their region, volume or metadata, nor the values of their environment. */
const programOf = ({ config }: Started): string =>
  JSON.stringify([
    ...[config.image, config.init, config.processes, config.containers, config.guest, config.size],
    ...[config.restart, config.services, config.checks].map((part) => part ?? null),
    ...[Object.keys(config.env ?? {}).sort(), config.files?.map(({ guestPath }) => guestPath)],
  ]);

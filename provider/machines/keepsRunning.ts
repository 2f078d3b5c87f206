// Watches that a Machine keeps running after its start (R16). Its events decide, because a look at its state misses a program that
// ends and is started again. Equal Machines of a run do not wait one after the other: what one has proved counts for the others.
import { MachinesError } from "../client/errors.ts";
import { exitSince, notReached } from "../client/events.ts";
import { getFresh, type Machine, type MachineKey } from "../client/wait.ts";
import type { Call } from "../core/resource.ts";
import type { Config } from "./settings.ts";

/** Milliseconds that a Machine is watched when another one of the run has kept running with the same program. */
const shortLook = 333;

/** A Machine that has just started. */
export interface Started {
  readonly config: Config;
  readonly version: string | undefined;
  /** The newest event before the start; what happened before is not held against the Machine. */
  readonly lastEventId: string | undefined;
  /** Milliseconds that it has to keep running. */
  readonly healthy: number;
  /** The Machine was just created: the service may not find it yet. */
  readonly fresh: boolean | undefined;
}

/** What this run knows of a program: whether a Machine kept running with it, or is being watched. */
interface Proof {
  isGiven: boolean;
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
  const proof = run.shared<Proof>(`keeps running ${what}`, () => ({ isGiven: false, watched: undefined }));
  const remaining = (): number =>
    begun + (proof.isGiven ? Math.min(shortLook, started.healthy) : started.healthy) - api.clock.now();
  while (remaining() > 0) {
    const { signal } = api.deadline;
    if (proof.isGiven) await api.clock.sleep(remaining(), signal);
    else if (proof.watched) await Promise.race([proof.watched, api.clock.sleep(remaining(), signal)]);
    else {
      const watched = watch(call, key, started, remaining());
      proof.watched = watched.then(
        () => undefined,
        () => undefined,
      );
      try {
        const live = await watched;
        // One that someone stopped has proved nothing.
        proof.isGiven = live.state === "started";
        return live;
      } finally {
        proof.watched = undefined;
      }
    }
  }
  return judged(call, key, started);
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
    `Machine ${appName}/${machineId} has to keep running for ${healthy / 1000} s (minHealthySeconds), and less is left of the ${api.deadline.allowed} that the operation may take. ${api.deadline.advice ?? "The next up goes on from here."}`,
  );

/** The Machine, if it runs or was stopped on request. */
async function judged({ api }: Call, key: MachineKey, { fresh, lastEventId }: Started): Promise<Machine> {
  const live = await getFresh(api, key, { fresh });
  const { state, events = [] } = live;
  const isAtRest = ["stopped", "suspended"].includes(state);
  const isOnRequest = isAtRest && events.some(({ type }) => ["stop", "suspend", "exit"].includes(type ?? ""));
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

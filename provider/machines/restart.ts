// Restarting or signalling a Machine when triggers change: what a program uses where a new version is not called for.
import type { z } from "zod";
import type { Lease } from "../client/lease.ts";
import { versionOf, type Machine, type MachineKey } from "../client/wait.ts";
import type { Change } from "../core/diff.ts";
import { isAmbiguous } from "../client/errors.ts";
import type { Call } from "../core/resource.ts";
import { equal } from "../core/values.ts";
import type { reload, restart } from "./inputs.ts";
import { waitForTarget, type Wanted } from "./power.ts";

/** The inputs whose triggers nudge a Machine that runs. */
export interface Nudges {
  readonly restart?: z.output<typeof restart> | undefined;
  readonly reload?: z.output<typeof reload> | undefined;
}

/** What triggers that changed ask for; a restart is a reload as well. */
export type Nudge = keyof Nudges;

/** What the change of triggers asks for. Without triggers there is nothing to watch, so that removing them asks for nothing. */
export function nudgesFor(old: Nudges, next: Nudges): Nudge[] {
  return (["restart", "reload"] as const).filter((name) => {
    const triggers = next[name]?.triggers ?? {};
    return Object.keys(triggers).length > 0 && !equal(old[name]?.triggers ?? {}, triggers);
  });
}

/** Whether changes are of nothing but how the next restart or reload is to be done. */
export const onlyOptionsChanged = (changes: readonly Change[], old: Nudges, next: Nudges): boolean =>
  changes.every(({ path }) => path[0] === "restart" || path[0] === "reload") && nudgesFor(old, next).length === 0;

/** Called when something has changed, or may have, and when what the triggers asked for is done. */
export interface Callbacks {
  readonly changing: () => void;
  readonly nudged: () => void;
}

/** Restarts or signals a Machine that runs, and answers it as it is then. */
export async function nudge(
  call: Call,
  key: MachineKey,
  { lease, live, wanted, asked }: { lease: Lease; live: Machine; wanted: Wanted & Nudges; asked: readonly Nudge[] },
  { changing, nudged }: Callbacks,
): Promise<Machine> {
  const { machines } = call.api;
  const { signal, timeout } = wanted.restart ?? {};
  const restarts = asked.includes("restart");
  try {
    await (restarts
      ? machines.restart({ ...key, leaseNonce: lease.nonce(), signal, timeout })
      : machines.signal({ ...key, body: { signal: wanted.reload?.signal ?? "SIGHUP" } }));
  } catch (error) {
    // Once more does less harm than never: what may not have been done stays to be done.
    if (isAmbiguous(error)) changing();
    throw error;
  }
  changing();
  nudged();
  if (!restarts) return machines.get(key);
  return waitForTarget(call, key, wanted, { target: "started", version: versionOf(live), lease });
}

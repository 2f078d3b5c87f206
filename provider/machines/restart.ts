// Restarts or signals a Machine when triggers change, without a new version.
import type { z } from "zod";
import type { Change } from "../core/diff.ts";
import { isAmbiguous } from "../client/errors.ts";
import type { Lease } from "../client/lease.ts";
import type { MachineKey } from "../client/machine.ts";
import type { Call } from "../core/resource.ts";
import { equal } from "../core/values.ts";
import type { reload, restart } from "./inputs.ts";

/** The inputs whose triggers restart or signal a running Machine. */
export interface TriggerInputs {
  readonly restart?: z.output<typeof restart> | undefined;
  readonly reload?: z.output<typeof reload> | undefined;
}

/** The actions that changed triggers request. A restart is also a reload. */
export type Action = keyof TriggerInputs;

/** The actions of changed triggers. Removing the triggers causes none. */
export function actionsFor(old: TriggerInputs, next: TriggerInputs): Action[] {
  return (["restart", "reload"] as const).filter((name) => {
    const triggers = next[name]?.triggers ?? {};
    return Object.keys(triggers).length > 0 && !equal(old[name]?.triggers ?? {}, triggers);
  });
}

/** Whether only the options of the next restart or reload change. */
export const onlyOptionsChanged = (changes: readonly Change[], old: TriggerInputs, next: TriggerInputs): boolean =>
  changes.every(({ path }) => path[0] === "restart" || path[0] === "reload") && actionsFor(old, next).length === 0;

/** The progress of an update. */
export interface Done {
  /** Whether the Machine has changed, or may have. */
  changed: boolean;
  /** Whether it was restarted or signalled as requested. */
  triggered: boolean;
}

/** Restarts or signals a running Machine. */
export async function restartOrReload(
  {
    call,
    key,
    lease,
    wanted,
  }: { readonly call: Call; readonly key: MachineKey; readonly lease: Lease; readonly wanted: TriggerInputs },
  actions: readonly Action[],
  done: Done,
): Promise<void> {
  const { machines } = call.api;
  const { signal, timeout } = wanted.restart ?? {};
  try {
    await (actions.includes("restart")
      ? machines.restart({ ...key, leaseNonce: lease.nonce(), signal, timeout })
      : machines.signal({ ...key, body: { signal: wanted.reload?.signal ?? "SIGHUP" } }));
  } catch (error) {
    // A second restart does less harm than none, so an uncertain one is repeated.
    if (isAmbiguous(error)) done.changed = true;
    throw error;
  }
  done.changed = true;
  done.triggered = true;
}

// Leases (docs/interface.md#leases), which give a client the exclusive right to change a Machine.
import type { machines } from "../../api/machines.ts";
import { rfc3339 } from "../time/clock.ts";
import { Refusal, refuse } from "../refusal.ts";
import type { LeaseRow, MachineRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import { liveMachineOf, machineOf } from "./find.ts";
import type { Rules } from "./rule.ts";

// ASSUMED: a lease lasts 30 seconds by default, and may last 1 to 3600; other values are 400. `lease_ttl` has the same bounds
// (docs/interface.md#leases).
const defaultTtl = 30;
const longestTtl = 3600;

/** Whether a request that changes a Machine holds its lease. */
export type LeaseStanding =
  /** It sent the nonce of the current lease. */
  | "own"
  /** There is no lease. */
  | "none"
  /** There is a lease, and the request did not send its nonce. */
  | "other";

/** The current lease; an expired one does not count. */
export function liveLease(context: Context, machine: string): LeaseRow | undefined {
  const lease = context.store.get<LeaseRow>("SELECT * FROM leases WHERE machine = ?", machine);
  return lease && lease.expires_at > context.clock.now() ? lease : undefined;
}

/** Whether a request with that nonce holds the lease of a Machine. */
export function leaseStanding(context: Context, { id }: MachineRow, nonce: string | undefined): LeaseStanding {
  const lease = liveLease(context, id);
  return lease ? (lease.nonce === nonce ? "own" : "other") : "none";
}

const heldBy = (lease: LeaseRow): string =>
  `machine ID ${lease.machine} lease currently held by ${lease.owner}, expires at ${rfc3339(Math.ceil(lease.expires_at / 1000) * 1000)}`;

/**
 * Refuses a change while another client holds the lease; runs in the transaction of the change.
 * ASSUMED: a guarded change with an outdated nonce is 409 even when there is no lease now, because its client wrongly assumes that it
 * holds the lease.
 */
export function guard(context: Context, machine: MachineRow, nonce: string | undefined): void {
  if (machine.destroyed_at !== null) return; // its lease was deleted with it; a repeated destroy must not fail for that
  const lease = liveLease(context, machine.id);
  if (lease && lease.nonce !== nonce) throw refuse(409, heldBy(lease));
  if (!lease && nonce !== undefined)
    throw refuse(409, `machine ID ${machine.id} lease is not held with this nonce: it expired or was released`);
}

/** Grants or prolongs the lease of a Machine. */
export function grant(
  context: Context,
  machine: MachineRow,
  owner: string,
  ttl = defaultTtl,
  description?: string,
): LeaseRow {
  if (ttl < 1 || ttl > longestTtl) throw refuse(400, `invalid ttl, got ${ttl}, must be 1 to ${longestTtl} seconds`);
  const held = liveLease(context, machine.id);
  const lease: LeaseRow = {
    machine: machine.id,
    nonce: held?.nonce ?? context.ids.nonce(),
    owner: held?.owner ?? owner,
    description: description ?? held?.description ?? "",
    version: machine.version,
    expires_at: context.clock.now() + ttl * 1000,
  };
  context.store.run("DELETE FROM leases WHERE machine = ?", machine.id);
  context.store.insert("leases", lease);
  // The answer for the Machine stays the same, but an open page shows the lease.
  context.store.touch(machine.id);
  return lease;
}

const envelope = ({ nonce, expires_at, owner, description, version }: LeaseRow, showNonce: boolean) => ({
  status: "success",
  data: { ...(showNonce ? { nonce } : {}), expires_at: Math.ceil(expires_at / 1000), owner, description, version },
});

/** The rules of the lease operations. */
export const leases: Pick<Rules<typeof machines>, "getLease" | "acquireLease" | "releaseLease"> = {
  /**
   * ASSUMED: a lease shows its nonce only to a request that sends the nonce; sources about the platform disagree
   * (docs/interface.md#leases).
   */
  getLease(input) {
    const lease = liveLease(input.context, machineOf(input).id);
    if (!lease) throw refuse(404, "lease not found");
    return envelope(lease, lease.nonce === input.nonce);
  },

  acquireLease(input) {
    const { context, body, query, nonce } = input;
    const machine = liveMachineOf(input);
    const lease = liveLease(context, machine.id);
    if (lease && lease.nonce !== nonce)
      throw new Refusal(409, { status: "error", message: heldBy(lease), code: "invalid" });
    if (!lease && nonce !== undefined) throw refuse(404, "lease not found");
    return envelope(grant(context, machine, input.caller.owner, body.ttl ?? query.ttl, body.description), true);
  },

  releaseLease(input) {
    const { context, nonce } = input;
    const machine = liveMachineOf(input);
    // ASSUMED: a release without a nonce is 400; release and refresh without a lease are 404, with another nonce 409.
    if (nonce === undefined) throw refuse(400, "missing header svc-machine-lease-nonce");
    const lease = liveLease(context, machine.id);
    if (!lease) throw refuse(404, "lease not found");
    if (lease.nonce !== nonce) throw refuse(409, heldBy(lease));
    context.store.run("DELETE FROM leases WHERE machine = ?", machine.id);
    context.store.touch(machine.id);
    return { status: "success", data: { ok: true } };
  },
};

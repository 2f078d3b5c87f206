// The clock of the computer was set (F93). Dates follow it, forwards and backwards; what lasts for a time lasts as long as before.
import type { Context } from "../context.ts";
import type { HostnameRow } from "../store/rows.ts";
import { subjectOfHostname } from "./hostnames.ts";

/** What lasts for a time and is stored with the date of its end or its beginning. */
const durations = [
  "UPDATE leases SET expires_at = expires_at + ?",
  "UPDATE machines SET retried_from = retried_from + ? WHERE restarts > 0",
  "UPDATE hostnames SET rate_limited_until = rate_limited_until + ? WHERE rate_limited_until IS NOT NULL",
  "UPDATE own_certificates SET added_at = added_at + ?1, again_at = again_at + ?1, limited_until = limited_until + ?1",
];

/**
 * Dates that were written while the clock was ahead. ASSUMED: when a clock that was ahead is set back, dates of Machines and volumes
 * that lists are ordered by become the present; all others stay as they were written.
 */
const ahead = [
  "UPDATE machines SET updated_at = ?1 WHERE updated_at > ?1",
  "UPDATE machines SET destroyed_at = ?1 WHERE destroyed_at > ?1",
  "UPDATE volumes SET updated_at = ?1 WHERE updated_at > ?1",
];

/** Tokens that were made while the clock was ahead would be valid for longer than they were meant to be. */
const tokensAhead =
  "UPDATE tokens SET expires_at = expires_at + ?1, created_at = created_at + ?1 WHERE created_at > ?2";

const soon = 1000;

/** Moves what is stored, in a transaction in which the clock is moved by that many milliseconds. */
function moveStored(context: Context, ms: number): void {
  const { store, clock, timers } = context;
  timers.shift(ms);
  for (const sql of durations) store.run(sql, ms);
  if (ms < 0) {
    for (const sql of ahead) store.run(sql, clock.now());
    store.run(tokensAhead, ms, clock.now());
    // They are valid from a date that is to come.
    const issued = store.all<HostnameRow>(
      "SELECT * FROM hostnames WHERE issued_at > ? OR (issued_at IS NULL AND acme_status = 'pending_validation')",
      clock.now(),
    );
    for (const row of issued) timers.after(soon, "certificate.renew", subjectOfHostname(row));
  }
  context.machineRows.clear();
  context.machineTexts.clear();
}

const logJump = ({ log }: Context, ms: number): void => {
  const by = `${Math.round(Math.abs(ms) / 1000)} s ${ms > 0 ? "forwards" : "backwards"}`;
  log.warn({ ms }, `the clock of this computer was set ${by}; dates follow it, and durations stay the same`);
};

/** Follows the clock of the computer, which was set by that many milliseconds. */
export async function followClock(context: Context, ms: number): Promise<void> {
  const { store, clock } = context;
  await store.write(() => {
    clock.follow(ms);
    store.onUndo(() => clock.follow(-ms));
    moveStored(context, ms);
  });
  logJump(context, ms);
}

/**
 * Follows a clock that was set back while no service ran: the store was written at a date that is to come. How far a clock was set
 * forwards is not known then.
 */
export async function followSince(context: Context, written: number): Promise<void> {
  const ms = Math.round(context.clock.now() - written);
  if (ms > -soon) return;
  await context.store.write(() => moveStored(context, ms));
  logJump(context, ms);
}

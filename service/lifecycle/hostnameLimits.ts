// ASSUMED: what an authority counts of a hostname stays when the hostname is removed, so that adding it again lifts no limit. It is kept
// for the organization, with a timer that ends it.
import type { Context } from "../context.ts";
import type { HostnameRow } from "../store/rows.ts";
import { orgOf } from "./hostnameOwners.ts";

/** Failed validations count for an hour, and a hostname that has too many waits for an hour. */
export const hour = 60 * 60 * 1000;

/** The failed attempts of a hostname, and until when it has to wait. */
type Limits = Pick<HostnameRow, "attempts" | "rate_limited_until">;

/** What the timer has. */
interface Kept {
  readonly attempts: readonly number[];
  /** Milliseconds from the end of the limit to the end of the timer; null without a limit. */
  readonly ahead: number | null;
}

const kind = "certificate.limit";

const subjectOf = (context: Context, { app, hostname }: Pick<HostnameRow, "app" | "hostname">): string =>
  `organization ${orgOf(context, app).org}/${hostname}`;

/** Those of the attempts that count still. */
export const counting = (attempts: readonly number[], now: number): number[] =>
  attempts.filter((at) => at > now - hour && at <= now);

/** The limits that a new hostname begins with: what is left of those that it had before in this organization. */
export function keptLimits(context: Context, row: Pick<HostnameRow, "app" | "hostname">): Limits {
  const timer = context.timers.find(subjectOf(context, row), kind);
  if (!timer) return { attempts: "[]", rate_limited_until: null };
  const { attempts, ahead } = JSON.parse(timer.data) as Kept;
  return { attempts: JSON.stringify(attempts), rate_limited_until: ahead === null ? null : timer.due - ahead };
}

/** Keeps the limits of a hostname that is removed, beside what another App of the organization has left. */
export function keepLimits(context: Context, row: HostnameRow): void {
  const now = context.clock.now();
  const before = keptLimits(context, row);
  const own = JSON.parse(row.attempts) as number[];
  // The hostname began with the attempts that were kept: each counts once.
  const others = [...(JSON.parse(before.attempts) as number[])];
  for (const at of own) if (others.includes(at)) others.splice(others.indexOf(at), 1);
  const attempts = counting([...own, ...others], now).toSorted((a, b) => a - b);
  const until = Math.max(before.rate_limited_until ?? 0, row.rate_limited_until ?? 0);
  const end = Math.max((attempts.at(-1) ?? -hour) + hour, until);
  if (end <= now) return;
  const kept: Kept = { attempts, ahead: until > now ? end - until : null };
  context.timers.after(end - now, kind, subjectOf(context, row), JSON.stringify(kept));
}

/** A certificate was issued: nothing is counted any more. */
export const forgetLimits = (context: Context, row: HostnameRow): void =>
  context.timers.cancel(subjectOf(context, row), kind);

// Which backups are kept: the newest of each of the last days, weeks and months.

/** How many days, weeks and months with backups are kept. */
export interface Policy {
  readonly days: number;
  readonly weeks: number;
  readonly months: number;
}

/** The policy without an option. */
export const usualPolicy = "7d,4w,6m";

/** A policy such as `7d,4w,6m`; undefined if the text is none. */
export function readPolicy(text: string): Policy | undefined {
  const found = { d: 0, w: 0, m: 0 };
  const seen = new Set<string>();
  for (const part of text.split(",")) {
    const [, count, unit] = /^([1-9]\d{0,3})([dwm])$/.exec(part.trim()) ?? [];
    if (count === undefined || unit === undefined || seen.has(unit)) return undefined;
    seen.add(unit);
    found[unit as keyof typeof found] = Number(count);
  }
  return { days: found.d, weeks: found.w, months: found.m };
}

/** A backup as far as the policy needs it. */
export interface Dated {
  readonly id: string;
  readonly time: number;
  readonly isComplete: boolean;
}

const day = 86_400_000;
// The first Monday since 1970 was the fifth day.
const weekOf = (time: number): string => String(Math.floor((time / day + 3) / 7));
const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);
const monthOf = (time: number): string => new Date(time).toISOString().slice(0, 7);

// ASSUMED: backups of the last day are all kept, so that a backup that was made on request is not removed by the next one. So is the one
// before them, so that the logs since these backups lead to the whole day.
/** The ids of the backups that are kept. The newest one, and the newest complete one, always are. */
export function keptBy(policy: Policy, backups: readonly Dated[]): ReadonlySet<string> {
  const newestFirst = [...backups].sort((a, b) => b.time - a.time);
  const kept = new Set<string>();
  const keepNewest = (periodOf: (time: number) => string, most: number): void => {
    const periods = new Set<string>();
    for (const { id, time } of newestFirst) {
      const period = periodOf(time);
      if (periods.has(period) || periods.size === most) continue;
      periods.add(period);
      kept.add(id);
    }
  };
  keepNewest(dayOf, policy.days);
  keepNewest(weekOf, policy.weeks);
  keepNewest(monthOf, policy.months);
  const latest = newestFirst[0]?.time ?? 0;
  for (const { id, time } of newestFirst) {
    kept.add(id);
    if (time <= latest - day) break;
  }
  for (const one of [newestFirst[0], newestFirst.find(({ isComplete }) => isComplete)]) if (one) kept.add(one.id);
  return kept;
}

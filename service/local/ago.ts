// Moments relative to now, for people.

const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
] as const;

/** A moment in its largest unit, such as `3 minutes ago`. Within a minute it is `just now`. */
export function ago(at: number, now: number): string {
  // The clock of a service can be ahead, because the admin listener moves it.
  const difference = at - now;
  const [unit, ms] = units.find(([, length]) => Math.abs(difference) >= length) ?? [];
  if (unit === undefined) return "just now";
  return new Intl.RelativeTimeFormat("en", { numeric: "always" }).format(Math.trunc(difference / ms), unit);
}

// Times, as people say them.

/** Time since a moment, in its largest unit: `3 days ago`; `just now` below a minute. */
export const ago = (since: string, now: Date): string =>
  now.getTime() - Date.parse(since) < 60_000
    ? "just now"
    : `${span(now.getTime() - Date.parse(since), Math.floor)} ago`;

/** Time until a moment, to the nearest of its largest unit: `3 days`, also a second after three days were given. */
export const until = (moment: string, now: Date): string => span(Date.parse(moment) - now.getTime(), Math.round);

function span(milliseconds: number, whole: (number: number) => number): string {
  const minutes = whole(milliseconds / 60_000);
  if (minutes < 1) return "less than a minute";
  const [count, unit] =
    minutes < 60
      ? [minutes, "minute"]
      : minutes < 2880
        ? [whole(minutes / 60), "hour"]
        : [whole(minutes / 1440), "day"];
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

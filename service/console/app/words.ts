// Numbers, times and sizes in words.

const number = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** `12,345`. */
export const count = (value: number): string => number.format(value);

/** `0.25`, `12.3`, `1,234`. */
export const decimal = (value: number): string =>
  new Intl.NumberFormat("en", { maximumFractionDigits: value < 1 ? 2 : value < 100 ? 1 : 0 }).format(value);

/** A short time as `1.5 ms` or `2 s`. */
export const milliseconds = (value: number): string =>
  value < 1000 ? `${decimal(value)} ms` : `${decimal(value / 1000)} s`;

/** `1 Machine`, `2 Machines`. */
export const some = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

/** A price per month. */
export const money = (value: number, currency: string): string =>
  new Intl.NumberFormat("en", { style: "currency", currency, maximumFractionDigits: value < 100 ? 2 : 0 }).format(
    value,
  );

/** Bytes as `1.5 GB`. */
export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, value < 1 ? 0 : Math.floor(Math.log10(value) / 3));
  return `${compact.format(value / 1000 ** power)} ${units[power]}`;
}

const units = [
  ["d", 86_400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
] as const;

/** A duration as `5 min`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [unit, size] = units.find(([, size]) => seconds >= size) ?? ["s", 1];
  return `${Math.floor(seconds / size)} ${unit}`;
}

/** A time before or after now. */
export const relative = (time: number, now: number): string =>
  time > now + 999 ? `in ${duration(time - now)}` : now - time < 1000 ? "now" : `${duration(now - time)} ago`;

/** The exact time, in the zone of the reader and in UTC. */
export const exact = (time: number): string =>
  `${new Date(time).toLocaleString("sv-SE", { timeZoneName: "short" })} (${new Date(time).toISOString()})`;

/** `12:03:04.567`. */
export const clock = (time: number): string =>
  `${new Date(time).toLocaleTimeString("sv-SE")}.${String(Math.floor(time) % 1000).padStart(3, "0")}`;

/** A time within a sentence: `01:27`, and the date before it if it was another day. */
export function moment(time: number, now: number): string {
  const [day, minute] = new Date(time).toLocaleString("sv-SE").slice(0, 16).split(" ");
  return new Date(now).toLocaleDateString("sv-SE") === day ? (minute ?? "") : `${day} ${minute}`;
}

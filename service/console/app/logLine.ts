// Reads the lines of logs as programs write them: levels, and the fields of JSON.

/** Levels, the worst first. */
export const levels = ["error", "warn", "info", "debug"] as const;

/** How grave a line is. */
export type Level = (typeof levels)[number];

/** A line, read. */
export interface Read {
  /** Undefined if it says nothing about it. */
  readonly level: Level | undefined;
  /** A line of JSON without its usual fields; other lines as they are. */
  readonly message: string;
  /** The other fields of JSON, as `name=value`; undefined if it is not JSON. */
  readonly fields: string | undefined;
}

const words: Readonly<Record<string, Level>> = {
  ...{ emerg: "error", emergency: "error", alert: "error", panic: "error", fatal: "error", crit: "error" },
  ...{ critical: "error", severe: "error", error: "error", err: "error" },
  ...{ warn: "warn", warning: "warn" },
  ...{ notice: "info", info: "info", information: "info", log: "info" },
  ...{ debug: "debug", trace: "debug", verbose: "debug", silly: "debug", fine: "debug" },
};

const levelNames = ["level", "lvl", "severity", "log.level", "loglevel"];
const messageNames = ["msg", "message"];
// The time of the line is shown already.
const timeNames = ["time", "timestamp", "ts", "@timestamp"];

/** A level as a word, or as a number of pino and bunyan. */
function levelIn(value: unknown): Level | undefined {
  if (typeof value === "string")
    return Object.hasOwn(words, value.toLowerCase()) ? words[value.toLowerCase()] : undefined;
  // Other programs count from 0 to 7, in either direction.
  if (typeof value !== "number" || value < 10) return undefined;
  return value >= 50 ? "error" : value >= 40 ? "warn" : value >= 30 ? "info" : "debug";
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  if (!/^\s*\{.*\}\s*$/s.test(text)) return undefined;
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}

const shown = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** The first of the fields that is there. */
function first(fields: ReadonlyMap<string, unknown>, names: readonly string[]): string | undefined {
  return names.find((name) => fields.has(name));
}

function readJson(all: Readonly<Record<string, unknown>>): Read {
  const fields = new Map(Object.entries(all));
  const named = first(fields, levelNames);
  const level = named === undefined ? undefined : levelIn(fields.get(named));
  if (named !== undefined && level !== undefined) fields.delete(named);
  const member = first(fields, messageNames);
  const message = member === undefined ? "" : shown(fields.get(member));
  if (member !== undefined) fields.delete(member);
  const time = first(fields, timeNames);
  if (time !== undefined) fields.delete(time);
  return { level, message, fields: [...fields].map(([name, value]) => `${name}=${shown(value)}`).join(" ") };
}

// A time, in brackets or not, before the level.
const time = String.raw`(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[ ]?[+-]\d\d:?\d\d|[ ]UTC)?\]?(?:[ ]\[\d+\])?[ ]+)?`;
// In small letters it is a level only if it stands out: "info about it" is a sentence.
const standsOut = new RegExp(String.raw`^\s*${time}(?:[[(<](\w+)[\])>]|(\w+):(?=\s|$)|([A-Z]+)(?=[\s|]|$))`);
const assigned = /(?:^|\s)(?:level|lvl|severity)="?(\w+)"?(?=\s|$)/i;
const exception = /^(?:Uncaught )?[A-Z]\w*(?:Error|Exception):/;

function levelOfText(text: string): Level | undefined {
  // The rest of a long line says nothing about its level.
  const begin = text.slice(0, 300);
  const [, ...found] = standsOut.exec(begin) ?? [];
  const level = levelIn(found.find((word) => word !== undefined)) ?? levelIn(assigned.exec(begin)?.[1]);
  return level ?? (exception.test(begin) ? "error" : undefined);
}

/** Escape sequences of terminals, which have colours in them. */
const escapes = /\u001b\[[0-9;?]*[A-Za-z]/g;

/** Reads a line. */
export function readLine(text: string): Read {
  const plain = text.includes("\u001b[") ? text.replace(escapes, "") : text;
  const all = objectIn(plain);
  return all ? readJson(all) : { level: levelOfText(plain), message: plain, fields: undefined };
}

/** Whether a line is at least as grave as a level. Lines without a level are not. */
export const isAtLeast = (level: Level | undefined, wanted: Level): boolean =>
  level !== undefined && levels.indexOf(level) <= levels.indexOf(wanted);

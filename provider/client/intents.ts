// What a provider was about to create, on disk before it is sent: a process that is killed in between leaves a trace by
// which the next run finds what it made, instead of making it again. And what it made and handed over: an engine that is
// killed may not have written that down. Holds no secrets.
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { fdatasync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { isObject } from "../../api/schema.ts";

/** One create that was begun. While it is on disk, the engine cannot have the id of what it made. */
export interface Intent {
  /** Whose it is; one intent an owner. */
  readonly owner: string;
  /** Random identifier of this one create; an object that can carry a tag carries it. */
  readonly op: string;
  readonly endpoint: string;
  /** What it is made in: an App, or the kind of thing and where it is. */
  readonly place: string;
  readonly name: string;
  /** What was there before, by key, where what is made carries no tag. */
  readonly before?: readonly string[];
  /** Milliseconds since 1970: when it was begun. */
  readonly at?: number;
}

/** Something that was made and whose id the engine was told. */
export interface Handed {
  readonly owner: string;
  readonly op: string;
  readonly endpoint: string;
  /** The resource's id. */
  readonly id: string;
  /** The state it was made for; undefined where an older version wrote the note. */
  readonly stack?: string;
}

/** The intents of this computer's user. */
export interface Intents {
  /** The unsettled intent of an owner. Reads memory alone: check asks too. */
  find(owner: string | undefined): Intent | undefined;
  /** Writes an intent down. It is on the disk when this resolves. */
  write(intent: Intent): Promise<void>;
  /** The unsettled intents of a place, oldest first. */
  openIn(place: string): readonly Intent[];
  /** What was made for an owner in a place is nobody else's: no other intent of the place takes it for its own. */
  notTheirs(owner: string | undefined, place: string, keys: readonly string[]): void;
  /** Forgets the intent of an owner: the `id` is about to be handed to the engine, for a state, or nothing was made. */
  settle(owner: string | undefined, id?: string, stack?: string): void;
  /** What earlier runs, which ended within a day, made last for an owner and handed over, a state each, and nobody deleted since. */
  handed(owner: string | undefined): readonly Handed[];
  /** Forgets what was handed over: it is gone. */
  forget(owner: string | undefined, id: string): void;
}

const hasTexts = (value: unknown, keys: readonly string[]): boolean =>
  isObject(value) && keys.every((key) => typeof value[key] === "string");

const isIntent = (value: unknown): value is Intent => hasTexts(value, ["owner", "op", "endpoint", "place", "name"]);

const isHanded = (value: unknown): value is Handed => hasTexts(value, ["owner", "op", "endpoint", "id"]);

/** Milliseconds after which an id that was handed over is no news to anybody. */
const toldFor = 24 * 60 * 60 * 1000;

/** Opens the intents below Pulumi's home. A folder that cannot be written is told to `warn`, once, and done without. */
export function openIntents(
  warn: (message: string) => void,
  home = process.env["PULUMI_HOME"] || join(homedir(), ".pulumi"),
): Intents {
  const dir = join(home, "machines", "intents");
  const found = readJournals(dir);
  const known = new Map(found.intents.map((intent) => [intent.owner, intent]));
  const handed = new Map(found.handed.map((one) => [`${one.owner} ${one.stack ?? ""}`, one]));
  const told = new Map<string, Handed>();
  // When the engine is gone, nobody will write down the id that we return.
  const parent = process.ppid;
  const engine = engineOf(parent);
  const journal = openJournal(dir, engine, (error) =>
    warn(`${dir} cannot be used, so a create that is cut off now could not be found again: ${String(error)}`),
  );
  return {
    find: (owner) => (owner === undefined ? undefined : known.get(owner)),
    write(intent) {
      const before = known.get(intent.owner);
      if (before) journal.end(before.op, undefined);
      known.set(intent.owner, intent);
      return journal.begin(intent);
    },
    openIn: (place) =>
      [...known.values()].filter((intent) => intent.place === place).sort((a, b) => (a.at ?? 0) - (b.at ?? 0)),
    notTheirs(owner, place, keys) {
      for (const intent of [...known.values()].filter((one) => one.place === place && one.owner !== owner)) {
        known.set(intent.owner, { ...intent, before: [...(intent.before ?? []), ...keys] });
        journal.seen(intent.op, keys);
      }
    },
    settle(owner, id, stack) {
      const isOrphaned = process.ppid !== parent || !isAlive(engine);
      const intent = owner === undefined || isOrphaned ? undefined : known.get(owner);
      if (!intent) return;
      known.delete(intent.owner);
      const { op, endpoint } = intent;
      const made: Handed | undefined =
        id === undefined
          ? undefined
          : { ...{ owner: intent.owner, op, endpoint, id }, ...(stack === undefined ? {} : { stack }) };
      if (made) told.set(made.owner, made);
      journal.end(op, made);
    },
    handed: (owner) => [...handed.values()].filter((one) => one.owner === owner),
    forget(owner, id) {
      for (const some of [handed, told])
        for (const [key, one] of some) {
          if (one.owner !== owner || one.id !== id) continue;
          some.delete(key);
          journal.forget(one.op);
        }
    },
  };
}

interface Journal {
  begin(intent: Intent): Promise<void>;
  end(op: string, made: Handed | undefined): void;
  forget(op: string): void;
  seen(op: string, keys: readonly string[]): void;
}

/**
 * One file a process, to which lines are added: an intent; the `op` of one that is settled, with the id where there is one;
 * the `op` of what is gone. Whoever wrote the others.
 */
function openJournal(dir: string, engine: number, failed: (error: unknown) => void): Journal {
  const sync = promisify(fdatasync);
  let file: number | undefined;
  let warned = false;
  const attempt = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      if (!warned) failed(error);
      warned = true;
    }
  };
  const add = (line: object): void =>
    attempt(() => {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      file ??= openSync(join(dir, `${process.pid}-${engine}-${randomUUID()}.jsonl`), "ax", 0o600);
      writeSync(file, `${JSON.stringify(line)}\n`);
    });
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  /** One flush for everybody who wrote before it began: the disk takes milliseconds, however little there is. */
  const flush = (): Promise<void> =>
    (next ??= running.then(() => {
      next = undefined;
      const flushed = file === undefined ? Promise.resolve() : sync(file);
      running = flushed.catch((error: unknown) => attempt(() => throwing(error)));
      return running;
    }));
  return {
    begin(intent) {
      add(intent);
      return flush();
    },
    end: (op, made) => add({ settled: op, ...made }),
    forget: (op) => add({ gone: op }),
    seen: (op, keys) => add({ seen: op, keys }),
  };
}

const throwing = (error: unknown): never => {
  throw error as Error;
};

interface Journaled {
  readonly path: string;
  readonly intents: readonly Intent[];
  readonly handed: readonly Handed[];
  /** What is settled, by `op`. */
  readonly settled: readonly string[];
  /** What is gone, by `op`. */
  readonly gone: readonly string[];
  /** What others have made since, by the `op` it is not of. */
  readonly seen: readonly { readonly op: string; readonly keys: readonly string[] }[];
  readonly alive: boolean;
}

/** What no journal says is settled, and what was handed over and is not gone. Journals with nothing left to say are removed. */
function readJournals(dir: string): Pick<Journaled, "intents" | "handed"> {
  const journals = listed(dir).map((name) => readJournal(join(dir, name), name.split("-").map(Number)));
  const settled = new Set(journals.flatMap((journal) => journal.settled));
  const gone = new Set(journals.flatMap((journal) => journal.gone));
  const seen = journals.flatMap((journal) => journal.seen);
  const open = ({ intents }: Journaled) =>
    intents
      .filter(({ op }) => !settled.has(op))
      .map((intent) => {
        const others = seen.filter(({ op }) => op === intent.op).flatMap(({ keys }) => keys);
        return others.length === 0 ? intent : { ...intent, before: [...(intent.before ?? []), ...others] };
      });
  const there = ({ handed }: Journaled) => handed.filter(({ op }) => !gone.has(op));
  const kept = needed(
    journals,
    journals.filter((one) => one.alive || open(one).length > 0 || there(one).length > 0),
  );
  for (const { path } of journals.filter((journal) => !kept.includes(journal))) {
    try {
      rmSync(path, { force: true });
    } catch {
      // It says nothing, and is as well left there.
    }
  }
  const ended = journals.filter(({ alive }) => !alive);
  return { intents: ended.flatMap(open), handed: ended.flatMap(there) };
}

/** Journals that stay, and those that say of what is in them that it is settled or gone: without these it would come back. */
function needed(journals: readonly Journaled[], staying: readonly Journaled[]): readonly Journaled[] {
  const spokenOf = new Set(staying.flatMap(({ intents, handed }) => [...intents, ...handed].map(({ op }) => op)));
  const more = journals.filter(
    (one) =>
      !staying.includes(one) &&
      [...one.settled, ...one.gone, ...one.seen.map(({ op }) => op)].some((op) => spokenOf.has(op)),
  );
  return more.length === 0 ? staying : needed(journals, [...staying, ...more]);
}

/** A journal is at work while its process and the engine that started it are: what is in it is on its way into a state. */
function readJournal(path: string, [pid = 0, engine = 0]: readonly number[]): Journaled {
  const lines = textOf(path)
    .split("\n")
    .map((line): unknown => {
      try {
        return JSON.parse(line);
      } catch {
        // Half a line is one whose request was never sent: it is whole before that.
        return undefined;
      }
    });
  const under = (key: string) =>
    lines.flatMap((line) => (isObject(line) && typeof line[key] === "string" ? [line[key]] : []));
  return {
    path,
    intents: lines.filter(isIntent),
    handed: isRecent(path) ? lines.filter(isHanded) : [],
    settled: under("settled"),
    gone: under("gone"),
    seen: lines.flatMap((line) =>
      isObject(line) && typeof line["seen"] === "string" && Array.isArray(line["keys"])
        ? [{ op: line["seen"], keys: line["keys"].map(String) }]
        : [],
    ),
    alive: pid !== process.pid && isAlive(pid) && isAlive(engine),
  };
}

function isRecent(path: string): boolean {
  try {
    return Date.now() - statSync(path).mtimeMs < toldFor;
  } catch {
    return false;
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Pulumi's host of dynamic resources is started by a shell script, and the engine is what started that. */
function engineOf(parent: number): number {
  const [name = "", above = parent] = processOf(parent);
  return /^(ba|da|z)?sh$/.test(name) ? above : parent;
}

/** Name and parent of a process, where the computer tells. */
function processOf(pid: number): [string, number] | [] {
  try {
    const args = ["-o", "ppid=,comm=", "-p", String(pid)];
    const told = textOf(`/proc/${pid}/stat`) || execFileSync("ps", args, { encoding: "utf8" });
    const [, linux, above] = /^\d+ \((.*)\) \S (\d+) /s.exec(told) ?? [];
    if (linux !== undefined) return [linux, Number(above)];
    const [, ppid, command = ""] = /^\s*(\d+)\s+(.*?)\s*$/s.exec(told) ?? [];
    return ppid === undefined ? [] : [basename(command).replace(/^-/, ""), Number(ppid)];
  } catch {
    return [];
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function listed(dir: string): string[] {
  try {
    return readdirSync(dir).filter((name) => /^\d+-\d+-.*\.jsonl$/.test(name));
  } catch {
    return [];
  }
}

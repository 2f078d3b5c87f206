// A journal of creates on the disk. An entry is written before its request is sent. After a killed run, the next one finds the
// object by that entry and does not create it again. A second kind of entry notes ids that were delivered to the engine, because
// a killed engine may not have written them down. The journal has no secrets.
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  closeSync,
  fdatasync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { isObject } from "../../api/schema.ts";
import { backendId } from "./backend.ts";

/** One started create. While it is in the journal, the engine cannot have the id of the object. */
export interface Intent {
  /** Owner of the object. An owner has at most one intent in each backend. */
  readonly owner: string;
  /** Random identifier of this create. An object that can carry tags carries it. */
  readonly op: string;
  readonly endpoint: string;
  /** The place of the object: an App, or the kind of object and its parent. */
  readonly place: string;
  readonly name: string;
  /** Digests of the inputs that nothing can change or show later, as JSON, if the kind has such inputs. */
  readonly fixedInputs?: string;
  /** Keys of the objects that existed before, if the new object has no tag. */
  readonly before?: readonly string[];
  /** Time of the request, in milliseconds since 1970. */
  readonly at?: number;
  /** Times of later requests that write the object of this create again, in milliseconds since 1970, oldest first. */
  readonly again?: readonly number[];
  /** The backend of the state, as the journal knows it: stacks of two backends may have the same owners. */
  readonly backend?: string;
}

/** A created object whose id was delivered to the engine. */
export interface Delivered {
  readonly owner: string;
  readonly op: string;
  readonly endpoint: string;
  /** The resource's id. */
  readonly id: string;
  /** The state it was created for; undefined in entries of older versions. */
  readonly stack?: string;
}

/** The journal of this computer's user. */
export interface Journal {
  /** The unsettled intent of an owner in this backend. It reads memory only, because check calls it too. */
  find(owner: string | undefined): Intent | undefined;
  /** Writes an intent. It is on the disk when the promise resolves. */
  write(intent: Intent): Promise<void>;
  /** The unsettled intents of a place, oldest first. */
  openIn(place: string): readonly Intent[];
  /** Excludes objects created for one owner: no other intent of the place adopts them. */
  excludeKeys(owner: string | undefined, place: string, keys: readonly string[]): void;
  /** Removes the intent of an owner. Either the `id` is about to be delivered to the engine, or nothing was created. */
  settle(owner: string | undefined, id?: string, stack?: string): void;
  /** The last object of an owner in each state that earlier runs of the last day delivered, and that was not deleted since. */
  delivered(owner: string | undefined): readonly Delivered[];
  /** Removes a delivered object from the journal, because it was deleted. */
  forget(owner: string | undefined, id: string): void;
}

/** A journal with a file, which a process that exits need not close. */
export interface OpenJournal extends Journal {
  /** Closes the file; nothing more is written. */
  close(): void;
}

const hasTexts = (value: unknown, keys: readonly string[]): boolean =>
  isObject(value) && keys.every((key) => typeof value[key] === "string");

const isIntent = (value: unknown): value is Intent => hasTexts(value, ["owner", "op", "endpoint", "place", "name"]);

const isDelivered = (value: unknown): value is Delivered => hasTexts(value, ["owner", "op", "endpoint", "id"]);

/** Milliseconds for which delivered ids are kept. */
const retention = 24 * 60 * 60 * 1000;

/** Opens the journal in Pulumi's home folder. If the folder cannot be written, `warn` is called once and nothing is kept. */
export function openJournal(
  warn: (message: string) => void,
  home = process.env["PULUMI_HOME"] || join(homedir(), ".pulumi"),
  backend = backendId(),
): OpenJournal {
  const dir = join(home, "machines", "intents");
  const found = readJournals(dir);
  const keyOf = (owner: string, at: string | undefined): string => `${owner} ${at ?? ""}`;
  const known = new Map(found.intents.map((intent) => [keyOf(intent.owner, intent.backend), intent]));
  /** An older version did not note the backend. */
  const own = (owner: string): Intent | undefined =>
    known.get(keyOf(owner, backend)) ?? known.get(keyOf(owner, undefined));
  const delivered = new Map(found.delivered.map((one) => [`${one.owner} ${one.stack ?? ""}`, one]));
  const deliveredNow = new Map<string, Delivered>();
  // Without its engine, nothing saves the id that we return.
  const parent = process.ppid;
  const engine = engineOf(parent);
  const journal = openJournalFile(dir, engine, (error) =>
    warn(`${dir} cannot be used, so the object of an interrupted create could not be found again: ${String(error)}`),
  );
  return {
    find: (owner) => (owner === undefined ? undefined : own(owner)),
    write(wanted) {
      const before = own(wanted.owner);
      if (before) {
        journal.end(before.op, undefined);
        known.delete(keyOf(before.owner, before.backend));
      }
      const intent = backend === undefined ? wanted : { ...wanted, backend };
      known.set(keyOf(intent.owner, intent.backend), intent);
      return journal.begin(intent);
    },
    openIn: (place) =>
      [...known.values()].filter((intent) => intent.place === place).sort((a, b) => (a.at ?? 0) - (b.at ?? 0)),
    excludeKeys(owner, place, keys) {
      const mine = owner === undefined ? undefined : own(owner);
      for (const [key, intent] of known) {
        if (intent.place !== place || intent === mine) continue;
        known.set(key, { ...intent, before: [...(intent.before ?? []), ...keys] });
        journal.seen(intent.op, keys);
      }
    },
    settle(owner, id, stack) {
      const isOrphaned = process.ppid !== parent || !isAlive(engine);
      const intent = owner === undefined || isOrphaned ? undefined : own(owner);
      if (!intent) return;
      known.delete(keyOf(intent.owner, intent.backend));
      const { op, endpoint } = intent;
      const entry: Delivered | undefined =
        id === undefined
          ? undefined
          : { ...{ owner: intent.owner, op, endpoint, id }, ...(stack === undefined ? {} : { stack }) };
      if (entry) deliveredNow.set(entry.owner, entry);
      journal.end(op, entry);
    },
    delivered: (owner) => [...delivered.values()].filter((one) => one.owner === owner),
    forget(owner, id) {
      for (const some of [delivered, deliveredNow])
        for (const [key, one] of some) {
          if (one.owner !== owner || one.id !== id) continue;
          some.delete(key);
          journal.forget(one.op);
        }
    },
    close: () => journal.close(),
  };
}

/** The journal of a process that only reads: it is empty, keeps nothing, and is not on the disk. */
export const emptyJournal: Journal = {
  find: () => undefined,
  write: () => Promise.resolve(),
  openIn: () => [],
  excludeKeys: () => undefined,
  settle: () => undefined,
  delivered: () => [],
  forget: () => undefined,
};

let ofProcess: Journal | undefined;

/** The journal of this process. It is read from the disk at the first call. `warn` gets the reason when that fails. */
export const processJournal = (warn: (message: string) => void): Journal => (ofProcess ??= openJournal(warn));

interface JournalFile {
  begin(intent: Intent): Promise<void>;
  end(op: string, entry: Delivered | undefined): void;
  forget(op: string): void;
  seen(op: string, keys: readonly string[]): void;
  close(): void;
}

/**
 * Every process has one file and appends lines to it: an intent, the `op` of a settled one with the id if there is one, or the
 * `op` of a deleted object. The intent itself may be in a file of another process.
 */
function openJournalFile(dir: string, engine: number, failed: (error: unknown) => void): JournalFile {
  const sync = promisify(fdatasync);
  let file: number | undefined;
  let warned = false;
  let isClosed = false;
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
      if (isClosed) return;
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      file ??= openSync(join(dir, `${process.pid}-${engine}-${randomUUID()}.jsonl`), "ax", 0o600);
      writeSync(file, `${JSON.stringify(line)}\n`);
    });
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  /** One flush serves all writes before it, because a flush takes milliseconds however little there is to write. */
  const flush = (): Promise<void> =>
    (next ??= running.then(() => {
      next = undefined;
      const flushed = file === undefined || isClosed ? Promise.resolve() : sync(file);
      running = flushed.catch((error: unknown) => attempt(() => throwing(error)));
      return running;
    }));
  return {
    begin(intent) {
      add(intent);
      return flush();
    },
    end: (op, entry) => add({ settled: op, ...entry }),
    forget: (op) => add({ gone: op }),
    seen: (op, keys) => add({ seen: op, keys }),
    close() {
      if (file !== undefined && !isClosed) closeSync(file);
      isClosed = true;
    },
  };
}

const throwing = (error: unknown): never => {
  throw error as Error;
};

interface Journaled {
  readonly path: string;
  readonly intents: readonly Intent[];
  readonly delivered: readonly Delivered[];
  /** The `op` of each settled intent. */
  readonly settled: readonly string[];
  /** The `op` of each deleted object. */
  readonly gone: readonly string[];
  /** Keys of objects that other creates have created since, with the `op` that must not adopt them. */
  readonly seen: readonly { readonly op: string; readonly keys: readonly string[] }[];
  readonly alive: boolean;
}

/** Reads all unsettled intents, and all delivered objects that still exist. Files that are no longer needed are removed. */
function readJournals(dir: string): Pick<Journaled, "intents" | "delivered"> {
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
  const remaining = ({ delivered }: Journaled) => delivered.filter(({ op }) => !gone.has(op));
  const kept = withReferrers(
    journals,
    journals.filter((one) => one.alive || open(one).length > 0 || remaining(one).length > 0),
  );
  for (const { path } of journals.filter((journal) => !kept.includes(journal))) {
    try {
      rmSync(path, { force: true });
    } catch {
      // The file has nothing that matters, so it may stay.
    }
  }
  const ended = journals.filter(({ alive }) => !alive);
  return { intents: ended.flatMap(open), delivered: ended.flatMap(remaining) };
}

/** The required files, and those that settle some of their entries: without these, the entries would become open again. */
function withReferrers(journals: readonly Journaled[], staying: readonly Journaled[]): readonly Journaled[] {
  const referenced = new Set(
    staying.flatMap(({ intents, delivered }) => [...intents, ...delivered].map(({ op }) => op)),
  );
  const more = journals.filter(
    (one) =>
      !staying.includes(one) &&
      [...one.settled, ...one.gone, ...one.seen.map(({ op }) => op)].some((op) => referenced.has(op)),
  );
  return more.length === 0 ? staying : withReferrers(journals, [...staying, ...more]);
}

/** A file is in use while its process and that process's engine run. Its entries are on their way into a state. */
function readJournal(path: string, [pid = 0, engine = 0]: readonly number[]): Journaled {
  const lines = textOf(path)
    .split("\n")
    .map((line): unknown => {
      try {
        return JSON.parse(line);
      } catch {
        // A line is complete before its request is sent. So a request with a partial line was never sent.
        return undefined;
      }
    });
  const under = (key: string) =>
    lines.flatMap((line) => (isObject(line) && typeof line[key] === "string" ? [line[key]] : []));
  return {
    path,
    intents: lines.filter(isIntent),
    delivered: isRecent(path) ? lines.filter(isDelivered) : [],
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
    return Date.now() - statSync(path).mtimeMs < retention;
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

/** The engine's process id. A shell script stands between the engine and Pulumi's host of dynamic resources. */
function engineOf(parent: number): number {
  const [name = "", above = parent] = processOf(parent);
  return /^(ba|da|z)?sh$/.test(name) ? above : parent;
}

/** Name and parent of a process, if the operating system reports them. */
function processOf(pid: number): [string, number] | [] {
  try {
    const args = ["-o", "ppid=,comm=", "-p", String(pid)];
    const found = textOf(`/proc/${pid}/stat`) || execFileSync("ps", args, { encoding: "utf8" });
    const [, linux, above] = /^\d+ \((.*)\) \S (\d+) /s.exec(found) ?? [];
    if (linux !== undefined) return [linux, Number(above)];
    const [, ppid, command = ""] = /^\s*(\d+)\s+(.*?)\s*$/s.exec(found) ?? [];
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

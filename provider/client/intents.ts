// What a provider was about to create, on disk before it is sent: a process that is killed in between leaves a trace by
// which the next run finds what it made, instead of making it again. Holds no secrets.
import { randomUUID } from "node:crypto";
import { fdatasync, ftruncateSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { isObject } from "../../api/schema.ts";

/** One create that was begun. While it is on disk, the engine cannot have the id of what it made. */
export interface Intent {
  /** Whose it is; one intent an owner. */
  readonly owner: string;
  /** Random identifier of this one create; the object carries it as a tag. */
  readonly op: string;
  readonly endpoint: string;
  readonly app: string;
  readonly name: string;
}

/** The intents of this computer's user. */
export interface Intents {
  /** The unsettled intent of an owner. Reads memory alone: check asks too. */
  find(owner: string | undefined): Intent | undefined;
  /** Writes an intent down. It is on the disk when this resolves. */
  write(intent: Intent): Promise<void>;
  /** Forgets the intent of an owner: the id is about to be handed to the engine, or nothing was made. */
  settle(owner: string | undefined): void;
}

const isIntent = (value: unknown): value is Intent =>
  isObject(value) && ["owner", "op", "endpoint", "app", "name"].every((key) => typeof value[key] === "string");

/** Opens the intents below Pulumi's home. A folder that cannot be written is told to `warn`, once, and done without. */
export function openIntents(
  warn: (message: string) => void,
  home = process.env["PULUMI_HOME"] || join(homedir(), ".pulumi"),
): Intents {
  const dir = join(home, "machines", "intents");
  const known = new Map<string, Intent>();
  for (const intent of unsettled(dir)) known.set(intent.owner, intent);
  // Whoever started us is the engine. When it is gone, nobody will write down the id that we return.
  const engine = process.ppid;
  const journal = openJournal(dir, (error) =>
    warn(`${dir} cannot be used, so a create that is cut off now could not be found again: ${String(error)}`),
  );
  return {
    find: (owner) => (owner === undefined ? undefined : known.get(owner)),
    write(intent) {
      const before = known.get(intent.owner);
      if (before) journal.end(before.op);
      known.set(intent.owner, intent);
      return journal.begin(intent);
    },
    settle(owner) {
      const intent = owner === undefined || process.ppid !== engine ? undefined : known.get(owner);
      if (!intent) return;
      known.delete(intent.owner);
      journal.end(intent.op);
    },
  };
}

interface Journal {
  begin(intent: Intent): Promise<void>;
  end(op: string): void;
}

/** One file a process, to which lines are added: an intent, or the `op` of one that is settled, whoever wrote it. */
function openJournal(dir: string, failed: (error: unknown) => void): Journal {
  const sync = promisify(fdatasync);
  const begun = new Set<string>();
  let file: number | undefined;
  let others = 0;
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
      file ??= openSync(join(dir, `${process.pid}-${process.ppid}-${randomUUID()}.jsonl`), "ax", 0o600);
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
      begun.add(intent.op);
      add(intent);
      return flush();
    },
    end(op) {
      if (!begun.delete(op)) others++;
      // Nothing open and nothing said about anybody else's: an empty file says the same.
      if (begun.size === 0 && others === 0) attempt(() => file !== undefined && ftruncateSync(file));
      else add({ settled: op });
    },
  };
}

const throwing = (error: unknown): never => {
  throw error as Error;
};

interface Journaled {
  readonly path: string;
  readonly intents: readonly Intent[];
  readonly settled: readonly string[];
  readonly alive: boolean;
}

/** What no journal says is settled. Journals that have nothing left to say are removed. */
function unsettled(dir: string): Intent[] {
  const journals = listed(dir).map((name) => readJournal(join(dir, name), name.split("-").map(Number)));
  const settled = new Set(journals.flatMap((journal) => journal.settled));
  const open = ({ intents }: Journaled) => intents.filter(({ op }) => !settled.has(op));
  const kept = journals.filter((journal) => journal.alive || open(journal).length > 0);
  const spokenOf = new Set(kept.flatMap(({ intents }) => intents.map(({ op }) => op)));
  for (const { path, settled: said } of journals.filter((journal) => !kept.includes(journal))) {
    if (said.some((op) => spokenOf.has(op))) continue;
    try {
      rmSync(path, { force: true });
    } catch {
      // It says nothing, and is as well left there.
    }
  }
  return journals.filter(({ alive }) => !alive).flatMap(open);
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
  const settled = lines.flatMap((line) =>
    isObject(line) && typeof line["settled"] === "string" ? [line["settled"]] : [],
  );
  return {
    path,
    intents: lines.filter(isIntent),
    settled,
    alive: pid !== process.pid && isAlive(pid) && isAlive(engine),
  };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
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

// What a provider was about to create, on disk before it is sent: a process that is killed in between leaves a trace by
// which the next run finds what it made, instead of making it again. Holds no secrets.
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
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
  /** Writes an intent down. It is on the disk when this returns. */
  write(intent: Intent): void;
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
  // The owner is a hash of ours; whatever else it might be never becomes a path.
  const file = (owner: string) => join(dir, `${owner.replace(/[^0-9a-zA-Z]/g, "_")}.json`);
  const known = new Map<string, Intent>();
  // Whoever started us is the engine. When it is gone, nobody will write down the id that we return.
  const engine = process.ppid;
  let warned = false;
  const attempt = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      if (!warned)
        warn(`${dir} cannot be used, so a create that is cut off now could not be found again: ${String(error)}`);
      warned = true;
    }
  };
  for (const name of listed(dir)) {
    try {
      const found: unknown = JSON.parse(readFileSync(join(dir, name), "utf8"));
      if (isIntent(found)) known.set(found.owner, found);
    } catch {
      // Half a file is one whose request was never sent: it is written before, and renamed when it is whole.
    }
  }
  return {
    find: (owner) => (owner === undefined ? undefined : known.get(owner)),
    write(intent) {
      known.set(intent.owner, intent);
      attempt(() => {
        mkdirSync(dir, { recursive: true, mode: 0o700 });
        const next = `${file(intent.owner)}.${process.pid}`;
        const handle = openSync(next, "w", 0o600);
        writeSync(handle, JSON.stringify(intent));
        fsyncSync(handle);
        closeSync(handle);
        renameSync(next, file(intent.owner));
      });
    },
    settle(owner) {
      if (owner === undefined || process.ppid !== engine || !known.delete(owner)) return;
      attempt(() => rmSync(file(owner), { force: true }));
    },
  };
}

function listed(dir: string): string[] {
  try {
    return readdirSync(dir).filter((name) => name.endsWith(".json"));
  } catch {
    return [];
  }
}

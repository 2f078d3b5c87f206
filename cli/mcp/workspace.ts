// Where the tools of a session work: a folder and the folders in it, a stack, and the service of that.
import { realpathSync, statSync } from "node:fs";
import { isAbsolute, join, relative, sep } from "node:path";
import { KeyedQueue } from "../../api/keyedQueue.ts";
import type { Api } from "../../provider/client/api.ts";
import { readConfig } from "../../provider/client/config.ts";
import { newClient } from "../../provider/client/connect.ts";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { exportStack, isInProject, openConfig, providerConfig } from "../pulumi.ts";
import { KnownSecrets } from "./known.ts";

/** A stack that a tool is about, as an assistant names it. */
export interface Place {
  /** A folder within that of the session; that one when left out. */
  readonly folder?: string | undefined;
  /** The selected one when left out. */
  readonly stack?: string | undefined;
}

/** Milliseconds for the requests of one call. */
const longestCall = 120_000;

// ASSUMED: the secrets of a stack that others change are known half a minute later. An update of the session reads them again.
const known = 30_000;

/** The folder of a session. */
export class Workspace {
  readonly secrets: KnownSecrets;
  readonly #root: string;
  readonly #warn: (message: string) => void;
  /** The work of the Pulumi CLI, of which one runs at a time: its folder is that of the process. */
  readonly #queue = new KeyedQueue();
  readonly #read = new Map<string, number>();

  constructor(root: string, warn: (message: string) => void) {
    this.#root = realpathSync(root);
    this.#warn = warn;
    this.secrets = new KnownSecrets(process.env);
  }

  /**
   * A folder that a tool names. Pulumi runs the program in it, so it must be within the folder that the user gave to the session.
   * @throws MachinesError `invalid-input` for any other one
   */
  folderOf(named = "."): string {
    const wrong = (why: string): never => {
      throw new MachinesError(
        "invalid-input",
        `folder: got ${JSON.stringify(named)}, ${why}; must be a folder within ${this.#root}, where this server was started`,
      );
    };
    let found = "";
    try {
      found = realpathSync(isAbsolute(named) ? named : join(this.#root, named));
      if (!statSync(found).isDirectory()) return wrong("which is no folder");
    } catch (error) {
      if (error instanceof MachinesError) throw error;
      return wrong(`which cannot be read (${messageOf(error).split(":", 1)[0] ?? ""})`);
    }
    const below = relative(this.#root, found);
    return below === ".." || below.startsWith(`..${sep}`) || isAbsolute(below) ? wrong("which is elsewhere") : found;
  }

  /** Does work of the Pulumi CLI in a folder, after what was begun before. */
  async inFolder<T>({ folder }: Place, work: (folder: string) => Promise<T>): Promise<T> {
    const found = this.folderOf(folder);
    return this.#queue.run("process", () => {
      process.chdir(found);
      return work(found);
    });
  }

  /** The client of a stack's service; outside of a project, that of the environment. */
  async service(place: Place): Promise<Api> {
    const own = await this.inFolder(place, async (folder) => {
      if (place.stack === undefined && !isInProject(folder)) return new Map<string, string>();
      const config = await openConfig(place.stack);
      this.secrets.addConfig(config);
      await this.#readSecrets(folder, place.stack);
      return providerConfig(config);
    });
    const config = readConfig((key) => own.get(key), process.env);
    if (config.token !== undefined) this.secrets.add([{ value: config.token, isCertain: true }]);
    const api = newClient(config, this.#warn);
    return api.within({ at: api.clock.now() + longestCall, allowed: "2m" });
  }

  /** Learns the secrets of a stack, in the folder of its project. */
  async learn(folder: string, stack: string | undefined): Promise<void> {
    this.secrets.addConfig(await openConfig(stack));
    this.#read.delete(keyOf(folder, stack));
    await this.#readSecrets(folder, stack);
  }

  async #readSecrets(folder: string, stack: string | undefined): Promise<void> {
    const key = keyOf(folder, stack);
    if ((this.#read.get(key) ?? -Infinity) + known > performance.now()) return;
    this.secrets.addState(await exportStack(stack, "clear"));
    this.#read.set(key, performance.now());
  }
}

const keyOf = (folder: string, stack: string | undefined): string => JSON.stringify([folder, stack]);

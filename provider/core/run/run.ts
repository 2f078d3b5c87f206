// The memory of one run of the engine: what its program declares, what the state is, and what this run has created, deleted
// and reported. `Runs.begin` creates a new one, which knows nothing of other runs.
import { KeyedQueue } from "../../../api/keyedQueue.ts";
import type { Api } from "../../client/api.ts";
import type { Config } from "../../client/config.ts";
import { newClient } from "../../client/connect.ts";
import { Memo } from "../../client/memo.ts";
import { beginUpdate } from "../../client/update.ts";
import type { Journal } from "../journal.ts";
import { planFile, type PlanFile } from "../observations/planFile.ts";
import { withheld, type Leaf, type Withheld } from "../redaction.ts";
import type { RunInfo } from "../resource.ts";
import { Deletions } from "./deletions.ts";
import { Guards } from "./guards.ts";
import { Program } from "./program.ts";
import { Problems, UnfinishedObjects } from "./reports.ts";
import { StateIds } from "./stateIds.ts";

/** The memory of one run. */
export class Run implements RunInfo {
  readonly program = new Program();
  readonly guards = new Guards(this.program);
  readonly stateIds = new StateIds();
  readonly unfinished = new UnfinishedObjects();
  readonly problems = new Problems();
  readonly deletions = new Deletions();
  readonly createdKeys = new Set<string>();
  readonly creates = new KeyedQueue();
  readonly memo = new Memo();
  /** The objects that this run changes, in an update with a plan. */
  readonly changedObjects = new Set<string>();
  /** The digests that the service had of what they claim, before this run changed them; undefined for what did not exist. */
  readonly claimedBefore = new Map<string, string | undefined>();
  #planFile: PlanFile | undefined;
  readonly #clients = new Memo();
  /** Secrets of its resources, and whether they certainly are. */
  readonly #secrets = new Map<Leaf, boolean>();
  readonly #journal: () => Journal;

  /** @param journal the journal of started creates, which remains after the run; opened on first use */
  constructor(journal: () => Journal) {
    this.#journal = journal;
  }

  get journal(): Journal {
    return this.#journal();
  }

  /** What the preview of a plan saw. */
  get planFile(): PlanFile {
    return (this.#planFile ??= planFile(process.env));
  }

  /** The client of this run for a configuration. `warn` gets the warnings of its first use. */
  clientFor(config: Config, warn: (message: string) => void): Api {
    return this.#clients.get(JSON.stringify(config), () => newClient(config, warn));
  }

  /** Notes secrets of a resource: another resource of the run may use them, and its program may print them. */
  noteSecrets(found: Iterable<Withheld>): void {
    for (const { value, isCertain } of found) this.#secrets.set(value, this.#secrets.get(value) === true || isCertain);
  }

  secrets(): readonly Withheld[] {
    const noted = [...this.#secrets].map(([value, isCertain]) => ({ value, isCertain }));
    return [...noted, ...this.writeOnlySecrets()];
  }

  /** Every text and number that the program gives and that is not stored, so that no message quotes one. */
  writeOnlySecrets(): readonly Withheld[] {
    return this.program.all.flatMap(({ resource, owner }) =>
      withheld(resource.inputFields, this.program.writeOnlyOf(owner), undefined),
    );
  }
}

/** The runs that a process serves, one after the other. */
export class Runs {
  readonly #openJournal: () => Journal;
  #journal: Journal | undefined;
  #current: Run;

  constructor(openJournal: () => Journal) {
    this.#openJournal = openJournal;
    this.#current = this.begin();
  }

  /** The run that the engine is in. */
  get current(): Run {
    return this.#current;
  }

  /** Begins the next run, which knows nothing of the one before. */
  begin(): Run {
    beginUpdate();
    // The file of the journal is read once.
    return (this.#current = new Run(() => (this.#journal ??= this.#openJournal())));
  }
}

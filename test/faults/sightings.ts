// Which rare states a run reached.
import type { ResourceName } from "../../provider/registry.ts";
import type { Asked, Report } from "../support/modelEngine.ts";
import type { Declared, Kept, Stack } from "../support/modelStack.ts";
import { isClaimed } from "./inventory.ts";
import { isGuarded } from "./ledger.ts";
import type { RareState } from "./ways.ts";

/** Inspects a stack before and after each of its runs. */
export class Sightings {
  readonly seen = new Set<RareState>();
  readonly #stack: Stack;
  #before: readonly Kept[] = [];
  #programBefore = new Set<string>();
  #program: readonly Declared[] = [];
  #asked: Asked = {};

  constructor(stack: Stack) {
    this.#stack = stack;
  }

  see(state: RareState): void {
    this.seen.add(state);
  }

  /** Before a run. */
  open(program: readonly Declared[], asked: Asked = {}): void {
    if (this.#program.length > 0) this.#programBefore = new Set(this.#program.map(({ name }) => name));
    if (program.length > 0) this.#program = program;
    this.#before = this.#stack.resources.map((kept) => ({ ...kept }));
    this.#asked = asked;
  }

  /** After a run that was not interrupted. */
  close(report: Report): void {
    const { resources, orphans } = this.#stack;
    const forgotten = new Set(orphans.map(({ name }) => name));
    const errorAt = report.findIndex(({ error }) => error !== undefined);
    for (const [at, { verb, type, name, id, error, made = [], again = 0, why }] of report.entries()) {
      if (verb === "delete" && error === undefined) {
        const before = this.#before.find((kept) => kept.name === name && kept.id === id);
        if (before && (before.mark === "leaving" || !this.#programBefore.has(name)) && why !== "dependent")
          this.see("leftovers of an earlier run are deleted");
        if (before && this.#asked.targets && isClaimed(before, this.#stack.resources))
          this.see("a target is deleted although another resource claims its name");
        if (errorAt >= 0 && errorAt < at && this.#asked.continueOnError)
          this.see("a run continues after an error and deletes");
        if (why === "dependent") this.see("dependents are deleted first");
        if (why === "retained") this.see("a deleted resource is retained");
      }
      const declared = this.#program.find((one) => one.name === name);
      const isReplaced = this.#before.some((kept) => kept.name === name && kept.mark === undefined);
      if (verb === "create" && why === "tainted" && error === undefined) this.see("a tainted resource is replaced");
      if (verb === "create" && (why === "forced" || why === "tainted") && declared && isGuarded(declared))
        this.see("a guarded resource is replaced by force");
      if (verb === "create" && again > 0 && made.length > 0) this.see("a partially created resource is created again");
      if (verb === "create" && error === undefined && forgotten.has(name))
        this.see("a forgotten resource is recreated");
      if (verb === "create" && isReplaced && type === "App" && this.#hasIn("Volume", name))
        this.see("an App with volumes is renamed");
      if (verb === "create" && isReplaced && type === "PostgresCluster" && this.#hasIn("PostgresDatabase", name))
        this.see("a cluster with databases is replaced");
      if (String(error).includes("is protected")) this.see("a change of a protected resource is refused");
    }
    for (const kept of resources.filter(({ mark }) => mark === undefined)) {
      if (isClaimed(kept, this.#stack.resources)) this.see("two resources of a state claim one name");
      const before = this.#before.find((one) => one.id === kept.id && one.type === kept.type);
      const isMade = report.some(({ verb, name }) => verb === "create" && name === kept.name);
      if (before && before.name !== kept.name && !isMade) this.see("a resource moves under an alias");
    }
  }

  #hasIn(type: ResourceName, holder: string): boolean {
    return this.#before.some((kept) => kept.type === type && kept.needs.includes(holder));
  }
}

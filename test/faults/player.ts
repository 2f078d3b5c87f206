// Plays one run of the campaign: first its phases with their faults, then without faults, when everything must converge.
// invariants.ts and ledger.ts have the invariants.
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { bareId } from "../../api/names.ts";
import { isParent } from "../../provider/core/resource.ts";
import type { ResourceName } from "../../provider/registry.ts";
import {
  changes,
  CheckFailed,
  destroy,
  failures,
  importResource,
  NotFound,
  refresh,
  up,
  type Asked,
  type Host,
  type Report,
  type Step,
} from "../support/modelEngine.ts";
import { emptyStack, stateDelete, taint, unprotect, type Declared, type Kept } from "../support/modelStack.ts";
import { resourceOf, withSimulation, type ProviderProcess, type Simulation } from "../support/simulation.ts";
import { isTrouble, liesOf, noTrouble, type Interference, type Trouble } from "./faultPlans.ts";
import { inState, isClaimed, linesOf, onService } from "./inventory.ts";
import { Broken, heldByOriginals, isRefusal, judgeAudit, judgeMade, judgeReport, judgeStep } from "./invariants.ts";
import { isKind, kindNames } from "./kinds.ts";
import { isGuarded, isProtected, judgeValues, Ledger } from "./ledger.ts";
import { OtherClient } from "./others.ts";
import { canary, programOf, versions } from "./programs.ts";
import type { Phase, Scenario } from "./scenario.ts";
import { Sightings } from "./sightings.ts";
import type { RareState, Way } from "./ways.ts";

/** Statistics of one run. */
export interface Played {
  readonly requests: number;
  readonly steps: number;
  readonly failed: number;
  readonly died: number;
  /** Whether the last up succeeded only after a refresh. */
  readonly refreshed: boolean;
  readonly simulatedMs: number;
  readonly states: ReadonlySet<RareState>;
}

/** How a run is played beside others. */
interface Around {
  /** Whether something may go wrong that is not in the scenario. The client that interferes has its token already then. */
  readonly isTroubled?: boolean;
  /** Waits until nothing goes wrong any more. */
  readonly calm?: () => Promise<void>;
  /** The organization of the stack, and of the client that interferes with it. */
  readonly slug?: string;
  /** Called with every line of the log. */
  readonly onLine?: (line: string) => void;
}

/** Plays one run. @throws Broken when an invariant is violated */
export async function play(scenario: Scenario): Promise<Played> {
  return withSimulation("campaign", (simulation) => playOn(simulation, scenario));
}

/** Plays one run with a simulation that may have others. @throws Broken when an invariant is violated */
export async function playOn(simulation: Simulation, scenario: Scenario, around: Around = {}): Promise<Played> {
  const run = new Run(simulation, scenario, around);
  try {
    return await run.play();
  } catch (error) {
    throw new Broken(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n\n${run.logText()}`);
  }
}

/** Milliseconds from one run to the next. */
const betweenRuns = 1000;

/** Milliseconds after which a restarted program counts as one that keeps running. */
const settling = 10_000;

/** Milliseconds after which an unrenewed lease has expired. */
const longestLease = 60_000;

/** Kinds that contain others: creating or deleting them alone affects resources that were not checked. */
const isHolder = (type: ResourceName): boolean => isParent(resourceOf(type));

/** A resource whose creation fails, after all others are done. */
const failing = "failing";
const sibling = (program: readonly Declared[]): Declared => ({
  type: "Secret",
  name: failing,
  inputs: { app: "no-such-app", name: "NONE", value: canary },
  after: program.map(({ name }) => name),
});

/** Special circumstances of a run. */
interface Special {
  readonly settings?: Readonly<Record<string, string>>;
  readonly isLost?: boolean;
  readonly asked?: Asked;
  /** The program of an up. */
  readonly program?: readonly Declared[];
}

class Run {
  readonly #simulation: Simulation;
  readonly #scenario: Scenario;
  readonly #around: Around;
  readonly #otherClient: OtherClient;
  readonly #stack = emptyStack();
  readonly #ledger = new Ledger();
  readonly #sightings: Sightings;
  readonly #log: string[] = [];
  #program: readonly Declared[] = [];
  #version = 0;
  #ups = 0;
  #lost: Kept[] = [];
  /** Whether the state may be outdated in a way that up alone cannot detect. */
  #stale = false;
  /** Whether there has been no fault yet. */
  #calmSoFar: boolean;
  /** Whether the state matches the program, according to the last run. */
  #isSteady = false;
  /** Types whose last step has an unknown result. */
  readonly #unsure = new Set<ResourceName>();
  /** Steps that may or may not have been applied. */
  readonly #cutOff: Pick<Step, "verb" | "type">[] = [];
  /** Steps of the current run that failed. */
  #wrong: Step[] = [];
  /** Warnings about objects that may be in no state. */
  readonly #reported: string[] = [];
  /** Secrets of which a deletion said that they stay set, and that no resource in the state sets. */
  readonly #leftSet = new Set<string>();
  /** The last inputs of everything that was ever in the program, by name. */
  readonly #declared = new Map<string, Declared>();
  #steps = 0;
  #failed = 0;
  #died = 0;
  #lastDied = false;

  constructor(simulation: Simulation, scenario: Scenario, around: Around) {
    this.#simulation = simulation;
    this.#scenario = scenario;
    this.#around = around;
    this.#calmSoFar = around.isTroubled !== true;
    this.#otherClient = new OtherClient(simulation, (line) => this.#say(line), around.slug);
    this.#sightings = new Sightings(this.#stack);
  }

  #say(line: string): void {
    this.#log.push(line);
    this.#around.onLine?.(line);
  }

  /** The log of the run. */
  logText(): string {
    return this.#log.join("\n");
  }

  async play(): Promise<Played> {
    const { service, time } = this.#simulation;
    const from = time.now();
    if (!this.#around.isTroubled) await this.#otherClient.enter();
    for (const phase of this.#scenario.phases) await this.#phase(phase);
    await this.#around.calm?.();
    this.#say("--- nothing goes wrong any more");
    const refreshed = await this.#recover();
    judgeAudit(service.service.audit.after(0, 100_000));
    const [mistake] = this.#simulation.mistakes;
    if (mistake !== undefined) throw new Broken(`the service had an internal error: ${mistake}`);
    return {
      requests: service.requests.length,
      steps: this.#steps,
      failed: this.#failed,
      died: this.#died,
      refreshed,
      simulatedMs: time.now() - from,
      states: this.#sightings.seen,
    };
  }

  async #phase(phase: Phase): Promise<void> {
    const { verb, pick, trouble, way = {} } = phase;
    // A pending import is finished before anything else.
    await this.#import(noTrouble);
    if (way.elsewhere) {
      this.#simulation.moveAway();
      if (this.#lastDied) this.#sightings.see("another computer continues after a kill");
    }
    if (way.isLost) return this.#loseWay(verb);
    if (verb === "up") return this.#up(phase, way);
    for (const one of trouble.others) await this.#interfere(one);
    this.#isSteady = false;
    if (verb === "forget") return this.#forget(pick);
    if (verb === "import") return this.#reimport(pick, trouble);
    if (verb === "refresh") await this.#run(verb, this.#refresh, trouble);
    else {
      this.#ledger.open(this.#stack, undefined, this.#simulation.service.service);
      await this.#run(verb, this.#destroy, trouble);
    }
  }

  readonly #refresh = async (host: Host): Promise<Report> => {
    const attachments = this.#stack.resources.filter(({ type }) => type === "PostgresAttachment");
    const report = await refresh(this.#stack, host);
    // An attachment is gone with its cluster; its secret stays in the App, and is in no state.
    this.#stack.orphans.push(...attachments.filter((kept) => !this.#stack.resources.includes(kept)));
    return report;
  };
  readonly #destroy = (host: Host): Promise<Report> => destroy(this.#stack, host);

  async #up({ pick, trouble }: Phase, way: Way): Promise<void> {
    const before = { program: this.#program, version: this.#version, isSteady: this.#isSteady };
    if (!way.stays || this.#ups === 0) {
      this.#version = Math.min(this.#ups++, versions - 1);
      this.#program = programOf(this.#scenario, this.#version);
    }
    for (const one of trouble.others) await this.#interfere(one);
    const hooked = way.hooks === undefined ? {} : { retries: way.hooks };
    const base = this.#program.map((declared) => ({ ...declared, ...hooked }));
    const program = way.sibling ? [...base, sibling(base)] : base;
    const asked = this.#asked(way, pick);
    const report = await this.#upTo(program, trouble, { asked });
    if (!report?.some(({ error }) => error instanceof CheckFailed || isRefusal(error))) return;
    // After a forced replacement there is no old value to return to, so sometimes the run just continues.
    if (way.force && pick % 2 === 1) return;
    const isCalm = this.#calmSoFar;
    const done = changes(report).filter(({ error }) => error === undefined);
    if (pick % 2 === 1 || !before.isSteady || way.force || !this.#canGoBack(before.program, done))
      return this.#allow(isCalm);
    this.#sightings.see("a refusal is undone");
    this.#program = this.#asGrown(before.program);
    this.#version = before.version;
    const back = await this.#upTo(this.#program);
    if (isCalm && back && failures(back).length > 0)
      throw new Broken(`a refusal cannot be taken back: ${whatFailed(back)}`);
  }

  /**
   * Whether everything done besides the refused step can be undone by the program alone. It cannot undo two resources of
   * one name, another alias, or a finished replacement, which undo-replacement brings back.
   */
  #canGoBack(program: readonly Declared[], done: Report): boolean {
    const made = done.filter(({ verb }) => verb === "create").map(({ name }) => name);
    const names = new Set([...made, ...program.map(({ name }) => name)]);
    const { resources: kept } = this.#stack;
    return kept.every(({ name, mark }) => names.has(name) && !mark) && done.every(({ why }) => why === undefined);
  }

  /** A program in which extended volumes keep their size. */
  #asGrown(program: readonly Declared[]): Declared[] {
    return program.map((declared) => {
      const { name, aliases = [], inputs } = declared;
      const kept = this.#stack.resources.find(({ name: one, mark }) => !mark && [name, ...aliases].includes(one));
      const [size, before] = [inputs["sizeGb"], kept?.inputs["sizeGb"]];
      if (typeof size !== "number" || typeof before !== "number" || before <= size) return declared;
      return { ...declared, inputs: { ...inputs, sizeGb: before } };
    });
  }

  /** Selects the resources that are forced or targets. */
  #asked({ force, target, continueOnError }: Way, pick: number): Asked {
    const chosen = <T>(all: readonly T[]): T | undefined => all[pick % Math.max(1, all.length)];
    const able = this.#stack.resources.filter((kept) => this.#mayForce(kept));
    const holding = able.filter(isGuarded);
    const forced = force && chosen(pick % 2 === 1 && holding.length > 0 ? holding : able)?.name;
    if (force === "taint" && forced !== undefined) taint(this.#stack, forced);
    const names = new Set(this.#program.map(({ name }) => name));
    const { resources } = this.#stack;
    const removed = resources.filter(({ name }) => !names.has(name));
    const claimed = removed.filter((kept) => isClaimed(kept, resources));
    // Deleting a resource that another one claims is rare, and has lost the most data.
    const gone = (claimed.length > 0 ? claimed : removed).map(({ name }) => name);
    const isTargeted = target === true || (claimed.length > 0 && pick % 3 === 0);
    const declared = this.#program.filter(({ type }) => !isHolder(type)).map(({ name }) => name);
    const targeted =
      isTargeted && forced === undefined ? chosen(gone.length > 0 && pick % 4 < 3 ? gone : declared) : undefined;
    return {
      ...(forced !== undefined && force === "replace" ? { replace: [forced] } : {}),
      ...(targeted === undefined ? {} : { targets: [targeted] }),
      ...(continueOnError ? { continueOnError } : {}),
    };
  }

  /** Whether a second object can be created although the engine does not know that the first must be deleted. */
  #mayForce({ name, type, mark, inputs }: Kept): boolean {
    const declared = this.#program.find((one) => one.name === name);
    if (!declared || mark !== undefined) return false;
    // What is forced loses its former names, so an original with one of them would no longer be guarded.
    const { aliases = [] } = declared;
    if (this.#stack.resources.some((kept) => kept.mark === "leaving" && aliases.includes(kept.name))) return false;
    if (declared.deleteBeforeReplace) return true;
    if (!isKind(type, "forcible")) return false;
    if (type === "App" || type === "PostgresCluster" || type === "Machine") {
      const { mounts = [] } = (inputs["config"] ?? {}) as { mounts?: readonly unknown[] };
      return declared.inputs["name"] === undefined && mounts.length === 0;
    }
    return true;
  }

  /** The next version allows every loss, so the refused step is done. */
  async #allow(isCalm: boolean): Promise<void> {
    this.#sightings.see("a refusal is followed by permission");
    unprotect(this.#stack);
    const allowed = this.#asGrown(programOf(this.#scenario, this.#version, true));
    const names = new Set(allowed.map(({ name }) => name));
    const aliases = new Set(allowed.flatMap((declared) => declared.aliases ?? []));
    const isDeclared = ({ name, mark }: Kept) => names.has(name) || (mark === undefined && aliases.has(name));
    const gone = this.#stack.resources.filter((kept) => isProtected(kept) && !isDeclared(kept));
    // A removed resource must return to the program to allow its loss; a replaced one exists only in the state.
    const back = gone.filter(({ mark }) => mark === undefined);
    for (const kept of gone.filter(({ mark }) => mark === "leaving")) {
      const isBack = back.some(({ name }) => name === kept.name);
      if (!isBack) stateDelete(this.#stack, kept);
    }
    if (back.length > 0)
      await this.#upTo([
        ...allowed,
        ...back.map(({ name, type, inputs }) => {
          const { inputs: last = inputs, deleteBeforeReplace } = this.#declared.get(name) ?? {};
          const options = deleteBeforeReplace === undefined ? {} : { deleteBeforeReplace };
          return { type, name, inputs: { ...last, deletionProtection: false }, ...options };
        }),
      ]);
    this.#program = allowed;
    let report = await this.#upTo(this.#program);
    // If its parent is deleted first, the engine uses the inputs in the state, so the permission must already be there. What is in a
    // cluster may have to get it without the cluster, which would be replaced in the same run. An original whose replacement was
    // targeted is still to be deleted, and is a target itself.
    for (const isAlone of [false, true]) {
      if (!report || !failures(report).some(({ error }) => messageOf(error).includes("pulumi up --target"))) break;
      const held = this.#stack.resources.filter(
        (kept) => kept.mark !== "replacing" && isGuarded(kept) && !(isAlone && isHolder(kept.type)),
      );
      const isAsked = ({ name, aliases: olds = [] }: Declared) =>
        held.some((kept) => kept.name === name || olds.includes(kept.name));
      const removed = held.filter((kept) => !isDeclared(kept));
      const targets = [...allowed.filter(isAsked), ...removed].map(({ name }) => name);
      await this.#upTo(allowed, noTrouble, { asked: { targets } });
      report = await this.#upTo(this.#program);
    }
    if (isCalm && report) this.#demand("an up that may lose everything", report);
  }

  /** One up of a program. */
  async #upTo(
    program: readonly Declared[],
    trouble: Trouble = noTrouble,
    special: Special = {},
  ): Promise<Report | undefined> {
    for (const declared of program) this.#declared.set(declared.name, declared);
    const { asked } = special;
    this.#ledger.open(this.#stack, program, this.#simulation.service.service, asked?.targets);
    this.#isSteady = false;
    const report = await this.#run("up", (host) => up(this.#stack, program, host, asked), trouble, {
      ...special,
      program,
    });
    if (!report) return report;
    const held = heldByOriginals(report, this.#stack);
    if (held.length > 0) return this.#upAfterOriginals(new Set(held.map(({ name }) => name)), program, special);
    if (failures(report).length > 0) return report;
    const { targets } = asked ?? {};
    // What an up does not target may still lack what a refused run before it has deleted.
    const promised = targets === undefined ? program : program.filter(({ name }) => targets.includes(name));
    if (!liesOf(trouble)) judgeValues(promised, this.#stack, this.#simulation.service.service, this.#unsure);
    this.#isSteady = targets === undefined;
    return report;
  }

  /** As the message of the refused run says: an up with the previous inputs, which deletes the originals, and then the program. */
  async #upAfterOriginals(
    names: ReadonlySet<string>,
    program: readonly Declared[],
    special: Special,
  ): Promise<Report | undefined> {
    const previous = program
      .filter(({ name }) => name !== failing)
      .map((declared) => {
        const kept = this.#stack.resources.find(({ name, mark }) => name === declared.name && mark === undefined);
        return kept && names.has(declared.name) ? { ...declared, inputs: kept.inputs } : declared;
      });
    const report = await this.#upTo(previous);
    const isHeld = this.#stack.resources.some(({ name, mark }) => mark === "leaving" && names.has(name));
    if (isHeld && this.#calmSoFar) throw new Broken(`the original of ${[...names].join()} is not deleted`);
    if (isHeld) return report;
    return this.#upTo(program, noTrouble, special);
  }

  /** A run with the endpoint of another, empty service: it must not forget, create or replace anything. */
  async #loseWay(verb: Phase["verb"]): Promise<void> {
    const before = inState(this.#stack);
    const isSteady = this.#isSteady && !this.#stale && this.#unsure.size === 0;
    // What a failed try has reported stays in the state, so that the engine updates the resource.
    const isPending = ({ mark, failed }: Kept) => mark !== undefined || failed.length > 0;
    if (verb === "up" && isSteady && !this.#stack.resources.some(isPending)) {
      const work = (host: Host) => up(this.#stack, this.#program, host);
      const report = await this.#run("up", work, noTrouble, { isLost: true, program: this.#program });
      const done = changes(report ?? []);
      if (done.length > 0) throw new Broken(`an up at another service does ${stepsOf(done)}`);
      this.#sightings.see("an up at another service");
    } else {
      await this.#run("refresh", this.#refresh, noTrouble, { isLost: true });
      this.#sightings.see("a refresh at another service");
    }
    const after = inState(this.#stack);
    const forgotten = before.filter((line) => !after.includes(line));
    if (forgotten.length > 0) throw new Broken(`a run at another service forgets ${forgotten.join(", ")}`);
  }

  /** `pulumi state delete` of a resource that the next up recreates. */
  #forget(pick: number): void {
    const able = this.#stack.resources.filter(
      ({ name, type, mark }) =>
        isKind(type, "recreated") &&
        mark !== "replacing" &&
        !this.#stack.resources.some(({ needs }) => needs.includes(name)),
    );
    const chosen = able[pick % Math.max(1, able.length)];
    if (!chosen) return;
    this.#say(`--- state delete ${chosen.name}`);
    stateDelete(this.#stack, chosen);
  }

  async #reimport(pick: number, trouble: Trouble): Promise<void> {
    const stack = this.#stack;
    const able = stack.resources.filter(
      ({ type, mark, failed }) =>
        mark === undefined &&
        failed.length === 0 &&
        resourceOf(type).noImport === undefined &&
        isKind(type, "importable") &&
        // An import claims all metadata of a Machine.
        (type !== "Machine" || !stack.resources.some((kept) => kept.type === "MachineMetadata")),
    );
    const chosen = able[pick % Math.max(1, able.length)];
    if (!chosen) return;
    stack.resources = stack.resources.filter((kept) => kept !== chosen);
    this.#lost.push(chosen);
    await this.#import(trouble);
  }

  /** Imports forgotten resources again, and runs up for the values that a read cannot return. */
  async #import(trouble: Trouble): Promise<void> {
    for (const lost of this.#lost) {
      const report = await this.#run("import", (host) => importResource(this.#stack, lost, host), trouble);
      if (report === undefined) return;
      const [failed] = failures(report);
      // It may have been deleted meanwhile, by others, by an interrupted run, or with its parent.
      const there = onService(this.#simulation.service.service);
      const isThere = linesOf(lost).some((line) => there.includes(line));
      const isGone = failed?.error instanceof NotFound && (this.#stale || !isThere);
      if (failed && !isGone) return;
      this.#lost = this.#lost.filter((other) => other !== lost);
      await this.#upTo(this.#program);
    }
  }

  /** One run in a process of its own; undefined if the process died. */
  async #run(
    name: string,
    work: (host: Host) => Promise<Report>,
    trouble: Trouble,
    { settings = {}, isLost = false, asked, program = [] }: Special = {},
  ): Promise<Report | undefined> {
    const { service, start, wait } = this.#simulation;
    await wait(betweenRuns);
    const how = { ...asked, ...(isLost ? { isLost } : {}), ...(isTrouble(trouble) ? trouble : {}) };
    this.#say(`--- ${name} ${JSON.stringify(how)}`);
    service.fail(...trouble.faults);
    this.#calmSoFar &&= !isTrouble(trouble);
    const { death, slow } = trouble;
    this.#sightings.open(program, asked);
    this.#wrong = [];
    const process = start({ slow, settings, isLost, ...(death ? { death } : {}) });
    const report = await process.run(() => work(this.#host(process)));
    service.service.faults.clear();
    this.#otherClient.runEnded();
    this.#judgeStrangers();
    this.#note(process);
    this.#lastDied = report === "died";
    this.#ledger.close(this.#stack, service.service, this.#lastDied);
    if (report === "died") {
      judgeReport([], process.said, service);
      this.#died++;
      this.#cut(this.#stack.pending);
      this.#say(`    the process died; begun were ${JSON.stringify(this.#stack.pending)}`);
      this.#stale ||= this.#stack.pending.some(({ verb }) => verb === "delete" || verb === "update");
      return undefined;
    }
    const mayRefuse = [...program, ...this.#stack.resources].some(isGuarded) || this.#mayBeRefused(program, asked);
    judgeReport(report, process.said, service, mayRefuse);
    this.#steps += report.length;
    this.#failed += failures(report).length;
    if (isLost) return report;
    judgeMade(report, this.#stack, service.service);
    this.#sightings.close(report);
    if (name === "refresh" && !isTrouble(trouble) && failures(report).length === 0) this.#unsure.clear();
    const held = heldByOriginals(report, this.#stack);
    const failed = failures(report).filter(
      (step) => step.name !== failing && !(mayRefuse && isRefusal(step.error)) && !held.includes(step),
    );
    if (this.#calmSoFar) this.#demand(name, failed);
    // A step that was under way when the program was refused is not in the report.
    const unreported = this.#wrong.filter(
      (one) => !isRefusal(one.error) && !report.some((step) => step.verb === one.verb && step.name === one.name),
    );
    this.#cut([...failed, ...unreported]);
    this.#stale ||= [...failed, ...unreported].some(({ verb }) => verb === "delete");
    return report;
  }

  #note(process: ProviderProcess): void {
    const warnings = process.said.filter(({ kind }) => kind === "warning").map(({ text }) => text);
    for (const text of warnings) this.#say(`      warning: ${text}`);
    this.#reported.push(...warnings.filter((text) => text.includes("pulumi-machines orphans")));
    for (const text of warnings) {
      const [, name, app, setBy] =
        /^(\w+) of App (\S+) stays set: (?:something else has written it|"(.+)" of this program sets it)/.exec(text) ??
        [];
      // A resource that is replaced is deleted first. If the run ends then, the next program may no longer have it.
      const isSet = this.#stack.resources.some((kept) => kept.name === setBy && kept.mark === undefined);
      if (name !== undefined && !isSet) this.#leftSet.add(`Secret ${app}/${name}`);
    }
  }

  /** Records steps that may or may not have been applied. */
  #cut(steps: readonly Pick<Step, "verb" | "type">[]): void {
    this.#cutOff.push(...steps);
    // Its request may only be late, and write its values over those of the next run. A refresh finds that.
    const writes = ({ type }: Pick<Step, "type">): boolean => type === "MachineMetadata" || isKind(type, "written");
    this.#stale ||= this.#around.isTroubled === true && steps.some(writes);
    // Its children may be gone with it.
    for (const { type } of steps)
      for (const kind of kindNames)
        if (kind === type || type === "App" || (type.startsWith("Postgres") && kind.startsWith("Postgres")))
          this.#unsure.add(kind);
  }

  #mayBeRefused(program: readonly Declared[], asked: Asked = {}): boolean {
    return (
      asked.targets !== undefined ||
      // An App replaced by force may contain a volume that the state has forgotten.
      asked.replace !== undefined ||
      this.#stack.resources.some(({ tainted }) => tainted) ||
      program.some(({ protect }) => protect) ||
      // An App with volumes, even removed ones, is not renamed unless it allows their loss.
      (program.some(({ type, inputs }) => type === "App" && inputs["forceDestroy"] !== true) &&
        this.#stack.resources.some(({ type }) => type === "Volume")) ||
      // An App is not deleted with a Machine of others or a retained volume in it.
      this.#otherClient.strangers().length > 0 ||
      this.#stack.orphans.length > 0 ||
      this.#stack.resources.some(({ options }) => options?.protect || options?.retainOnDelete)
    );
  }

  #host(process: ProviderProcess): Host {
    const { time, watch } = this.#simulation;
    return {
      bound: (type) => process.bound(type),
      parallel: this.#scenario.parallel,
      configuration: process.configuration,
      around: async (step, _inputs, work) => {
        const from = time.now();
        let error: unknown;
        const { result, watched } = await watch(async () => {
          try {
            return await work();
          } catch (thrown) {
            error = thrown;
            return undefined;
          }
        });
        const ms = time.now() - from;
        const asked = watched.requests.map(({ operation, status }) => `${operation} ${status ?? "lost"}`);
        const why = [step.why, step.again].filter(Boolean).join(" ");
        if (step.verb !== "check" || error !== undefined)
          this.#say(
            `    ${step.verb} ${step.type} ${step.name}${why ? ` (${why})` : ""}: ${ms} ms; ${asked.join(", ")}${error === undefined ? "" : `\n      ${messageOf(error)}`}`,
          );
        judgeStep(step, ms, watched.requests.length);
        if (error !== undefined) this.#wrong.push({ ...step, error });
        if (error !== undefined) throw error as Error;
        return result as never;
      },
    };
  }

  /** After all faults: one up succeeds, the next changes nothing, and destroy leaves nothing. */
  async #recover(): Promise<boolean> {
    const { service } = this.#simulation;
    // The provider judges what has just happened by its own clock.
    const ahead = service.service.context.clock.now() - this.#simulation.time.now();
    await this.#simulation.wait(settling + ahead);
    await this.#import(noTrouble);
    if (this.#lost.length > 0) throw new Broken("an existing object cannot be imported");
    const first = await this.#upAllowing();
    const hasFailed = failures(first).length > 0;
    if (hasFailed || this.#stale) {
      if (hasFailed) {
        this.#noneUnknown();
        await this.#clear(true);
      }
      await this.#believing("refresh", this.#refresh);
      const again = await this.#upAllowing();
      if (isMissing(again)) await this.#believing("up after a refresh", (host) => up(this.#stack, this.#program, host));
      else this.#demand("up after a refresh", again);
    }
    this.#compare();
    this.#demand("refresh", await this.#calm("refresh", this.#refresh));
    const second = await this.#calmUp();
    if (changes(second).length > 0) throw new Broken(`a second up changes ${stepsOf(changes(second))}`);
    this.#compare();
    await this.#clear(false);
    await this.#tearDown();
    if (!service.service.faults.none) throw new Broken("a fault is left");
    return hasFailed;
  }

  async #tearDown(): Promise<void> {
    // Protected resources are not deleted, and retained ones keep their App.
    const isHeld = ({ options = {} }: Kept) => options.protect === true || options.retainOnDelete === true;
    if (this.#stack.resources.some((kept) => isProtected(kept) || isHeld(kept))) await this.#allow(true);
    this.#ledger.open(this.#stack, undefined, this.#simulation.service.service);
    this.#demand("destroy", await this.#calm("destroy", this.#destroy));
    if (this.#stack.resources.length > 0) throw new Broken("destroy leaves something in the state");
    this.#compare();
  }

  /** An up; if a loss is refused, the program allows it and runs up again. */
  async #upAllowing(): Promise<Report> {
    const report = await this.#calmUp();
    if (!failures(report).some(({ error }) => isRefusal(error))) return report;
    await this.#allow(false);
    return this.#calmUp();
  }

  async #calmUp(): Promise<Report> {
    const report = await this.#upTo(this.#program);
    if (!report) throw new Broken("up died without a fault");
    return report;
  }

  /** Runs it, and if a deletion was interrupted, confirms with allowMissingApps that the last App is gone. */
  async #believing(name: string, work: (host: Host) => Promise<Report>): Promise<void> {
    const report = await this.#calm(name, work);
    if (!isMissing(report) || !this.#stale) return this.#demand(name, report);
    this.#demand(name, await this.#calm(name, work, { settings: { allowMissingApps: "true" } }));
  }

  async #calm(name: string, work: (host: Host) => Promise<Report>, special?: Special): Promise<Report> {
    const report = await this.#run(name, work, noTrouble, special);
    if (!report) throw new Broken(`${name} died without a fault`);
    return report;
  }

  #demand(name: string, report: Report): void {
    if (failures(report).length > 0) throw new Broken(`${name} fails although nothing is wrong: ${whatFailed(report)}`);
  }

  /** I1: every object of the service is in the state or was reported. */
  #noneUnknown(): void {
    const known = [...inState(this.#stack), ...this.#stack.orphans.flatMap(linesOf), ...this.#otherClient.strangers()];
    const there = onService(this.#simulation.service.service);
    const extra = there.filter((one) => !known.includes(one) && !this.#isSuspect(one));
    if (extra.length > 0) throw new Broken(`no state knows of ${extra.join(", ")}`);
  }

  /** I14: what others have created is never deleted. */
  #judgeStrangers(): void {
    const there = onService(this.#simulation.service.service);
    const gone = this.#otherClient.strangers().filter((line) => !there.includes(line));
    if (gone.length > 0) throw new Broken(`${gone.join(", ")} of others is gone`);
  }

  /** I1: every object of the state exists as well. */
  #compare(): void {
    this.#noneUnknown();
    const there = onService(this.#simulation.service.service);
    const missing = inState(this.#stack).filter((one) => !there.includes(one));
    if (missing.length > 0) throw new Broken(`the state says that there is ${missing.join(", ")}`);
  }

  /**
   * Deletes what was reported as left over, as a user does: Machines and volumes, because they block the deletion of their
   * parent, and everything else if it is in the way.
   */
  async #clear(isInTheWay: boolean): Promise<void> {
    const known = inState(this.#stack);
    // A lease of a killed process has expired by then.
    await this.#simulation.wait(longestLease);
    const extra = onService(this.#simulation.service.service).filter((other) => !known.includes(other));
    for (const line of await this.#otherClient.clear(extra, isInTheWay)) this.#ledger.forget(line);
  }

  /**
   * Whether an object is a known leftover: a warning named it, or a create of its type was begun with an unknown result.
   */
  #isSuspect(what: string): boolean {
    const [type, id] = what.split(" ") as [ResourceName, string];
    if (type === "MachineMetadata") {
      // A leftover Machine has its metadata; a step that was cut off may have written some.
      const machine = `Machine ${id.slice(0, id.lastIndexOf("/"))}`;
      return !inState(this.#stack).includes(machine) || this.#mayHaveWritten(["MachineMetadata", "Machine"]);
    }
    if (isKind(type, "written"))
      return this.#leftSet.has(what) || this.#mayHaveWritten(kindNames.filter((one) => isKind(one, "written")));
    return (
      this.#reported.some((text) => text.includes(bareId(id))) ||
      [...this.#declared.values()].some(
        ({ name, type: other }) => other === type && this.#simulation.isOpen(`${type}-${name}`),
      )
    );
  }

  /** Whether a step that was cut off may have written to an object of these types. */
  #mayHaveWritten(types: readonly ResourceName[]): boolean {
    return this.#cutOff.some(({ verb, type }) => verb !== "delete" && types.includes(type));
  }

  /** Another client interferes with a Machine. */
  async #interfere(interference: Interference): Promise<void> {
    this.#calmSoFar = false;
    if (interference.what === "stranger") {
      const fleets = this.#stack.resources.filter(({ type, mark }) => type === "Fleet" && mark === undefined);
      const fleet = fleets[interference.pick % Math.max(1, fleets.length)];
      if (fleet) await this.#otherClient.enterApp(fleet);
      return;
    }
    const machines = this.#stack.resources.filter(({ type }) => type === "Machine");
    const chosen = machines[interference.pick % Math.max(1, machines.length)];
    if (!chosen) return;
    this.#stale ||= interference.what !== "lease";
    if (interference.what !== "lease") this.#unsure.add("Machine");
    await this.#otherClient.interfere(interference, chosen);
  }
}

const isMissing = (report: Report): boolean => {
  const [failed] = failures(report);
  return failed?.error instanceof MachinesError && failed.error.code === "missing-apps";
};

const stepsOf = (report: Report): string => report.map(({ verb, name }) => `${verb} ${name}`).join(", ");

const whatFailed = (report: Report): string => {
  const [failed] = failures(report);
  return failed === undefined ? "" : `${failed.verb} ${failed.name}: ${String(failed.error)}`;
};

// Plays one run of the campaign: what its phases say, and after that nothing goes wrong any more, and everything must come
// right. What must hold all the while is in invariants.ts and ledger.ts.
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { bareId } from "../../api/names.ts";
import { resources } from "../../provider/registry.ts";
import {
  changes,
  CheckFailed,
  destroy,
  failures,
  importResource,
  NotThere,
  refresh,
  up,
  type Asked,
  type Host,
  type Report,
  type Step,
} from "../support/modelEngine.ts";
import { emptyStack, stateDelete, taint, unprotect, type Declared, type Kept } from "../support/modelStack.ts";
import { simulate, type ProviderProcess, type Simulation } from "../support/simulation.ts";
import { isTrouble, liesOf, noTrouble, type Meddling, type Trouble } from "./faultPlans.ts";
import { inState, isClaimed, linesOf, onService } from "./inventory.ts";
import { Broken, isRefusal, judgeAudit, judgeMade, judgeReport, judgeStep } from "./invariants.ts";
import { isGuarded, isProtected, judgeValues, Ledger } from "./ledger.ts";
import { Somebody } from "./others.ts";
import { canary, programOf, versions } from "./programs.ts";
import type { Phase, Scenario } from "./scenario.ts";
import { Sightings } from "./sightings.ts";
import type { RareState, Way } from "./ways.ts";

/** What one run was like, for those who count. */
export interface Played {
  readonly requests: number;
  readonly steps: number;
  readonly failed: number;
  readonly died: number;
  /** Whether nothing but a refresh let the last up succeed. */
  readonly refreshed: boolean;
  readonly simulatedMs: number;
  readonly states: ReadonlySet<RareState>;
}

/** Plays one run. @throws Broken when something does not hold that must */
export async function play(scenario: Scenario): Promise<Played> {
  const simulation = await simulate("campaign");
  const run = new Run(simulation, scenario);
  try {
    return await run.play();
  } catch (error) {
    throw new Broken(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n\n${run.told()}`);
  } finally {
    await simulation.close();
  }
}

/** Milliseconds from one run to the next: nobody types faster. */
const betweenRuns = 1000;

/** Milliseconds after which nobody holds a lease that he does not renew. */
const longestLease = 60_000;

/** Kinds that write things by their names, and leave no trace when they are interrupted: an up writes the same again. */
const writtenByName: readonly string[] = ["Secret", "AppSecrets", "PostgresAttachment"];

/** Kinds that are not imported: of some a read tells too little to go on from, others protect what they hold until the next up. */
const notImported: readonly string[] = [
  "AppSecrets",
  "SecretKey",
  "CustomCertificate",
  "MachineMetadata",
  "PostgresCluster",
  "PostgresAttachment",
];

/** Kinds that are made anew by the next up when the state has forgotten them. */
const madeAnew: readonly string[] = ["Secret", "AppSecrets", "PostgresAttachment", "MachineMetadata", "Volume"];

/** Kinds of which a second one can be made while the first one is there. */
const forcible: readonly string[] = [
  ...["Secret", "AppSecrets", "PostgresAttachment", "MachineMetadata", "Volume", "Machine", "App", "PostgresCluster"],
  ...["DeployToken", "Ciphertext", "Signature", "VolumeSnapshot", "MachineCommand", "PostgresBackup"],
];

/** Kinds that others are in: made and deleted alone, they take along what nobody was asked about. */
const holders: readonly string[] = ["App", "PostgresCluster"];

/** A resource that cannot be made, and is begun when all others are done. */
const failing = "failing";
const sibling = (program: readonly Declared[]): Declared => ({
  type: "Secret",
  name: failing,
  inputs: { app: "no-such-app", name: "NONE", value: canary },
  after: program.map(({ name }) => name),
});

/** What is special about a run. */
interface Special {
  readonly settings?: Readonly<Record<string, string>>;
  readonly isLost?: boolean;
  readonly asked?: Asked;
  /** What the program says, of an up. */
  readonly program?: readonly Declared[];
}

class Run {
  readonly #simulation: Simulation;
  readonly #scenario: Scenario;
  readonly #somebody: Somebody;
  readonly #stack = emptyStack();
  readonly #ledger = new Ledger();
  readonly #sightings: Sightings;
  readonly #log: string[] = [];
  #program: readonly Declared[] = [];
  #version = 0;
  #ups = 0;
  #lost: Kept[] = [];
  /** Whether the state may say what is true no longer, which an up by itself cannot know. */
  #stale = false;
  /** Whether nothing has gone wrong yet. */
  #calmSoFar = true;
  /** Whether the state is what the program says, as far as the last run tells. */
  #isSteady = false;
  /** Types of which nobody knows what became of the last step. */
  readonly #unsure = new Set<string>();
  /** Steps of which nobody knows whether they were done. */
  readonly #cutOff: Pick<Step, "verb" | "type">[] = [];
  /** Warnings of what no state may know of. */
  readonly #told: string[] = [];
  /** Everything that ever was in the program, as it was last, by name. */
  readonly #declared = new Map<string, Declared>();
  #steps = 0;
  #failed = 0;
  #died = 0;
  #lastDied = false;

  constructor(simulation: Simulation, scenario: Scenario) {
    this.#simulation = simulation;
    this.#scenario = scenario;
    this.#somebody = new Somebody(simulation, (line) => this.#log.push(line));
    this.#sightings = new Sightings(this.#stack);
  }

  /** What happened, in words. */
  told(): string {
    return this.#log.join("\n");
  }

  async play(): Promise<Played> {
    const { service, time } = this.#simulation;
    const from = time.now();
    await this.#somebody.enter();
    for (const phase of this.#scenario.phases) await this.#phase(phase);
    this.#log.push("--- nothing goes wrong any more");
    const refreshed = await this.#recover();
    judgeAudit(service.service.audit.after(0, 100_000));
    const [mistake] = this.#simulation.mistakes;
    if (mistake !== undefined) throw new Broken(`the service made a mistake: ${mistake}`);
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
    // Whoever has yet to import something does nothing else before.
    await this.#import(noTrouble);
    if (way.elsewhere) {
      this.#simulation.moveAway();
      if (this.#lastDied) this.#sightings.see("another computer goes on after a kill");
    }
    if (way.isLost) return this.#loseWay(verb);
    if (verb === "up") return this.#up(phase, way);
    for (const one of trouble.others) await this.#meddle(one);
    this.#isSteady = false;
    if (verb === "forget") return this.#forget(pick);
    if (verb === "import") return this.#reimport(pick, trouble);
    if (verb === "refresh") await this.#run(verb, this.#refresh, trouble);
    else {
      this.#ledger.open(this.#stack, undefined);
      await this.#run(verb, this.#destroy, trouble);
    }
  }

  readonly #refresh = async (host: Host): Promise<Report> => {
    const attachments = this.#stack.resources.filter(({ type }) => type === "PostgresAttachment");
    const report = await refresh(this.#stack, host);
    // An attachment is gone with its cluster; its secret stays in the App, and no state has it.
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
    for (const one of trouble.others) await this.#meddle(one);
    const hooked = way.hooks === undefined ? {} : { retries: way.hooks };
    const base = this.#program.map((declared) => ({ ...declared, ...hooked }));
    const program = way.sibling ? [...base, sibling(base)] : base;
    const asked = this.#asked(way, pick);
    const report = await this.#upTo(program, trouble, { asked });
    if (!report?.some(({ error }) => error instanceof CheckFailed || isRefusal(error))) return;
    // What was replaced by force has no old value that could be kept: whoever wants that just goes on.
    if (way.force && pick % 2 === 1) return;
    const isCalm = this.#calmSoFar;
    const done = changes(report).filter(({ error }) => error === undefined);
    if (pick % 2 === 1 || !before.isSteady || way.force || !this.#canGoBack(before.program, done))
      return this.#allow(isCalm);
    this.#sightings.see("a refusal, and back");
    this.#program = this.#asGrown(before.program);
    this.#version = before.version;
    const back = await this.#upTo(this.#program);
    if (isCalm && back && failures(back).length > 0)
      throw new Broken(`a refusal cannot be taken back: ${whatFailed(back)}`);
  }

  /**
   * Whether nothing was done beside what was refused that the program alone cannot take back: two of one name, another alias,
   * and what was replaced already, a cluster without a fixed name for instance, which undo-replacement brings back.
   */
  #canGoBack(program: readonly Declared[], done: Report): boolean {
    const made = done.filter(({ verb }) => verb === "create").map(({ name }) => name);
    const names = new Set([...made, ...program.map(({ name }) => name)]);
    const { resources: kept } = this.#stack;
    return kept.every(({ name, mark }) => names.has(name) && !mark) && done.every(({ why }) => why === undefined);
  }

  /** A program in which what has grown stays as large. */
  #asGrown(program: readonly Declared[]): Declared[] {
    return program.map((declared) => {
      const { name, aliases = [], inputs } = declared;
      const kept = this.#stack.resources.find(({ name: one, mark }) => !mark && [name, ...aliases].includes(one));
      const [size, before] = [inputs["sizeGb"], kept?.inputs["sizeGb"]];
      if (typeof size !== "number" || typeof before !== "number" || before <= size) return declared;
      return { ...declared, inputs: { ...inputs, sizeGb: before } };
    });
  }

  /** Which resources are forced or targets. */
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
    // The deletion of what another resource claims is rare, and the one that has lost the most.
    const gone = (claimed.length > 0 ? claimed : removed).map(({ name }) => name);
    const isTargeted = target === true || (claimed.length > 0 && pick % 3 === 0);
    const declared = this.#program.filter(({ type }) => !holders.includes(type)).map(({ name }) => name);
    const targeted =
      isTargeted && forced === undefined ? chosen(gone.length > 0 && pick % 4 < 3 ? gone : declared) : undefined;
    return {
      ...(forced !== undefined && force === "replace" ? { replace: [forced] } : {}),
      ...(targeted === undefined ? {} : { targets: [targeted] }),
      ...(continueOnError ? { continueOnError } : {}),
    };
  }

  /** Whether a second one can be made of what is in the program, where the engine does not know that the first must go. */
  #mayForce({ name, type, mark, inputs }: Kept): boolean {
    const declared = this.#program.find((one) => one.name === name);
    if (!declared || mark !== undefined) return false;
    if (declared.deleteBeforeReplace) return true;
    if (!forcible.includes(type)) return false;
    if (type === "App" || type === "PostgresCluster" || type === "Machine") {
      const { mounts = [] } = (inputs["config"] ?? {}) as { mounts?: readonly unknown[] };
      return declared.inputs["name"] === undefined && mounts.length === 0;
    }
    return true;
  }

  /** The next version says of everything that it may be lost: what was refused is done. */
  async #allow(isCalm: boolean): Promise<void> {
    this.#sightings.see("a refusal, and then it is allowed");
    unprotect(this.#stack);
    const allowed = this.#asGrown(programOf(this.#scenario, this.#version, true));
    const names = new Set(allowed.map(({ name }) => name));
    const aliases = new Set(allowed.flatMap((declared) => declared.aliases ?? []));
    const isDeclared = ({ name, mark }: Kept) => names.has(name) || (mark === undefined && aliases.has(name));
    const gone = this.#stack.resources.filter((kept) => isProtected(kept) && !isDeclared(kept));
    // What the program no longer has has to come back to say so; of what was replaced, only the state knows.
    const back = gone.filter(({ mark }) => mark === undefined);
    for (const kept of gone.filter(({ mark }) => mark === "leaving")) {
      const isBack = back.some(({ name }) => name === kept.name);
      if (!isBack) stateDelete(this.#stack, kept);
    }
    if (back.length > 0)
      await this.#upTo([
        ...allowed,
        ...back.map(({ name, type, inputs }) => {
          const { inputs: last = inputs } = this.#declared.get(name) ?? {};
          return { type, name, inputs: { ...last, deletionProtection: false } };
        }),
      ]);
    this.#program = allowed;
    let report = await this.#upTo(this.#program);
    // Where its parent is deleted first, the engine asks about it as the state has it: the permission has to be there already.
    if (report && failures(report).some(({ error }) => messageOf(error).includes("pulumi up --target"))) {
      const held = this.#stack.resources.filter((kept) => kept.mark === undefined && isGuarded(kept));
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
    this.#ledger.open(this.#stack, program);
    this.#isSteady = false;
    const { asked } = special;
    const report = await this.#run("up", (host) => up(this.#stack, program, host, asked), trouble, {
      ...special,
      program,
    });
    if (!report || failures(report).length > 0) return report;
    if (!liesOf(trouble)) judgeValues(program, this.#stack, this.#simulation.service.service, this.#unsure);
    this.#isSteady = asked?.targets === undefined;
    return report;
  }

  /** A run with the endpoint of another service, which knows of nothing: it forgets, makes and replaces nothing. */
  async #loseWay(verb: Phase["verb"]): Promise<void> {
    const before = inState(this.#stack);
    const isSteady = this.#isSteady && !this.#stale && this.#unsure.size === 0;
    if (verb === "up" && isSteady && !this.#stack.resources.some(({ mark }) => mark !== undefined)) {
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

  /** `pulumi state delete` of something that the next up makes anew. */
  #forget(pick: number): void {
    const able = this.#stack.resources.filter(
      ({ name, type, mark }) =>
        madeAnew.includes(type) &&
        mark !== "replacing" &&
        !this.#stack.resources.some(({ needs }) => needs.includes(name)),
    );
    const chosen = able[pick % Math.max(1, able.length)];
    if (!chosen) return;
    this.#log.push(`--- state delete ${chosen.name}`);
    stateDelete(this.#stack, chosen);
  }

  async #reimport(pick: number, trouble: Trouble): Promise<void> {
    const stack = this.#stack;
    const able = stack.resources.filter(
      ({ type, mark, failed }) =>
        mark === undefined &&
        failed.length === 0 &&
        resources[type]?.noImport === undefined &&
        !notImported.includes(type) &&
        // An import takes all of a Machine's metadata for its own.
        (type !== "Machine" || !stack.resources.some((kept) => kept.type === "MachineMetadata")),
    );
    const chosen = able[pick % Math.max(1, able.length)];
    if (!chosen) return;
    stack.resources = stack.resources.filter((kept) => kept !== chosen);
    this.#lost.push(chosen);
    await this.#import(trouble);
  }

  /** Takes what was forgotten into the state again, and lets the program say what no read can. */
  async #import(trouble: Trouble): Promise<void> {
    for (const lost of this.#lost) {
      const report = await this.#run("import", (host) => importResource(this.#stack, lost, host), trouble);
      if (report === undefined) return;
      const [failed] = failures(report);
      // It may have been deleted meanwhile, by others, by an interrupted run, or with what it lay in.
      const there = onService(this.#simulation.service.service);
      const isThere = linesOf(lost).some((line) => there.includes(line));
      const isGone = failed?.error instanceof NotThere && (this.#stale || !isThere);
      if (failed && !isGone) return;
      this.#lost = this.#lost.filter((other) => other !== lost);
      await this.#upTo(this.#program);
    }
  }

  /** One run in a process of its own; undefined when that died. */
  async #run(
    name: string,
    work: (host: Host) => Promise<Report>,
    trouble: Trouble,
    { settings = {}, isLost = false, asked, program = [] }: Special = {},
  ): Promise<Report | undefined> {
    const { service, start, wait } = this.#simulation;
    await wait(betweenRuns);
    const how = { ...asked, ...(isLost ? { isLost } : {}), ...(isTrouble(trouble) ? trouble : {}) };
    this.#log.push(`--- ${name} ${JSON.stringify(how)}`);
    service.fail(...trouble.faults);
    this.#calmSoFar &&= !isTrouble(trouble);
    const { death, slow } = trouble;
    this.#sightings.open(program, asked);
    const process = start({ slow, settings, isLost, ...(death ? { death } : {}) });
    const report = await process.run(() => work(this.#host(process)));
    service.service.faults.clear();
    this.#note(process);
    this.#lastDied = report === "died";
    this.#ledger.close(this.#stack, service.service);
    if (report === "died") {
      judgeReport([], process.said, service);
      this.#died++;
      this.#cut(this.#stack.pending);
      this.#log.push(`    the process died; begun were ${JSON.stringify(this.#stack.pending)}`);
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
    const failed = failures(report).filter(
      ({ name: one, error }) => one !== failing && !(mayRefuse && isRefusal(error)),
    );
    if (this.#calmSoFar) this.#demand(name, failed);
    this.#cut(failed);
    this.#stale ||= failed.some(({ verb }) => verb === "delete");
    return report;
  }

  #note(process: ProviderProcess): void {
    const warnings = process.said.filter(({ kind }) => kind === "warning").map(({ text }) => text);
    this.#log.push(...warnings.map((text) => `      warning: ${text}`));
    this.#told.push(...warnings.filter((text) => text.includes("pulumi-machines orphans")));
  }

  /** Notes steps of which nobody knows whether they were done. */
  #cut(steps: readonly Pick<Step, "verb" | "type">[]): void {
    this.#cutOff.push(...steps);
    // What lies in it may be gone with it.
    for (const { type } of steps)
      for (const kind of Object.keys(resources))
        if (kind === type || type === "App" || (type.startsWith("Postgres") && kind.startsWith("Postgres")))
          this.#unsure.add(kind);
  }

  #mayBeRefused(program: readonly Declared[], asked: Asked = {}): boolean {
    return (
      asked.targets !== undefined ||
      // An App replaced by force may hold a volume that the state has forgotten.
      asked.replace !== undefined ||
      this.#stack.resources.some(({ tainted }) => tainted) ||
      program.some(({ protect }) => protect) ||
      // An App with volumes is not renamed, also where the program no longer has them, unless it says that they may go.
      (program.some(({ type, inputs }) => type === "App" && inputs["forceDestroy"] !== true) &&
        this.#stack.resources.some(({ type }) => type === "Volume")) ||
      // An App is not deleted over a volume that is kept.
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
          this.#log.push(
            `    ${step.verb} ${step.type} ${step.name}${why ? ` (${why})` : ""}: ${ms} ms; ${asked.join(", ")}${error === undefined ? "" : `\n      ${messageOf(error)}`}`,
          );
        judgeStep(step, ms, watched.requests.length);
        if (error !== undefined) throw error as Error;
        return result as never;
      },
    };
  }

  /** After everything that went wrong: one up succeeds, the next does nothing, and destroy leaves nothing. */
  async #recover(): Promise<boolean> {
    const { service } = this.#simulation;
    await this.#import(noTrouble);
    if (this.#lost.length > 0) throw new Broken("what is there cannot be imported");
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
    // What is protected does not go, and what stays on delete does not let go of its App.
    const isHeld = ({ options = {} }: Kept) => options.protect === true || options.retainOnDelete === true;
    if (this.#stack.resources.some((kept) => isProtected(kept) || isHeld(kept))) await this.#allow(true);
    this.#ledger.open(this.#stack, undefined);
    this.#demand("destroy", await this.#calm("destroy", this.#destroy));
    if (this.#stack.resources.length > 0) throw new Broken("destroy leaves something in the state");
    this.#compare();
  }

  /** An up; where a loss is refused, the program lets it happen and there is another one. */
  async #upAllowing(): Promise<Report> {
    const report = await this.#calmUp();
    if (!failures(report).some(({ error }) => isRefusal(error))) return report;
    await this.#allow(false);
    return this.#calmUp();
  }

  async #calmUp(): Promise<Report> {
    const report = await this.#upTo(this.#program);
    if (!report) throw new Broken("up died of nothing");
    return report;
  }

  /** Does it, and believes that what was the last App of all is gone, as the error says, where a deletion was interrupted. */
  async #believing(name: string, work: (host: Host) => Promise<Report>): Promise<void> {
    const report = await this.#calm(name, work);
    if (!isMissing(report) || !this.#stale) return this.#demand(name, report);
    this.#demand(name, await this.#calm(name, work, { settings: { allowMissingApps: "true" } }));
  }

  async #calm(name: string, work: (host: Host) => Promise<Report>, special?: Special): Promise<Report> {
    const report = await this.#run(name, work, noTrouble, special);
    if (!report) throw new Broken(`${name} died of nothing`);
    return report;
  }

  #demand(name: string, report: Report): void {
    if (failures(report).length > 0) throw new Broken(`${name} fails although nothing is wrong: ${whatFailed(report)}`);
  }

  /** I1: there is nothing that neither the state knows of nor anybody was told of. */
  #noneUnknown(): void {
    const known = [...inState(this.#stack), ...this.#stack.orphans.flatMap(linesOf)];
    const there = onService(this.#simulation.service.service);
    const extra = there.filter((one) => !known.includes(one) && !this.#isSuspect(one));
    if (extra.length > 0) throw new Broken(`no state knows of ${extra.join(", ")}`);
  }

  /** I1: and everything is there that the state says. */
  #compare(): void {
    this.#noneUnknown();
    const there = onService(this.#simulation.service.service);
    const missing = inState(this.#stack).filter((one) => !there.includes(one));
    if (missing.length > 0) throw new Broken(`the state says that there is ${missing.join(", ")}`);
  }

  /**
   * Deletes what was told to be left over, as a user does: Machines and volumes, because what they are in could not be deleted
   * before, and everything else where it is in the way.
   */
  async #clear(isInTheWay: boolean): Promise<void> {
    const known = inState(this.#stack);
    // Whoever died with a lease of it holds that no longer by then.
    await this.#simulation.wait(longestLease);
    const extra = onService(this.#simulation.service.service).filter((other) => !known.includes(other));
    for (const line of await this.#somebody.clear(extra, isInTheWay)) this.#ledger.forget(line);
  }

  /**
   * Whether something is known to be left over: a warning has named it, or a create of its type was begun and nobody knows how
   * that ended.
   */
  #isSuspect(what: string): boolean {
    const [type = "", id = ""] = what.split(" ");
    if (writtenByName.includes(type))
      return this.#cutOff.some(({ verb, type: other }) => verb !== "delete" && writtenByName.includes(other));
    return (
      this.#told.some((text) => text.includes(bareId(id))) ||
      [...this.#declared.values()].some(
        ({ name, type: other }) => other === type && this.#simulation.isOpen(`${type}-${name}`),
      )
    );
  }

  /** Somebody else does something to a Machine. */
  async #meddle(meddling: Meddling): Promise<void> {
    this.#calmSoFar = false;
    const machines = this.#stack.resources.filter(({ type }) => type === "Machine");
    const chosen = machines[meddling.pick % Math.max(1, machines.length)];
    if (!chosen) return;
    this.#stale ||= meddling.what !== "lease";
    if (meddling.what !== "lease") this.#unsure.add("Machine");
    await this.#somebody.meddle(meddling, chosen);
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

// One run of the campaign: programs by chance, brought up, refreshed, imported and destroyed while things go wrong; then
// nothing goes wrong any more, and everything must come right. What must hold all the while is in invariants.ts.
import fc from "fast-check";
import { MachinesError, messageOf } from "../../provider/core/errors.ts";
import { bareId } from "../../provider/core/values.ts";
import { resources } from "../../provider/resources/index.ts";
import { addToken } from "../../service/store/tokens.ts";
import {
  changes,
  destroy,
  emptyStack,
  failures,
  importResource,
  NotThere,
  refresh,
  up,
  type Declared,
  type Host,
  type Kept,
  type Report,
  type Stack,
  type Step,
} from "../support/modelEngine.ts";
import { simulate, type ProviderProcess, type Simulation } from "../support/simulation.ts";
import { isTrouble, noTrouble, troubleArbitrary, type Meddling, type Trouble } from "./faultPlans.ts";
import { inState, onService } from "./inventory.ts";
import { Broken, judgeAudit, judgeReport, judgeStep } from "./invariants.ts";
import { programOf, slotsArbitrary, versions, type Slot } from "./programs.ts";

/** What is done in one phase, and what goes wrong meanwhile. */
export interface Phase {
  readonly verb: "up" | "refresh" | "import" | "destroy";
  /** Decides which resource is imported. */
  readonly pick: number;
  readonly trouble: Trouble;
}

/** One run of the campaign. */
export interface Scenario {
  readonly slots: readonly Slot[];
  readonly phases: readonly Phase[];
  readonly parallel: number;
}

/** Kinds that write things by their names, and leave no trace when they are cut off: an up writes the same again. */
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

const verb = fc.oneof(
  { arbitrary: fc.constant("up" as const), weight: 6 },
  { arbitrary: fc.constant("refresh" as const), weight: 1 },
  { arbitrary: fc.constant("import" as const), weight: 1 },
  { arbitrary: fc.constant("destroy" as const), weight: 1 },
);

/** Runs by chance. */
export const scenarioArbitrary: fc.Arbitrary<Scenario> = fc.record({
  slots: slotsArbitrary,
  phases: fc.array(fc.record({ verb, pick: fc.nat(7), trouble: troubleArbitrary }), {
    minLength: 1,
    maxLength: 5,
    size: "max",
  }),
  parallel: fc.constantFrom(1, 4),
});

/** What one run was like, for those who count. */
export interface Played {
  readonly requests: number;
  readonly steps: number;
  readonly failed: number;
  readonly died: number;
  /** Whether nothing but a refresh let the last up succeed. */
  readonly refreshed: boolean;
  readonly simulatedMs: number;
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

const thief = "mcs_somebody-else";

class Run {
  readonly #simulation: Simulation;
  readonly #scenario: Scenario;
  readonly #stack: Stack = emptyStack();
  readonly #log: string[] = [];
  #program: readonly Declared[] = [];
  #ups = 0;
  #lost: Kept[] = [];
  /** Whether the state may say what is true no longer, which an up by itself cannot know. */
  #stale = false;
  /** Whether nothing has gone wrong yet. */
  #calmSoFar = true;
  /** Steps of which nobody knows whether they were done. */
  readonly #cutOff: Pick<Step, "verb" | "type">[] = [];
  /** Warnings of what no state may know of. */
  readonly #told: string[] = [];
  /** Types by name of everything that ever was in the program. */
  readonly #names = new Map<string, string>();
  #steps = 0;
  #failed = 0;
  #died = 0;

  constructor(simulation: Simulation, scenario: Scenario) {
    this.#simulation = simulation;
    this.#scenario = scenario;
  }

  /** What happened, in words. */
  told(): string {
    return this.#log.join("\n");
  }

  async play(): Promise<Played> {
    const { service, time } = this.#simulation;
    const from = time.now();
    const { world } = service.service;
    await world.store.write(() => {
      addToken(world.store, thief, { slug: "personal", expiresAt: null }, world.clock.now());
    });
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
    };
  }

  async #phase({ verb, pick, trouble }: Phase): Promise<void> {
    const stack = this.#stack;
    // Whoever has yet to import something does nothing else before.
    await this.#import(noTrouble);
    if (verb === "up") this.#program = programOf(this.#scenario.slots, Math.min(this.#ups++, versions - 1));
    for (const { name, type } of this.#program) this.#names.set(name, type);
    for (const one of trouble.others) await this.#meddle(one);
    if (verb === "import") {
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
      return;
    }
    const works = {
      up: (host: Host) => up(stack, this.#program, host),
      refresh: this.#refresh,
      destroy: this.#destroy,
    };
    await this.#run(verb, works[verb], trouble);
  }

  readonly #refresh = (host: Host): Promise<Report> => refresh(this.#stack, host);
  readonly #destroy = (host: Host): Promise<Report> => destroy(this.#stack, host);

  /** Takes what was forgotten into the state again, and lets the program say what no read can. */
  async #import(trouble: Trouble): Promise<void> {
    for (const lost of this.#lost) {
      const report = await this.#run("import", (host) => importResource(this.#stack, lost, host), trouble);
      if (report === undefined) return;
      const [failed] = failures(report);
      // It may have been deleted meanwhile, by others or by a run that was cut off.
      const isGone = failed?.error instanceof NotThere && this.#stale;
      if (failed && !isGone) return;
      this.#lost = this.#lost.filter((other) => other !== lost);
      await this.#run("up", (host) => up(this.#stack, this.#program, host), noTrouble);
    }
  }

  /** One run in a process of its own; undefined when that died. */
  async #run(
    name: string,
    work: (host: Host) => Promise<Report>,
    trouble: Trouble,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<Report | undefined> {
    const { service, start, wait } = this.#simulation;
    await wait(betweenRuns);
    this.#log.push(`--- ${name} ${JSON.stringify(trouble)}`);
    service.fail(...trouble.faults);
    this.#calmSoFar &&= !isTrouble(trouble);
    const { death, slow } = trouble;
    const process = start({ slow, settings, ...(death ? { death } : {}) });
    const report = await process.run(() => work(this.#host(process)));
    service.service.faults.clear();
    const warnings = process.said.filter(({ kind }) => kind === "warning").map(({ text }) => text);
    this.#log.push(...warnings.map((text) => `      warning: ${text}`));
    this.#told.push(...warnings.filter((text) => text.includes("pulumi-machines orphans")));
    if (report === "died") {
      judgeReport([], process.said, service);
      this.#died++;
      this.#cutOff.push(...this.#stack.pending);
      this.#log.push(`    the process died; begun were ${JSON.stringify(this.#stack.pending)}`);
      this.#stale ||= this.#stack.pending.some(({ verb }) => verb === "delete" || verb === "update");
      return undefined;
    }
    judgeReport(report, process.said, service);
    if (this.#calmSoFar) this.#demand(name, report);
    this.#steps += report.length;
    this.#failed += failures(report).length;
    this.#cutOff.push(...failures(report));
    this.#stale ||= failures(report).some(({ verb }) => verb === "delete");
    return report;
  }

  #host(process: ProviderProcess): Host {
    const { time, watch } = this.#simulation;
    return {
      bound: (type) => process.bound(type),
      parallel: this.#scenario.parallel,
      around: async (step, _inputs, work) => {
        const from = time.now();
        let error: unknown;
        const { watched } = await watch(async () => {
          try {
            return await work();
          } catch (thrown) {
            error = thrown;
            return undefined;
          }
        });
        const ms = time.now() - from;
        const asked = watched.requests.map(({ operation, status }) => `${operation} ${status ?? "lost"}`);
        if (step.verb !== "check" || error !== undefined)
          this.#log.push(
            `    ${step.verb} ${step.type} ${step.name}: ${ms} ms; ${asked.join(", ")}${error === undefined ? "" : `\n      ${messageOf(error)}`}`,
          );
        judgeStep(step, ms, watched.requests.length);
        if (error !== undefined) throw error as Error;
        return undefined as never;
      },
    };
  }

  /** After everything that went wrong: one up succeeds, the next does nothing, and destroy leaves nothing. */
  async #recover(): Promise<boolean> {
    const { service } = this.#simulation;
    await this.#import(noTrouble);
    if (this.#lost.length > 0) throw new Broken("what is there cannot be imported");
    const work = (host: Host) => up(this.#stack, this.#program, host);
    const again = (): Promise<Report> => this.#calm("up", work);
    const first = failures(await again()).length > 0;
    if (first || this.#stale) {
      if (first) {
        this.#noneUnknown();
        await this.#clear();
      }
      await this.#believing("refresh", this.#refresh);
      await this.#believing("up after a refresh", work);
    }
    this.#compare();
    this.#demand("refresh", await this.#calm("refresh", this.#refresh));
    const second = await again();
    if (changes(second).length > 0)
      throw new Broken(
        `a second up changes ${changes(second)
          .map(({ verb, name }) => `${verb} ${name}`)
          .join(", ")}`,
      );
    this.#compare();
    await this.#clear();
    this.#demand("destroy", await this.#calm("destroy", this.#destroy));
    if (this.#stack.resources.length > 0) throw new Broken("destroy leaves something in the state");
    this.#compare();
    if (!service.service.faults.none) throw new Broken("a fault is left");
    return first;
  }

  /** Does it, and believes that what was the last App of all is gone, as the error says, where a deletion was cut off. */
  async #believing(name: string, work: (host: Host) => Promise<Report>): Promise<void> {
    const report = await this.#calm(name, work);
    const [failed] = failures(report);
    const isMissing = failed?.error instanceof MachinesError && failed.error.code === "missing-apps";
    if (!isMissing || !this.#stale) return this.#demand(name, report);
    this.#demand(name, await this.#calm(name, work, { allowMissingApps: "true" }));
  }

  async #calm(
    name: string,
    work: (host: Host) => Promise<Report>,
    settings?: Readonly<Record<string, string>>,
  ): Promise<Report> {
    const report = await this.#run(name, work, noTrouble, settings);
    if (!report) throw new Broken(`${name} died of nothing`);
    return report;
  }

  #demand(name: string, report: Report): void {
    const [failed] = failures(report);
    if (failed)
      throw new Broken(
        `${name} fails although nothing is wrong: ${failed.verb} ${failed.name}: ${String(failed.error)}`,
      );
  }

  /** I1: there is nothing that neither the state knows of nor anybody was told of. */
  #noneUnknown(): void {
    const known = inState(this.#stack);
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

  /** Deletes what was told to be left over, as a user does: what it is in could not be deleted before. */
  async #clear(): Promise<void> {
    const { world } = this.#simulation.service.service;
    const known = inState(this.#stack);
    // Whoever died with a lease of it holds that no longer by then.
    await this.#simulation.wait(longestLease);
    const appOf = (table: string, id: string): string =>
      world.store.get<{ name: string }>(`SELECT a.name FROM ${table} x JOIN apps a ON a.id = x.app WHERE x.id = ?`, id)
        ?.name ?? "";
    for (const one of onService(this.#simulation.service.service).filter((other) => !known.includes(other))) {
      const [type = "", id = ""] = one.split(" ");
      if (type === "Machine")
        await this.#asOther("DELETE", `/v1/apps/${appOf("machines", id)}/machines/${id}?force=true`);
      if (type === "Volume") await this.#asOther("DELETE", `/v1/apps/${appOf("volumes", id)}/volumes/${id}`);
    }
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
      [...this.#names].some(([name, other]) => other === type && this.#simulation.isOpen(`${type}-${name}`))
    );
  }

  /** Somebody else does something to a Machine. */
  async #meddle({ what, pick, seconds }: Meddling): Promise<void> {
    const machines = this.#stack.resources.filter(({ type }) => type === "Machine");
    const chosen = machines[pick % Math.max(1, machines.length)];
    if (!chosen) return;
    const [app = "", machine = ""] = chosen.id.split("/");
    const path = `/v1/apps/${app}/machines/${machine}`;
    if (what === "lease") await this.#asOther("POST", `${path}/lease`, { ttl: seconds, description: "mine" });
    if (what === "stop") await this.#asOther("POST", `${path}/stop`, {});
    this.#stale ||= what !== "lease";
    if (what === "destroy") await this.#asOther("DELETE", `${path}?force=true`);
    if (what === "config") {
      const live = await this.#asOther("GET", path);
      if (live.statusCode !== 200) return;
      const { config } = live.json<{ config: { env?: object } }>();
      await this.#asOther("POST", path, { config: { ...config, env: { ...config.env, OTHERS: "1" } } });
    }
  }

  async #asOther(method: "GET" | "POST" | "DELETE", url: string, payload?: object) {
    const answer = await this.#simulation.service.service.app.inject({
      method,
      url,
      headers: { authorization: `Bearer ${thief}` },
      ...(payload ? { payload } : {}),
    });
    this.#log.push(`    somebody else: ${method} ${url} ${answer.statusCode}`);
    return answer;
  }
}

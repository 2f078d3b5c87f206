// Plans a rollout: which steps may begin now, from what is wanted, what the service shows, and what is under way. Pure. The
// rollout (rollout.ts) begins these steps, looks again, and plans again, so an interrupted rollout is resumed by planning it.
import { totalOf } from "./placement.ts";

/** How a fleet changes from one template to the next. */
export type StrategyType = "rolling" | "canary" | "bluegreen" | "immediate";

/** What the program wants, in numbers. */
export interface Wanted {
  /** Number of members by region. */
  readonly regions: Readonly<Record<string, number>>;
  readonly strategy: StrategyType;
  /** How many of the wanted members may be missing or not ready because of the rollout. */
  readonly maxUnavailable: number;
  /** How many members more than wanted may exist while others are updated. */
  readonly maxSurge: number;
  /** Members that a canary rollout updates first. */
  readonly canaries: number;
  /** Whether the canaries have been observed in this rollout. */
  readonly isObserved: boolean;
  /** Whether a canary rollout continues after the observation, and a blue/green one switches. */
  readonly isPromoted: boolean;
  /** Whether a blue/green rollout keeps the old members, stopped. */
  readonly keepOld: boolean;
  /** Whether the release command has to run first. */
  readonly needsRelease: boolean;
  /** Whether a member stays where its volume is, even while its host cannot be reached. */
  readonly isTied: boolean;
}

/** A Machine of the fleet, as the service shows it. */
export interface Member {
  /** Name of the Machine, unique in its App. */
  readonly name: string;
  /** The region that it counts for, which is not where it runs if that had no room. */
  readonly region: string;
  /**
   * Whether its configuration is the template's, or differs: in its metadata or its memory limit alone, or so that it needs
   * a new version.
   */
  readonly template: "current" | "metadata" | "outdated";
  /** Whether it runs and its checks pass, or rests as configured. */
  readonly isReady: boolean;
  /**
   * `green`: it runs beside the others, without traffic. `kept`: it was replaced and stopped. `lost`: its host cannot be
   * reached.
   */
  readonly phase: "serving" | "green" | "kept" | "lost";
  /** RFC 3339 time of creation. */
  readonly createdAt: string;
  /** The member that gets a copy of its volume, if a move to another region has begun. */
  readonly movesTo?: { readonly name: string; readonly region: string } | undefined;
  /** The member of whose volume it has a copy, before it gets traffic. */
  readonly copyOf?: string | undefined;
}

/** One step of a rollout. */
export type Step =
  /** Runs the release command in a Machine of its own. */
  | { readonly kind: "release"; readonly name: string }
  /** Creates a Machine and waits until it is ready. `copyOf`: the member of whose volume it gets a copy. */
  | {
      readonly kind: "create";
      readonly name: string;
      readonly region: string;
      readonly isGreen: boolean;
      readonly copyOf?: string | undefined;
    }
  /** Stops a Machine, creates another one with a copy of its volume in another region, and destroys the first one. */
  | { readonly kind: "move"; readonly name: string; readonly region: string; readonly to: string }
  /** Gives a Machine a new version and waits until it is ready. `isRepair`: it was not ready before. */
  | { readonly kind: "update"; readonly name: string; readonly isRepair: boolean }
  /** Changes the metadata or the memory limit of a Machine. */
  | { readonly kind: "relabel"; readonly name: string }
  /** Starts a Machine that does not run, and waits until it is ready. */
  | { readonly kind: "await"; readonly name: string }
  /** Lets traffic reach a green Machine. */
  | { readonly kind: "expose"; readonly name: string }
  /** Takes the traffic from a Machine, waits until it has drained, stops and destroys it. */
  | { readonly kind: "destroy"; readonly name: string }
  /** Takes the traffic from a Machine, and stops it. */
  | { readonly kind: "keep"; readonly name: string }
  /** Watches the canaries. */
  | { readonly kind: "observe"; readonly name: "canaries" };

/** What to plan for. */
export interface Situation {
  readonly wanted: Wanted;
  readonly members: readonly Member[];
  readonly underway: readonly Step[];
  /** Prefix of the names of new members. */
  readonly fleet: string;
  /** Names that had members before, whose volumes exist. Only a member that gets no copy of a volume takes one again. */
  readonly used: ReadonlySet<string>;
  /** Names that Machines of others have. */
  readonly taken: ReadonlySet<string>;
  /** How often a step of this rollout has brought a member up, by its name. */
  readonly broughtUp: ReadonlyMap<string, number>;
}

/** The steps that may begin now. */
export interface Plan {
  readonly begin: readonly Step[];
  /**
   * `canary`, `green`: nothing is left to do until the canaries, or the new members beside the old ones, are promoted.
   * `stuck`: members were brought up as often as allowed, and are down again.
   */
  readonly state: "working" | "canary" | "green" | "stuck" | "complete";
  /** The members because of which a plan is `stuck`. */
  readonly stuck: readonly string[];
}

/** How often a rollout brings one member up at most (R16). */
export const mostAttempts = 3;

/** How many members are ready at least at every moment, if as many were ready before. */
export const promised = ({ regions, maxUnavailable }: Pick<Wanted, "regions" | "maxUnavailable">): number =>
  Math.max(0, totalOf(regions) - maxUnavailable);

/** Steps after whose beginning a Machine no longer serves. */
const interrupting: readonly Step["kind"][] = ["update", "move", "destroy", "keep"];

/** The members that a step is about. */
const namesOf = (step: Step): readonly string[] => (step.kind === "move" ? [step.name, step.to] : [step.name]);

/** Steps after which a member is ready. */
const bringingUp: readonly Step["kind"][] = ["create", "update", "await"];

/** Whether a step is to leave a member ready. */
export const bringsUp = ({ kind }: Step): boolean => bringingUp.includes(kind);

/** Plans the steps that may begin now. */
export function plan(situation: Situation): Plan {
  const { wanted, underway, fleet, broughtUp } = situation;
  const of = (state: Plan["state"], begin: readonly Step[] = [], stuck: readonly string[] = []): Plan => ({
    ...{ state, begin, stuck },
  });
  if (wanted.needsRelease)
    return of("working", underway.length > 0 ? [] : [{ kind: "release", name: releaseName(fleet) }]);
  const draft = new Draft(situation);
  draft.removeAbandoned();
  if (wanted.strategy === "bluegreen") draft.replaceTogether();
  else draft.updateInPlace();
  const { steps, isHeld } = draft;
  const stuck = steps.filter((step) => bringsUp(step) && (broughtUp.get(step.name) ?? 0) >= mostAttempts);
  if (stuck.length > 0) {
    const names = stuck.map(({ name }) => name);
    return of("stuck", [], names);
  }
  if (steps.length > 0 || underway.length > 0) return of("working", steps);
  if (!isHeld) return of("complete");
  return of(wanted.strategy === "bluegreen" ? "green" : "canary");
}

/**
 * The best that a rollout has reached. Only what is better than ever before is progress, so that a member that crashes and
 * runs again and again makes none (R16).
 */
export class Best {
  #done = -1;
  #left = Infinity;

  /** Notes the members as they are now. Returns whether more than ever are done, or fewer than ever are left to do. */
  isBeatenBy(members: readonly Member[], regions: Wanted["regions"]): boolean {
    const able = members.filter((one) => fits(one) && one.isReady);
    const finished = able.filter((one) => isServing(one) && one.template === "current");
    const unfinished = members.filter(({ phase }) => phase === "serving" || phase === "green").length - finished.length;
    const surplus = [...new Set(finished.map(({ region }) => region))]
      .map((region) => finished.filter((one) => one.region === region).length - (regions[region] ?? 0))
      .reduce((sum, excess) => sum + Math.max(0, excess), 0);
    const [done, left] = [able.length, unfinished + surplus];
    const isBetter = done > this.#done || left < this.#left;
    this.#done = Math.max(this.#done, done);
    this.#left = Math.min(this.#left, left);
    return isBetter;
  }
}

/**
 * Whether a rollout that begins has to run the release command. One that was interrupted after members had the template is
 * continued without.
 */
export const isReleaseDue = ({ regions }: Pick<Wanted, "regions">, members: readonly Member[]): boolean =>
  totalOf(regions) > 0 && !members.some(fits);

/**
 * What is wanted while hosts cannot be reached. A lost member is replaced, except where its volume is: there, nothing is
 * promised for it.
 */
function withoutLost({ wanted, members }: Situation): Wanted {
  if (!wanted.isTied) return wanted;
  const lost = (region: string): number =>
    members.filter((one) => one.phase === "lost" && one.region === region).length;
  const regions = Object.entries(wanted.regions).map(([region, count]) => [region, Math.max(0, count - lost(region))]);
  return { ...wanted, regions: Object.fromEntries(regions) as Record<string, number> };
}

/** All steps of a rollout in which none fails: those of one list begin together. */
export function planAll({
  wanted: first,
  members: existing,
  ...rest
}: Omit<Situation, "underway" | "broughtUp">): readonly (readonly Step[])[] {
  let wanted = { ...first, needsRelease: first.needsRelease && isReleaseDue(first, existing) };
  const members = new Map(existing.map((member) => [member.name, member]));
  const waves: (readonly Step[])[] = [];
  for (;;) {
    const { begin } = plan({ ...rest, wanted, members: [...members.values()], underway: [], broughtUp: new Map() });
    if (begin.length === 0) return waves;
    waves.push(begin);
    for (const step of begin) {
      if (step.kind === "move")
        members.set(step.to, { ...readyMember(waves.length), name: step.to, region: step.region, phase: "serving" });
      const next = afterStep(step, members.get(step.name), waves.length);
      if (next === undefined) members.delete(step.name);
      else members.set(step.name, next);
      if (step.kind === "observe") wanted = { ...wanted, isObserved: true };
      if (step.kind === "release") wanted = { ...wanted, needsRelease: false };
    }
  }
}

const ready = { template: "current", isReady: true } as const;
/** A new member, which is newer than all that exist. */
const readyMember = (turn: number) => ({ ...ready, createdAt: `9999-${String(turn).padStart(6, "0")}` });

/** A member after a step that has succeeded; undefined if it is gone. */
function afterStep(step: Step, before: Member | undefined, turn: number): Member | undefined {
  if (step.kind === "create") {
    const { name, region, isGreen } = step;
    return { ...readyMember(turn), name, region, phase: isGreen ? "green" : "serving" };
  }
  if (before === undefined || ["destroy", "move", "observe", "release"].includes(step.kind)) return undefined;
  if (step.kind === "keep") return { ...before, phase: "kept", isReady: false };
  if (step.kind === "expose") return { ...before, ...ready, phase: "serving" };
  return { ...before, ...ready, phase: before.phase === "kept" ? "green" : before.phase };
}

const fits = ({ template, phase }: Member): boolean => template !== "outdated" && phase !== "lost";
const isServing = ({ phase }: Member): boolean => phase === "serving";
const byAge = (a: Member, b: Member): number =>
  a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.name < b.name) ? -1 : 1;
/** Those that are not ready first. */
const byReadiness = (a: Member, b: Member): number => Number(a.isReady) - Number(b.isReady);

/** Name of a member. Names are unique in an App, so a repeated create makes no second Machine. */
export const memberName = (fleet: string, region: string, number: number): string => `${fleet}-${region}-${number}`;

/** Name of a standby. */
export const standbyName = (fleet: string, number: number): string => `${fleet}-standby-${number}`;

/** Name of the Machine that runs the release command. */
export const releaseName = (fleet: string): string => `${fleet}-release`;

/** The steps of one plan while it is made. */
class Draft {
  readonly steps: Step[] = [];
  /** Whether the rollout waits for its promotion. */
  isHeld = false;
  readonly #wanted: Wanted;
  readonly #underway: readonly Step[];
  readonly #fleet: string;
  readonly #used: ReadonlySet<string>;
  readonly #taken: ReadonlySet<string>;
  readonly #broughtUp: ReadonlyMap<string, number>;
  readonly #members: readonly Member[];
  /** Names of members that will be created when enough others are ready, and their regions. */
  readonly #reserved = new Map<string, string>();
  /** Serving members that are ready and not interrupted. */
  #ready: number;

  constructor(situation: Situation) {
    const { members, underway, fleet, used, taken, broughtUp } = situation;
    this.#used = used;
    this.#taken = taken;
    this.#broughtUp = broughtUp;
    this.#wanted = withoutLost(situation);
    this.#underway = underway;
    this.#fleet = fleet;
    this.#members = members;
    const interrupted = new Set(underway.filter(({ kind }) => interrupting.includes(kind)).map(({ name }) => name));
    this.#ready = members.filter((one) => isServing(one) && one.isReady && !interrupted.has(one.name)).length;
  }

  /** Green members of another template were never used. Kept ones may not be wanted any more. */
  removeAbandoned(): void {
    for (const one of this.#free()) {
      const isAbandoned = one.phase === "green" || (one.phase === "kept" && !this.#wanted.keepOld);
      if (isAbandoned && !fits(one)) this.steps.push({ kind: "destroy", name: one.name });
    }
  }

  /** Updates members where they are, beside extra ones if these are allowed. */
  updateInPlace(): void {
    const leaving = this.#surplus();
    this.#careForCurrent(leaving);
    for (const { name } of this.#free().filter((one) => fits(one) && !isServing(one) && !leaving.includes(one)))
      this.steps.push({ kind: "expose", name });
    const moving = this.#move(leaving);
    for (const region of this.#regions()) this.#createMissing(region, false);
    const outdated = this.#free().filter((one) => isServing(one) && !fits(one) && !leaving.includes(one));
    const admitted = this.#admitted(outdated, leaving);
    const ready = admitted.filter(({ isReady }) => isReady);
    this.#createExtra(ready);
    this.#destroy(leaving.filter((one) => !moving.includes(one)));
    for (const { name, isReady } of admitted) if (!isReady) this.steps.push({ kind: "update", name, isRepair: true });
    // Those that were down show whether the template works, before others are interrupted for it.
    const isRepairing = this.#begun().some((step) => step.kind === "update" && step.isRepair);
    if ((isRepairing || this.#hasRelapsed()) && this.#wanted.strategy !== "immediate") return;
    for (const one of ready) this.#stop(one, { kind: "update", name: one.name, isRepair: false });
  }

  /** Creates all new members beside the old ones, exposes them together, and then removes the old ones. */
  replaceTogether(): void {
    const old = this.#members.filter((one) => isServing(one) && !fits(one));
    const leaving = this.#surplus(fits).filter((one) => old.length === 0 || !isServing(one));
    this.#careForCurrent(leaving);
    // Before the first new member exists, those that are kept are of an earlier rollout.
    if (old.length > 0 && !this.#members.some(fits))
      for (const { name } of this.#free().filter(({ phase }) => phase === "kept"))
        this.steps.push({ kind: "destroy", name });
    // Never more than twice as many members as wanted.
    if (this.#members.some((one) => one.phase === "green" && !fits(one))) return;
    const moving = old.length === 0 ? this.#move(leaving) : [];
    for (const region of this.#regions()) this.#createMissing(region, old.length > 0);
    this.#destroy(leaving.filter((one) => !moving.includes(one)));
    const green = this.#members.filter((one) => !isServing(one) && fits(one) && !leaving.includes(one));
    const isComplete = this.#regions().every(
      (region) =>
        this.#here(region).filter((one) => fits(one) && one.isReady && !leaving.includes(one)).length >=
        this.#countOf(region),
    );
    if (old.length > 0 && !isComplete) return;
    this.isHeld = old.length > 0 && !this.#wanted.isPromoted;
    if (this.isHeld) return;
    for (const { name } of green.filter((one) => this.#isFree(one))) this.steps.push({ kind: "expose", name });
    if (green.length > 0 || old.length === 0) return;
    const kind = this.#wanted.keepOld && totalOf(this.#wanted.regions) > 0 ? "keep" : "destroy";
    for (const { name } of this.#free().filter((one) => old.includes(one))) this.steps.push({ kind, name });
  }

  // --- parts of strategies ---

  /** Steps for members that have the template. They interrupt nothing. */
  #careForCurrent(leaving: readonly Member[]): void {
    for (const { name, isReady, template } of this.#free().filter((one) => fits(one) && !leaving.includes(one))) {
      if (!isReady) this.steps.push({ kind: "await", name });
      else if (template === "metadata") this.steps.push({ kind: "relabel", name });
    }
  }

  /** The outdated members that may be updated now, those that are not ready first: in a canary rollout only the canaries. */
  #admitted(outdated: readonly Member[], leaving: readonly Member[]): readonly Member[] {
    const { strategy, canaries, isObserved, isPromoted } = this.#wanted;
    const inOrder = [...outdated].sort((a, b) => byReadiness(a, b) || byAge(a, b));
    if (strategy !== "canary" || outdated.length === 0 || (isObserved && isPromoted)) return inOrder;
    const changed = this.#regions()
      .flatMap((region) => this.#here(region))
      .filter((one) => isServing(one) && !leaving.includes(one) && (fits(one) || !this.#isFree(one))).length;
    if (changed < canaries) return inOrder.slice(0, canaries - changed);
    const isQuiet = this.#underway.length === 0 && this.steps.length === 0;
    if (isObserved) this.isHeld = true;
    else if (isQuiet) this.steps.push({ kind: "observe", name: "canaries" });
    return [];
  }

  /**
   * Members more than wanted: those that do not serve first, then those that are not ready, then outdated ones, then the
   * newest. One that a step is getting ready counts as ready, so that the order in which steps end decides nothing.
   */
  #surplus(counts: (one: Member) => boolean = () => true): readonly Member[] {
    const isRollingOut = this.#members.some((one) => isServing(one) && !fits(one));
    let extra = isRollingOut ? this.#wanted.maxSurge : 0;
    return this.#regions().flatMap((region) => {
      const here = this.#here(region).filter(counts);
      const excess = Math.max(0, here.length - this.#countOf(region));
      const kept = this.#countOf(region) === 0 ? 0 : Math.min(extra, excess, here.filter(fits).length);
      extra -= kept;
      const inOrder = [...here].sort(
        (a, b) =>
          Number(isServing(a)) - Number(isServing(b)) ||
          Number(a.isReady || !this.#isFree(a)) - Number(b.isReady || !this.#isFree(b)) ||
          Number(fits(a)) - Number(fits(b)) ||
          byAge(b, a),
      );
      return inOrder.slice(0, excess - kept);
    });
  }

  /**
   * Moves members with volumes from regions that have too many to regions that have too few. Returns those that must not be
   * destroyed yet.
   */
  #move(leaving: readonly Member[]): readonly Member[] {
    if (!this.#wanted.isTied) return [];
    // What has a copy already is kept until the copy is used.
    const copied = leaving.filter(({ movesTo }) =>
      this.#members.some(({ name, isReady }) => name === movesTo?.name && !isReady),
    );
    const free = leaving.filter((one) => isServing(one) && this.#isFree(one) && !copied.includes(one));
    const moving: Member[] = [];
    for (const region of this.#regions()) {
      const missing = this.#countOf(region) - this.#here(region).length - this.#creating(region);
      const begunFirst = [...free].sort(
        (a, b) => Number(b.movesTo?.region === region) - Number(a.movesTo?.region === region),
      );
      for (const one of begunFirst.filter((each) => !moving.includes(each)).slice(0, Math.max(0, missing))) {
        const to = one.movesTo?.region === region ? one.movesTo.name : this.#newName(region, true);
        this.#reserved.set(to, region);
        moving.push(one);
        this.#stop(one, { kind: "move", name: one.name, region, to });
      }
    }
    return [...copied, ...moving];
  }

  #destroy(leaving: readonly Member[]): void {
    for (const one of leaving.filter((member) => this.#isFree(member)))
      this.#stop(one, { kind: "destroy", name: one.name });
  }

  #createMissing(region: string, isGreen: boolean): void {
    const old = isGreen ? this.#here(region).filter((one) => !fits(one)).length : 0;
    const existing = this.#here(region).length - old + this.#creating(region);
    const sources = isGreen ? this.#sourcesFor(region) : [];
    for (let i = existing; i < this.#countOf(region); i++) this.#create(region, isGreen, sources.shift());
  }

  /** The old members of whose volumes the new ones get copies: those of the region, then those that other regions lose. */
  #sourcesFor(region: string): string[] {
    if (!this.#wanted.isTied) return [];
    const copied = [...this.#begun(), ...this.#members].map((one) => ("copyOf" in one ? one.copyOf : undefined));
    const old = (where: string): readonly Member[] => this.#here(where).filter((one) => !fits(one));
    const others = this.#regions().filter((other) => other !== region);
    return [...old(region), ...others.flatMap((other) => old(other).slice(this.#countOf(other)))]
      .map(({ name }) => name)
      .filter((name) => !copied.includes(name));
  }

  /** Creates extra members where most are to be updated, so that these are not missed. */
  #createExtra(ready: readonly Member[]): void {
    const total = totalOf(this.#wanted.regions);
    const creating = this.#regions().reduce((sum, region) => sum + this.#creating(region), 0);
    const existing =
      this.#members.filter((one) => isServing(one) || one.phase === "green" || fits(one)).length + creating;
    const inRegion = (region: string): number => ready.filter((one) => one.region === region).length;
    const [region] = [...this.#regions()].sort((a, b) => inRegion(b) - inRegion(a));
    const surge = this.#wanted.strategy === "immediate" ? 0 : this.#wanted.maxSurge;
    const missing = Math.min(surge, ready.length) - Math.max(0, existing - total);
    if (region === undefined) return;
    for (let i = 0; i < missing; i++) this.#create(region, false);
  }

  /** Begins a step that interrupts a member. One that is ready is interrupted only if enough others are ready. */
  #stop(one: Member, step: Step): void {
    const floor = this.#wanted.strategy === "immediate" ? 0 : promised(this.#wanted);
    const isServed = isServing(one) && one.isReady;
    if (isServed && this.#ready - 1 < floor) return;
    if (isServed) this.#ready -= 1;
    this.steps.push(step);
  }

  #create(region: string, isGreen: boolean, copyOf?: string): void {
    this.steps.push({ kind: "create", name: this.#newName(region, copyOf !== undefined), region, isGreen, copyOf });
  }

  #newName(region: string, hasCopy: boolean): string {
    const taken = new Set([
      ...this.#taken,
      ...(hasCopy ? this.#used : []),
      ...this.#members.map(({ name }) => name),
      ...this.#begun().flatMap(namesOf),
      ...this.#reserved.keys(),
    ]);
    let number = 1;
    while (taken.has(memberName(this.#fleet, region, number))) number++;
    return memberName(this.#fleet, region, number);
  }

  // --- facts ---

  /** Whether a member that this rollout has brought up is down again: the template may be at fault. */
  #hasRelapsed(): boolean {
    return this.#members.some(
      (one) => fits(one) && isServing(one) && !one.isReady && (this.#broughtUp.get(one.name) ?? 0) > 0,
    );
  }

  #begun(): readonly Step[] {
    return [...this.#underway, ...this.steps];
  }

  #isFree({ name }: Member): boolean {
    return !this.#begun().some((step) => namesOf(step).includes(name));
  }

  #free(): readonly Member[] {
    return this.#members.filter((one) => this.#isFree(one));
  }

  #regions(): readonly string[] {
    return [...new Set([...Object.keys(this.#wanted.regions), ...this.#members.map(({ region }) => region)])];
  }

  #countOf(region: string): number {
    return this.#wanted.regions[region] ?? 0;
  }

  /** The members that count in a region: those that serve or can, and do not leave. */
  #here(region: string): readonly Member[] {
    const isLeaving = ({ name }: Member): boolean =>
      this.#begun().some((step) => step.name === name && (step.kind === "destroy" || step.kind === "keep"));
    return this.#members.filter((one) => one.region === region && (isServing(one) || fits(one)) && !isLeaving(one));
  }

  /** Members of a region that are being created, or will be, and are not visible yet. */
  #creating(region: string): number {
    const pending = new Map(this.#reserved);
    for (const step of this.#begun()) {
      if (step.kind === "create") pending.set(step.name, step.region);
      if (step.kind === "move") pending.set(step.to, step.region);
    }
    for (const { name } of this.#members) pending.delete(name);
    return [...pending.values()].filter((where) => where === region).length;
  }
}

// A small model of Pulumi's engine: check, diff, and then create, update or replace; deletions last and in reverse order.
// The state is saved after every step, so that a run may be interrupted at any time. It works with any binding. The order
// of calls and steps follows the engine's step generator and step executor.
import { isObject } from "../../api/schema.ts";
import { CONTEXT, contextOf, type Values } from "../../provider/core/resource.ts";
import { UNKNOWN } from "../../provider/core/values.ts";
import type { ResourceName } from "../../provider/registry.ts";
import type { Verbs } from "./verbs.ts";
import {
  dependentsOf,
  needsOf,
  optionsOf,
  resolved,
  sourcesOf,
  type Declared,
  type Kept,
  type Past,
  type Stack,
  type Verb,
} from "./modelStack.ts";

/** Objects that the provider has reported as created, even partially. */
export interface Made {
  readonly id: string;
  readonly state: Values;
}

/** One step of the engine. */
export interface Step {
  readonly verb: Verb;
  readonly type: ResourceName;
  readonly name: string;
  readonly error?: unknown;
  /** The previous object, if there was one. */
  readonly id?: string;
  /** Objects reported as created. */
  readonly made?: Made[];
  /** How often an error caused a retry. */
  readonly again?: number;
  /** The reason, if the verb does not show it. */
  readonly why?: "forced" | "tainted" | "replaced" | "dependent" | "retained" | "moved";
}

/** The environment of an engine. */
export interface Host {
  bound(type: ResourceName): Verbs;
  /** The number of concurrent steps; 1 if omitted. */
  readonly parallel?: number;
  /** Wraps every step, for example to measure it. */
  around?<T>(step: Step, inputs: Values, work: () => Promise<T>): Promise<T>;
  /** The provider's configuration in this run. */
  readonly configuration?: Values;
  /** Whether another configuration of the provider replaces all of its resources. */
  replacesAll?(before: Values, now: Values): boolean;
}

/** Options of an up. */
export interface Asked {
  /** `--target`: nothing else is checked or changed. */
  readonly targets?: readonly string[];
  /** `--replace`: these are replaced, whatever their diff is. */
  readonly replace?: readonly string[];
  readonly continueOnError?: boolean;
}

/** The result of a run: its steps in the order they ended. */
export type Report = readonly Step[];

/** The steps that failed. */
export const failures = (report: Report): Step[] => report.filter(({ error }) => error !== undefined);

/** The steps that did something, or tried to. */
export const changes = (report: Report): Step[] => report.filter(({ verb }) => verb !== "same" && verb !== "read");

/** The engine's "initialization failed", as both bindings and core report it. */
interface Unfinished {
  readonly id: string;
  readonly properties: Values;
  readonly reasons: readonly string[];
}

const isUnfinished = (error: unknown): error is Unfinished =>
  isObject(error) &&
  typeof error["id"] === "string" &&
  isObject(error["properties"]) &&
  Array.isArray(error["reasons"]);

/**
 * Applies a program to a stack. After a failed step, running steps finish and no others begin, unless `continueOnError` is
 * set.
 */
export const up = (stack: Stack, program: readonly Declared[], host: Host, asked: Asked = {}): Promise<Report> =>
  new Run(stack, host, asked).up(program);

/** Reads everything; objects proved to be gone leave the state. A failure does not stop the others. */
export const refresh = (stack: Stack, host: Host): Promise<Report> =>
  new Run(stack, host, { continueOnError: true }).refresh();

/** Deletes everything, dependents first. */
export async function destroy(stack: Stack, host: Host): Promise<Report> {
  const run = new Run(stack, host, {});
  await run.deleteAll(stack.resources);
  return run.report;
}

const ownerOf = (type: string, name: string): string => `${type}-${name}`;

/** Imports an existing object into the state, only by its id. */
export async function importResource(
  stack: Stack,
  { type, name, id, needs }: Pick<Kept, "type" | "name" | "id" | "needs">,
  host: Host,
): Promise<Report> {
  const run = new Run(stack, host, {});
  await run.step({ verb: "import", type, name }, {}, async (bound) => {
    const found = await bound.read(id, {});
    if (!found) throw new NotFound(`resource ${id} does not exist`);
    // Only the plugin imports, and the engine tells it the resource in every call, also where the state does not.
    const state = { ...found.state, [CONTEXT]: { ...contextOf(found.state), owner: ownerOf(type, name) } };
    stack.resources.push({
      type,
      name,
      id,
      inputs: {},
      ...found,
      state,
      needs,
      failed: [],
      configuration: host.configuration,
    });
  });
  return run.report;
}

type Plan =
  /** It is skipped because it is not a target. `skip` if it does not exist yet. */
  | { readonly kind: "untargeted"; readonly old: Kept }
  | { readonly kind: "skip"; readonly old: undefined }
  | { readonly kind: "same"; readonly old: Kept; readonly inputs: Values }
  | { readonly kind: "update"; readonly old: Kept; readonly inputs: Values }
  /** `old` was deleted before this one can be created. */
  | { readonly kind: "create"; readonly old: Kept | undefined; readonly inputs: Values }
  | { readonly kind: "replace"; readonly old: Kept; readonly inputs: Values; readonly why: NonNullable<Step["why"]> }
  | {
      readonly kind: "delete-replace";
      readonly old: Kept;
      readonly inputs: Values;
      readonly why: NonNullable<Step["why"]>;
      /** Dependents that are deleted before it. */
      readonly first: readonly Kept[];
    };

interface Verdict {
  readonly kind: "same" | "update" | "replace";
  readonly deleteFirst: boolean;
}

type Outcome = "made" | "skipped" | "failed";

class Run {
  readonly report: Step[] = [];
  readonly #stack: Stack;
  readonly #host: Host;
  readonly #asked: Asked;
  readonly #slots: Slots;
  readonly #previous: readonly Past[];
  #planning: Promise<unknown> = Promise.resolve();
  /** Whether no more steps begin. */
  #isCancelled = false;
  /** Names with planned steps. */
  readonly #planned = new Set<string>();
  /** Names that the program still has. */
  readonly #seen = new Set<string>();
  /** Names that were deleted together with a dependency and have not been recreated yet. */
  readonly #condemned = new Set<string>();
  /** Saved results of failed steps. */
  readonly #errored = new Set<Kept>();

  constructor(stack: Stack, host: Host, asked: Asked) {
    this.#stack = stack;
    this.#host = host;
    this.#asked = asked;
    this.#slots = new Slots(host.parallel ?? 1);
    this.#previous = stack.resources.map((kept) => ({ kept, name: kept.name, needs: kept.needs }));
    // Pending steps of an interrupted run are reported to the user, and then forgotten.
    stack.pending = [];
  }

  async up(program: readonly Declared[]): Promise<Report> {
    const made = new Map<string, Kept>();
    const tasks = new Map<string, Promise<Outcome>>();
    for (const declared of program) {
      const before = Promise.all(
        needsOf(declared).map((name) => tasks.get(name) ?? Promise.resolve<Outcome>("failed")),
      );
      tasks.set(
        declared.name,
        before.then((needed) => this.#register(declared, needed, made)),
      );
    }
    await Promise.all(tasks.values());
    if (this.#isCancelled) return this.report;
    await this.deleteAll(await this.#doomed());
    return this.report;
  }

  async refresh(): Promise<Report> {
    const present = this.#stack.resources.filter(({ mark }) => mark !== "replacing");
    await Promise.all(
      present.map((kept) =>
        this.step({ verb: "read", type: kept.type, name: kept.name, id: kept.id }, kept.state, async (bound) => {
          const found = await bound.read(kept.id, kept.state);
          if (!found) return void this.#remove(kept);
          const { inputs } = kept;
          Object.assign(kept, found, { failed: [] });
          // The refresh shows the diff of the next up in reverse.
          await bound.diff(kept.id, kept.state, inputs);
        }),
      ),
    );
    return this.report;
  }

  /** Deletes resources of the state, each once no dependent is left to be deleted. */
  async deleteAll(doomed: readonly Kept[]): Promise<void> {
    const tasks = new Map<Kept, Promise<boolean>>();
    const spared = this.#neededByErrored();
    const deleted = (kept: Kept): Promise<boolean> => {
      const known = tasks.get(kept);
      if (known) return known;
      const first = doomed.filter((other) => other !== kept && other.needs.includes(kept.name));
      const task = Promise.all(first.map(deleted)).then(
        (all) => all.every(Boolean) && !spared.has(kept) && this.#delete(kept),
      );
      tasks.set(kept, task);
      return task;
    };
    await Promise.all([...doomed].reverse().map(deleted));
  }

  /** If the run continues after errors, resources that failed ones need are not deleted. */
  #neededByErrored(): Set<Kept> {
    const spared = new Set<Kept>();
    const spare = (one: Past): void => {
      for (const other of this.#previous) {
        if (spared.has(other.kept) || !one.needs.includes(other.name)) continue;
        spared.add(other.kept);
        spare(other);
      }
    };
    for (const one of this.#previous) if (this.#errored.has(one.kept)) spare(one);
    return spared;
  }

  /** The deletions at the end: resources removed from the program, and replaced ones. */
  async #doomed(): Promise<readonly Kept[]> {
    const { targets } = this.#asked;
    const left = this.#stack.resources.filter(({ name, mark }) => mark === "leaving" || !this.#seen.has(name));
    if (targets === undefined) return left;
    const allowed = new Set(targets);
    const chosen = this.#previous.filter(({ name }) => targets.includes(name));
    try {
      for (const target of chosen) for (const { name } of dependentsOf(target, this.#previous)) allowed.add(name);
      for (const target of this.#previous.filter(({ name }) => allowed.has(name)))
        for (const { name } of await this.#replacedWith(target.kept)) allowed.add(name);
      const doomed = left.filter(({ name }) => allowed.has(name));
      const beyond = doomed.filter(({ name }) => !targets.includes(name));
      if (beyond.length === 0) return doomed;
      throw new EngineRefused(`${beyond.map(({ name }) => name).join(", ")} would be deleted and is no target`);
    } catch (error) {
      const [first] = chosen;
      if (!first) throw error;
      this.#fail({ verb: "delete", type: first.kept.type, name: targets.join(", ") }, error);
      return [];
    }
  }

  async #delete(kept: Kept, why?: Step["why"]): Promise<boolean> {
    const { type, name, id, mark } = kept;
    if (mark === "replacing") return this.#remove(kept);
    const isReplaced = why !== undefined || mark === "leaving";
    const isRetained = kept.options?.retainOnDelete === true;
    const reason = isRetained ? "retained" : isReplaced ? (why ?? "replaced") : undefined;
    const step: Step = { verb: "delete", type, name, id, ...(reason ? { why: reason } : {}) };
    if (kept.options?.protect && !isReplaced) {
      // The engine reports all protected ones, and continues.
      this.report.push({ ...step, error: new EngineRefused(`${name} is protected`) });
      return false;
    }
    const work = async (bound: Verbs) => {
      if (isRetained) this.#stack.orphans.push(kept);
      else await bound.delete(kept.id, kept.state);
      if (why === undefined) this.#remove(kept);
      else kept.mark = "replacing";
    };
    return this.step(step, kept.state, work, { old: kept, retries: kept.options?.retries ?? 0 });
  }

  /** Runs one step unless another has failed; returns whether it was run. */
  step(
    step: Step,
    inputs: Values,
    work: (bound: Verbs) => Promise<void>,
    { old, retries = 0 }: { readonly old?: Kept | undefined; readonly retries?: number } = {},
  ): Promise<boolean> {
    return this.#slots.take(async () => {
      const pending = { verb: step.verb, type: step.type, name: step.name };
      for (let again = 0; !this.#isCancelled; again++) {
        this.#stack.pending.push(pending);
        const finished = again === 0 ? step : { ...step, again };
        try {
          await this.#around(finished, inputs, () => work(this.#host.bound(step.type)));
          this.report.push(finished);
          return true;
        } catch (error) {
          if (again < retries) continue;
          if (old) this.#errored.add(old);
          this.#fail(finished, error, this.#asked.continueOnError);
          return false;
        } finally {
          this.#stack.pending = this.#stack.pending.filter((other) => other !== pending);
        }
      }
      return false;
    });
  }

  #around<T>(step: Step, inputs: Values, work: () => Promise<T>): Promise<T> {
    const { around = (_step, _inputs, plain) => plain() } = this.#host;
    return around.call(this.#host, step, inputs, work) as Promise<T>;
  }

  #fail(step: Step, error: unknown, goesOn = false): void {
    this.#isCancelled ||= !goesOn;
    this.report.push({ ...step, error });
  }

  async #register(declared: Declared, needed: readonly Outcome[], made: Map<string, Kept>): Promise<Outcome> {
    if (this.#isCancelled) return "failed";
    const inputs = resolved(declared.inputs, made) as Values;
    // The engine plans resources in sequence, and does not wait for steps meanwhile.
    const planned = this.#planning.then(() => this.#decide(declared, inputs, needed));
    this.#planning = planned;
    const plan = await planned;
    if (!plan || needed.includes("failed")) return "failed";
    if (plan.kind === "skip") return "skipped";
    const kept = await this.#execute(declared, plan);
    if (!kept) return "failed";
    made.set(declared.name, kept);
    return "made";
  }

  async #decide(declared: Declared, inputs: Values, needed: readonly Outcome[]): Promise<Plan | undefined> {
    if (this.#isCancelled) return undefined;
    const { type, name } = declared;
    try {
      const plan = await this.#around({ verb: "check", type, name }, inputs, () => this.#plan(declared, inputs));
      if (needed.includes("skipped") && plan.kind !== "skip" && plan.kind !== "untargeted")
        throw new EngineRefused(`${name} needs what is no target and was never made`);
      this.#planned.add(name);
      for (const seen of [name, plan.old?.name ?? name]) this.#seen.add(seen);
      return plan;
    } catch (error) {
      this.#fail({ verb: "check", type, name }, error);
      return undefined;
    }
  }

  async #plan(declared: Declared, values: Values): Promise<Plan> {
    const { type, name, protect, deleteBeforeReplace } = declared;
    const old = this.#oldOf(declared);
    if (this.#asked.targets?.includes(name) === false) return old ? { kind: "untargeted", old } : { kind: "skip", old };
    const bound = this.#host.bound(type);
    const news = { ...values, [CONTEXT]: { name, owner: ownerOf(type, name) } };
    const isForced = this.#asked.replace?.includes(name) === true || old?.tainted === true;
    const isRecreated = old !== undefined && this.#condemned.delete(old.name);
    const isNew = old === undefined || isRecreated || isForced;
    const inputs = checked(await bound.check(isNew ? {} : old.inputs, news));
    if (old === undefined || isRecreated) return { kind: "create", old, inputs };
    const isMoved = this.#isMoved(old);
    const verdict: Verdict =
      isForced || isMoved ? { kind: "replace", deleteFirst: false } : await this.#diff(bound, old, inputs, declared);
    const isPending = old.mark === "replacing";
    if (verdict.kind === "same" && !isPending) return { kind: old.failed.length > 0 ? "update" : "same", old, inputs };
    if (verdict.kind !== "replace" && !isPending) return { kind: "update", old, inputs };
    if (protect === true && old.options?.protect === true) throw new EngineRefused(`${name} is protected`);
    // The replacement is checked without old inputs.
    const newInputs = isForced ? inputs : checked(await bound.check({}, news));
    const why = old.tainted ? "tainted" : isForced ? "forced" : isMoved ? "moved" : "replaced";
    if (!(deleteBeforeReplace ?? verdict.deleteFirst)) return { kind: "replace", old, inputs: newInputs, why };
    const first = await this.#replacedWith(old);
    const spared = first.find(({ options, mark }) => options?.protect === true && mark !== "leaving");
    if (spared) throw new EngineRefused(`${spared.name} is protected`);
    for (const { name: dependent } of first) this.#condemned.add(dependent);
    return { kind: "delete-replace", old, inputs: newInputs, why, first: first.reverse() };
  }

  #oldOf({ name, aliases = [] }: Declared): Kept | undefined {
    const olds = this.#stack.resources.filter(({ mark }) => mark !== "leaving");
    for (const one of [name, ...aliases]) {
      const old = olds.find((kept) => kept.name === one);
      if (old) return old;
    }
    return undefined;
  }

  #isMoved({ configuration }: Kept): boolean {
    const { configuration: now, replacesAll } = this.#host;
    return configuration !== undefined && now !== undefined && replacesAll?.(configuration, now) === true;
  }

  /** The provider's diff, plus the program's own replaceOnChanges. */
  async #diff(
    bound: Verbs,
    { id, state }: Kept,
    inputs: Values,
    { replaceOnChanges = [] }: Pick<Declared, "replaceOnChanges">,
  ): Promise<Verdict> {
    const kind = await bound.diff(id, state, inputs);
    if (kind !== "update" || replaceOnChanges.length === 0 || !bound.changed)
      return kind === "delete-replace" ? { kind: "replace", deleteFirst: true } : { kind, deleteFirst: false };
    const { names, deleteBeforeReplace } = await bound.changed(id, state, inputs);
    const isReplaced = names.some((name) => replaceOnChanges.includes(name));
    return { kind: isReplaced ? "replace" : "update", deleteFirst: deleteBeforeReplace };
  }

  /** Dependents of a resource that is deleted before it is recreated, if they would be replaced as well. */
  async #replacedWith(root: Kept): Promise<Kept[]> {
    const names = new Set([root.name]);
    const found: Kept[] = [];
    const past = this.#previous.find(({ kept }) => kept === root);
    for (const { kept, name } of past ? dependentsOf(past, this.#previous, this.#planned) : []) {
      const { sources = {} } = kept;
      const moves = Object.keys(sources).filter((input) => sources[input]?.some((one) => names.has(one)));
      if (moves.length === 0 || kept.mark === "replacing") continue;
      const inputs = { ...kept.inputs, ...Object.fromEntries(moves.map((input) => [input, UNKNOWN])) };
      const verdict = await this.#diff(this.#host.bound(kept.type), kept, inputs, kept.options ?? {});
      if (verdict.kind !== "replace") continue;
      names.add(name);
      found.push(kept);
    }
    return found;
  }

  async #execute(declared: Declared, plan: Exclude<Plan, { kind: "skip" }>): Promise<Kept | undefined> {
    const { type, name } = declared;
    if (plan.kind === "untargeted") return plan.old;
    const common = { needs: needsOf(declared), sources: sourcesOf(declared), options: optionsOf(declared) };
    const lasting = { ...common, configuration: this.#host.configuration };
    if (plan.kind === "same") {
      if (this.#isCancelled) return undefined;
      this.#rename(plan.old, name);
      Object.assign(plan.old, { inputs: plan.inputs, ...lasting });
      this.report.push({ verb: "same", type, name, id: plan.old.id });
      return plan.old;
    }
    if (plan.kind === "update") return this.#update(declared, plan.old, { inputs: plan.inputs, ...lasting });
    if (plan.kind === "delete-replace") {
      for (const kept of plan.first)
        if (!(await this.#delete(kept, kept.mark === "leaving" ? undefined : "dependent"))) return undefined;
      if (plan.old.mark !== "replacing" && !(await this.#delete(plan.old, plan.why))) return undefined;
    }
    return this.#create(declared, plan, lasting);
  }

  async #update({ type, name, retries = 0 }: Declared, kept: Kept, now: Partial<Kept>): Promise<Kept | undefined> {
    const inputs = now.inputs ?? {};
    let failed: readonly string[] = [];
    const change = (state: Values) => {
      this.#rename(kept, name);
      Object.assign(kept, now, { state, failed });
    };
    let partly: Unfinished | undefined;
    const work = async (bound: Verbs) => {
      try {
        partly = undefined;
        change(await bound.update(kept.id, kept.state, inputs));
      } catch (error) {
        if (isUnfinished(error)) [partly, failed] = [error, error.reasons];
        throw error;
      }
    };
    const isDone = await this.step({ verb: "update", type, name, id: kept.id }, inputs, work, { old: kept, retries });
    if (!isDone && partly) change(partly.properties);
    return isDone ? kept : undefined;
  }

  async #create(
    { type, name, retries = 0 }: Declared,
    plan: Extract<Plan, { kind: "create" | "replace" | "delete-replace" }>,
    common: Pick<Kept, "needs" | "sources" | "options" | "configuration">,
  ): Promise<Kept | undefined> {
    const { old, inputs } = plan;
    // Failures that the first try reported stay in the state, even if the second try succeeds.
    let failed: readonly string[] = [];
    let kept: Kept | undefined;
    const keep = (id: string, state: Values): void => {
      kept = { type, name, id, inputs, state, failed, ...common };
      this.#stack.resources.push(kept);
      if (!old) return;
      if (old.name !== name) this.#repoint(old.name, name);
      if (plan.kind !== "replace") this.#remove(old);
      else {
        delete old.tainted;
        old.mark = "leaving";
      }
    };
    const made: Made[] = [];
    let partly: Unfinished | undefined;
    const work = async (bound: Verbs) => {
      try {
        partly = undefined;
        const { id, state } = await bound.create(inputs);
        made.push({ id, state });
        keep(id, state);
      } catch (error) {
        if (isUnfinished(error)) {
          [partly, failed] = [error, error.reasons];
          made.push({ id: error.id, state: error.properties });
        }
        throw error;
      }
    };
    const why = "why" in plan ? { why: plan.why } : {};
    const isDone = await this.step({ verb: "create", type, name, made, ...why }, inputs, work, { old, retries });
    // The engine saves the object that the last failed try reported, and nothing if that reported none.
    if (!isDone && partly) keep(partly.id, partly.properties);
    return isDone ? kept : undefined;
  }

  #rename(kept: Kept, name: string): void {
    if (kept.name === name) return;
    this.#repoint(kept.name, name);
    kept.name = name;
  }

  #repoint(before: string, name: string): void {
    const moved = (names: readonly string[]) => names.map((one) => (one === before ? name : one));
    for (const kept of this.#stack.resources) {
      kept.needs = moved(kept.needs);
      kept.sources = Object.fromEntries(Object.entries(kept.sources ?? {}).map(([input, of]) => [input, moved(of)]));
    }
  }

  #remove(kept: Kept): boolean {
    this.#stack.resources = this.#stack.resources.filter((other) => other !== kept);
    return true;
  }
}

/** The checked inputs. @throws Error with the failures. */
function checked({ inputs, failures }: Awaited<ReturnType<Verbs["check"]>>): Values {
  if (failures.length > 0) throw new CheckFailed(failures.join("\n"));
  return inputs;
}

/** Inputs were refused before anything was done. */
export class CheckFailed extends Error {}

/** A refusal of the engine itself, for protected and untargeted resources. */
export class EngineRefused extends Error {}

/** The object to be imported does not exist. */
export class NotFound extends Error {}

/** Limits concurrency, in order of arrival. */
class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((go) => this.#waiting.push(go));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}

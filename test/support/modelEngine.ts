// What Pulumi's engine does with a program, in small: check, diff, and then create, update or replace; deletions last and
// in reverse; state that is saved after every step, so that a run may be cut off at any moment. It drives any binding.
import { isObject } from "../../api/schema.ts";
import { CONTEXT, type Values } from "../../provider/core/resource.ts";
import type { Verbs } from "./binding.ts";

/** What stands in a program for the id or an output of an earlier resource. */
export interface Reference {
  readonly $of: string;
  /** `id`, or the name of an output. */
  readonly get: string;
}

/** One resource of a program. Names are unique in it. */
export interface Declared {
  readonly type: string;
  readonly name: string;
  readonly inputs: Values;
}

/** One resource of a state. */
export interface Kept {
  readonly type: string;
  readonly name: string;
  id: string;
  inputs: Values;
  state: Values;
  /** Names of what it was made with. */
  needs: readonly string[];
  /** What failed after it was made or changed: the next up updates it whatever its diff says. */
  failed: readonly string[];
  /** `leaving`: it was replaced, and is still to be deleted; `replacing`: it was deleted, and is still to be made anew. */
  mark?: "leaving" | "replacing";
}

/** What an engine keeps between runs. */
export interface Stack {
  resources: Kept[];
  /** Steps that were begun and did not end: after a run that was cut off, nobody knows what became of them. */
  pending: Pick<Step, "verb" | "type" | "name">[];
}

/** One thing the engine had the provider do. */
export interface Step {
  readonly verb: "check" | "same" | "create" | "update" | "delete" | "read" | "import";
  readonly type: string;
  readonly name: string;
  readonly error?: unknown;
}

/** Where an engine runs. */
export interface Host {
  bound(type: string): Verbs;
  /** Steps that go on at one time; 1 when left out. */
  readonly parallel?: number;
  /** What happens around a step: measuring, for instance. */
  around?<T>(step: Step, inputs: Values, work: () => Promise<T>): Promise<T>;
}

/** What a run came to: its steps in the order they ended. */
export type Report = readonly Step[];

/** The steps that failed. */
export const failures = (report: Report): Step[] => report.filter(({ error }) => error !== undefined);

/** The steps that did something, or tried to. */
export const changes = (report: Report): Step[] => report.filter(({ verb }) => verb !== "same" && verb !== "read");

/** A stack without anything in it. */
export const emptyStack = (): Stack => ({ resources: [], pending: [] });

const isReference = (value: unknown): value is Reference => isObject(value) && typeof value["$of"] === "string";

/** Names of the resources that inputs refer to. */
export function namesIn(value: unknown): string[] {
  if (isReference(value)) return [value.$of];
  const inner = Array.isArray(value) ? (value as unknown[]) : isObject(value) ? Object.values(value) : [];
  return [...new Set(inner.flatMap(namesIn))];
}

function resolved(value: unknown, made: ReadonlyMap<string, Kept>): unknown {
  if (isReference(value)) {
    const found = made.get(value.$of);
    return value.get === "id" ? found?.id : found?.state[value.get];
  }
  if (Array.isArray(value)) return value.map((item: unknown) => resolved(item, made));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, resolved(inner, made)]));
}

/** The engine's "initialization failed", as both bindings and core tell it. */
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

/** Brings a stack to what a program declares. A step that fails lets those that have begun end, and no other begin. */
export const up = (stack: Stack, program: readonly Declared[], host: Host): Promise<Report> =>
  new Run(stack, host).up(program);

/** Reads everything anew; what is proved to be gone leaves the state. */
export const refresh = (stack: Stack, host: Host): Promise<Report> => new Run(stack, host).refresh();

/** Deletes everything, what needs others before these. */
export async function destroy(stack: Stack, host: Host): Promise<Report> {
  const run = new Run(stack, host);
  await run.deleteAll(stack.resources);
  return run.report;
}

/** Takes an object that is there into the state, by its id alone. */
export async function importResource(
  stack: Stack,
  { type, name, id, needs }: Pick<Kept, "type" | "name" | "id" | "needs">,
  host: Host,
): Promise<Report> {
  const run = new Run(stack, host);
  await run.step({ verb: "import", type, name }, {}, async (bound) => {
    const found = await bound.read(id, {});
    if (!found) throw new NotThere(`resource ${id} does not exist`);
    stack.resources.push({ type, name, id, ...found, needs, failed: [] });
  });
  return run.report;
}

type Plan =
  | { readonly kind: "same" | "update"; readonly old: Kept; readonly inputs: Values }
  | { readonly kind: "create"; readonly old: Kept | undefined; readonly inputs: Values }
  | { readonly kind: "replace" | "delete-replace"; readonly old: Kept; readonly inputs: Values };

class Run {
  readonly report: Step[] = [];
  readonly #stack: Stack;
  readonly #host: Host;
  readonly #slots: Slots;
  #planning: Promise<unknown> = Promise.resolve();
  #failed = false;

  constructor(stack: Stack, host: Host) {
    this.#stack = stack;
    this.#host = host;
    this.#slots = new Slots(host.parallel ?? 1);
    // What was begun by a run that was cut off is told to the user, and then forgotten.
    stack.pending = [];
  }

  async up(program: readonly Declared[]): Promise<Report> {
    const made = new Map<string, Kept>();
    const tasks = new Map<string, Promise<boolean>>();
    for (const declared of program) {
      const needs = namesIn(declared.inputs);
      const before = Promise.all(needs.map(async (name) => tasks.get(name)));
      const task = before.then(async (all) => {
        if (!all.every((isMade) => isMade === true)) return false;
        const kept = await this.#register(declared, resolved(declared.inputs, made) as Values, needs);
        if (kept) made.set(declared.name, kept);
        return kept !== undefined;
      });
      tasks.set(declared.name, task);
    }
    await Promise.all(tasks.values());
    if (this.#failed) return this.report;
    const declared = new Set(program.map(({ name }) => name));
    await this.deleteAll(this.#stack.resources.filter(({ name, mark }) => mark === "leaving" || !declared.has(name)));
    return this.report;
  }

  async refresh(): Promise<Report> {
    const { resources } = this.#stack;
    const present = resources.filter(({ mark }) => mark === undefined);
    await Promise.all(
      present.map((kept) =>
        this.step({ verb: "read", type: kept.type, name: kept.name }, kept.state, async (bound) => {
          const found = await bound.read(kept.id, kept.state);
          if (found) Object.assign(kept, found, { failed: [] });
          else this.#remove(kept);
        }),
      ),
    );
    return this.report;
  }

  /** Deletes resources of the state, each once nothing that is to be deleted too needs it. */
  async deleteAll(doomed: readonly Kept[]): Promise<void> {
    const tasks = new Map<Kept, Promise<boolean>>();
    const deleted = (kept: Kept): Promise<boolean> => {
      const known = tasks.get(kept);
      if (known) return known;
      const first = doomed.filter((other) => other !== kept && other.needs.includes(kept.name));
      const task = Promise.all(first.map(deleted)).then((all) => all.every(Boolean) && this.#delete(kept));
      tasks.set(kept, task);
      return task;
    };
    await Promise.all([...doomed].reverse().map(deleted));
  }

  async #delete(kept: Kept): Promise<boolean> {
    if (kept.mark === "replacing") return this.#remove(kept);
    return this.step({ verb: "delete", type: kept.type, name: kept.name }, kept.state, async (bound) => {
      await bound.delete(kept.id, kept.state);
      this.#remove(kept);
    });
  }

  /** Does one step unless another has failed; whether it was done. */
  step(step: Step, inputs: Values, work: (bound: Verbs) => Promise<void>): Promise<boolean> {
    return this.#slots.take(async () => {
      if (this.#failed) return false;
      const { verb, type, name } = step;
      const pending = { verb, type, name };
      this.#stack.pending.push(pending);
      const { around = (_step, _inputs, plain) => plain() } = this.#host;
      try {
        await around.call(this.#host, step, inputs, () => work(this.#host.bound(type)));
        // A check that passed is the beginning of another step.
        if (verb !== "check") this.report.push(step);
        return true;
      } catch (error) {
        this.#failed = true;
        this.report.push({ ...step, error });
        return false;
      } finally {
        this.#stack.pending = this.#stack.pending.filter((other) => other !== pending);
      }
    });
  }

  async #register(declared: Declared, inputs: Values, needs: readonly string[]): Promise<Kept | undefined> {
    // The engine decides about one resource after the other.
    const planned = this.#planning.then(() => this.#plan(declared, inputs));
    this.#planning = planned;
    const plan = await planned;
    return plan && this.#execute(declared, plan, needs);
  }

  async #plan({ type, name }: Declared, values: Values): Promise<Plan | undefined> {
    const bound = this.#host.bound(type);
    const news = { ...values, [CONTEXT]: { name, owner: `${type}-${name}` } };
    const old = this.#stack.resources.find((kept) => kept.name === name && kept.mark !== "leaving");
    let plan: Plan | undefined;
    await this.step({ verb: "check", type, name }, values, async () => {
      const isAnew = old === undefined || old.mark === "replacing";
      const inputs = checked(await bound.check(isAnew ? {} : old.inputs, news));
      if (isAnew) return void (plan = { kind: "create", old, inputs });
      const kind = await bound.diff(old.id, old.state, inputs);
      if (kind === "same" || kind === "update") {
        plan = { kind: old.failed.length > 0 ? "update" : kind, old, inputs };
        return;
      }
      // What replaces it is checked as if there had been nothing.
      plan = { kind, old, inputs: checked(await bound.check({}, news)) };
    });
    return plan;
  }

  async #execute({ type, name }: Declared, plan: Plan, needs: readonly string[]): Promise<Kept | undefined> {
    const { old, inputs } = plan;
    if (plan.kind === "same") {
      Object.assign(plan.old, { inputs, needs });
      this.report.push({ verb: "same", type, name });
      return plan.old;
    }
    if (plan.kind === "update") {
      const kept = plan.old;
      const change = (state: Values, failed: readonly string[]) =>
        Object.assign(kept, { inputs, state, needs, failed });
      const isDone = await this.step({ verb: "update", type, name }, inputs, async (bound) => {
        try {
          change(await bound.update(kept.id, kept.state, inputs), []);
        } catch (error) {
          if (isUnfinished(error)) change(error.properties, error.reasons);
          throw error;
        }
      });
      return isDone ? kept : undefined;
    }
    if (plan.kind === "delete-replace") {
      const isGone = await this.step({ verb: "delete", type, name }, plan.old.state, async (bound) => {
        await bound.delete(plan.old.id, plan.old.state);
        plan.old.mark = "replacing";
      });
      if (!isGone) return undefined;
    }
    let kept: Kept | undefined;
    const keep = (id: string, state: Values, failed: readonly string[]): void => {
      kept = { type, name, id, inputs, state, needs, failed };
      this.#stack.resources.push(kept);
      if (old?.mark === "replacing") this.#remove(old);
      else if (old) old.mark = "leaving";
    };
    const isDone = await this.step({ verb: "create", type, name }, inputs, async (bound) => {
      try {
        const { id, state } = await bound.create(inputs);
        keep(id, state, []);
      } catch (error) {
        if (isUnfinished(error)) keep(error.id, error.properties, error.reasons);
        throw error;
      }
    });
    return isDone ? kept : undefined;
  }

  #remove(kept: Kept): boolean {
    this.#stack.resources = this.#stack.resources.filter((other) => other !== kept);
    return true;
  }
}

/** Inputs that a check took. @throws Error with what it did not take. */
function checked({ inputs, failures }: Awaited<ReturnType<Verbs["check"]>>): Values {
  if (failures.length > 0) throw new CheckFailed(failures.join("\n"));
  return inputs;
}

/** Inputs were refused before anything was done. */
export class CheckFailed extends Error {}

/** There is nothing of the id that was to be imported. */
export class NotThere extends Error {}

/** So many at a time, in the order they came. */
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

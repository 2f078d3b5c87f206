// Lets the updates of an App's Machines begin a few at a time (admission.ts), and ends those that wait when one has failed.
import type { Api } from "../client/api.ts";
import { everyTenSeconds } from "../client/clock.ts";
import { MachinesError } from "../client/errors.ts";
import { isDestroyed, type Machine, type MachineKey } from "../client/machine.ts";
import { PartialStateError } from "../core/partialState.ts";
import type { Call } from "../core/resource.ts";
import { RolledBackError } from "./executor.ts";
import { admissible, conditionOf, isUnlimited, limitOf, type Candidate, type Condition } from "./admission.ts";

/** Milliseconds without a new resource of the program after which the engine has sent what it begins together. */
const gathering = 50;
/** Milliseconds that an update waits at most for others that may have to go first. */
const gatheringAtMost = 1000;
/** Milliseconds for which a list of the App's Machines counts as current. */
const currentFor = 1000;
/** Milliseconds after which a replacement that was deleted and not created again no longer makes others wait. A busy engine takes seconds. */
const abandonedAfter = 60_000;

interface Waiting {
  readonly key: MachineKey;
  readonly report: (message: string) => void;
  readonly begin: () => void;
  readonly refuse: (error: Error) => void;
}

interface Underway extends Candidate {
  /** When it was deleted, while the engine has yet to create its replacement. */
  deletedAt?: number;
}

/** The interruptions of one App by one run. */
export class Interruptions {
  readonly #waiting = new Set<Waiting>();
  readonly #underway = new Map<string, Underway>();
  /** Machines whose update has failed. The engine may try them again in the same run. */
  readonly #failed = new Set<string>();
  /** When the first of the updates that wait now came. */
  #since = 0;
  #known: { readonly at: number; readonly machines: readonly Machine[] } | undefined;
  #isDeciding = false;

  /**
   * Waits until the Machine may be interrupted.
   * @returns the milliseconds waited
   * @throws MachinesError `refused` if another update of the App has failed in this run
   */
  async begin(key: MachineKey, call: Pick<Call, "api" | "progress" | "run">, isReplacement = false): Promise<number> {
    const { clock, deadline } = call.api;
    if (isUnlimited(call.api.config.maxUnavailable)) return 0;
    const since = clock.now();
    // A Machine that depends on the replaced one is deleted before it, and created after it: neither may wait for the other.
    if (isReplacement && this.#deleted().length > 0) {
      this.#underway.set(key.machineId, { id: key.machineId, condition: "up" });
      return 0;
    }
    if (this.#failed.size > 0 && !this.#failed.has(key.machineId)) throw this.#afterFailure(key);
    const admitted = new Promise<void>((begin, refuse) => {
      const waiting: Waiting = { key, report: everyTenSeconds(clock, call.progress, 0), begin, refuse };
      if (this.#waiting.size === 0 && this.#underway.size === 0) this.#since = since;
      this.#waiting.add(waiting);
      deadline.signal?.addEventListener("abort", () => {
        if (this.#waiting.delete(waiting)) refuse(deadline.signal?.reason as Error);
      });
    });
    admitted.catch(() => undefined);
    for (let seen = -1; seen !== call.run.program.size && clock.now() - since < gatheringAtMost;) {
      seen = call.run.program.size;
      await clock.sleep(gathering, deadline.signal);
    }
    void this.#decide(call);
    await admitted;
    return clock.now() - since;
  }

  /** Notes that a Machine was deleted, and that its replacement is still to be created. */
  deleted(key: MachineKey, { api }: Pick<Call, "api">): void {
    const entry = this.#underway.get(key.machineId);
    if (!entry) return;
    entry.deletedAt = api.clock.now();
    // Another step may have failed meanwhile, and then the engine begins no more.
    void this.#forgetAbandoned(api);
  }

  /** Notes that the engine creates the replacement of a deleted Machine. */
  recreating(machineId: string): void {
    const entry = this.#underway.get(machineId);
    if (entry) delete entry.deletedAt;
  }

  /** Notes the end of an interruption. After a failed one, nothing more of the App is interrupted. */
  end(key: MachineKey, hasFailed: boolean, call: Pick<Call, "api">): void {
    if (!this.#underway.delete(key.machineId)) return;
    if (hasFailed) {
      this.#failed.add(key.machineId);
      for (const { key: other, refuse } of this.#waiting) refuse(this.#afterFailure(other));
      this.#waiting.clear();
    } else this.#failed.delete(key.machineId);
    void this.#decide(call);
  }

  /** Notes that a Machine is gone, which the others no longer need to be protected from. */
  gone({ machineId }: MachineKey): void {
    this.#failed.delete(machineId);
  }

  #deleted(): Underway[] {
    return [...this.#underway.values()].filter(({ deletedAt }) => deletedAt !== undefined);
  }

  #afterFailure({ appName, machineId }: MachineKey): MachinesError {
    const [failed = ""] = this.#failed;
    return new MachinesError(
      "refused",
      `Machine ${appName}/${machineId} was not changed, because the update of Machine ${appName}/${failed} has failed. Correct the cause, and run up again to continue with the rest.`,
    );
  }

  /** Lets the updates begin that may. One decision at a time: the next one counts what this one has let begin. */
  async #decide({ api }: Pick<Call, "api">): Promise<void> {
    if (this.#isDeciding) return;
    this.#isDeciding = true;
    try {
      while (this.#waiting.size > 0) {
        const begun = await this.#admit(api);
        if (begun === 0) break;
      }
    } finally {
      this.#isDeciding = false;
    }
    void this.#forgetAbandoned(api);
  }

  async #admit(api: Api): Promise<number> {
    const [first, ...others] = this.#waiting;
    if (first === undefined) return 0;
    // The only update of its App needs no request.
    if (others.length === 0 && this.#underway.size === 0) return this.#start(first, "up");
    const machines = await this.#list(api, first.key.appName);
    const conditions = new Map(machines.map((machine) => [machine.id, conditionOf(machine)]));
    const total = machines.filter((machine) => !isDestroyed(machine)).length;
    const limit = limitOf(api.config.maxUnavailable, total);
    const waiting = [...this.#waiting].map((one) => ({
      id: one.key.machineId,
      // Without a list, every Machine counts as one that serves.
      condition: machines.length === 0 ? ("up" as const) : (conditions.get(one.key.machineId) ?? "resting"),
      one,
    }));
    const failing = [...conditions].filter(
      ([id, condition]) =>
        condition === "failing" && !this.#underway.has(id) && !waiting.some((candidate) => candidate.id === id),
    ).length;
    const early = this.#since + gatheringAtMost - api.clock.now();
    if (failing > 0 && early > 0) {
      await api.clock.sleep(Math.min(early, gathering));
      return this.#admit(api);
    }
    const chosen = admissible({ waiting, underway: [...this.#underway.values()], limit, failing });
    for (const { one, condition } of chosen) this.#start(one, condition);
    const of = total === 0 ? "" : ` of ${total}`;
    for (const { key, report } of this.#waiting)
      report(`waiting: ${this.#underway.size}${of} Machines of ${key.appName} are being updated`);
    return chosen.length;
  }

  #start(one: Waiting, condition: Condition): number {
    this.#waiting.delete(one);
    this.#underway.set(one.key.machineId, { id: one.key.machineId, condition });
    one.begin();
    return 1;
  }

  async #list(api: Api, appName: string): Promise<readonly Machine[]> {
    const now = api.clock.now();
    if (this.#known && now - this.#known.at < currentFor) return this.#known.machines;
    // The deadline of the update begins after the wait.
    const patient = api.within({ at: now + 30_000, allowed: "30s" });
    const machines = await patient.machines.list({ appName }).catch(() => []);
    this.#known = { at: now, machines };
    return machines;
  }

  /** The engine may have stopped, and never creates a replacement. Then the others must not wait for it. */
  async #forgetAbandoned(api: Api): Promise<void> {
    const deleted = this.#deleted();
    if (this.#waiting.size === 0 || deleted.length === 0 || deleted.length < this.#underway.size) return;
    const oldest = Math.min(...deleted.map(({ deletedAt = 0 }) => deletedAt));
    await api.clock.sleep(Math.max(0, oldest + abandonedAfter - api.clock.now()));
    for (const { id, deletedAt = Infinity } of this.#deleted())
      if (api.clock.now() - deletedAt >= abandonedAfter) this.#underway.delete(id);
    await this.#decide({ api });
  }
}

const interruptionsOf = ({ api, run }: Pick<Call, "api" | "run">, appName: string): Interruptions =>
  run.memo.get(`interruptions ${api.config.endpoint} ${appName}`, () => new Interruptions());

/** The call with the time that it waited added to its deadline. */
const after = <C extends Pick<Call, "api">>(call: C, waited: number): C =>
  waited === 0 ? call : { ...call, api: call.api.within({ ...call.api.deadline, at: call.api.deadline.at + waited }) };

/** Whether the Machine of a failed update is down, or was: an update that was refused has interrupted nothing. */
const isDown = (error: unknown): boolean =>
  error instanceof PartialStateError ||
  error instanceof RolledBackError ||
  (error instanceof MachinesError && ["machine-failed", "wait-timeout"].includes(error.code));

/** Updates a Machine once it may be interrupted. */
export async function whenInterruptible<T>(call: Call, key: MachineKey, work: (call: Call) => Promise<T>): Promise<T> {
  const app = interruptionsOf(call, key.appName);
  const waited = await app.begin(key, call);
  let hasFailed = false;
  try {
    return await work(after(call, waited));
  } catch (error) {
    hasFailed = isDown(error);
    throw error;
  } finally {
    app.end(key, hasFailed, call);
  }
}

/** Deletes a Machine for good. */
export async function deleteForGood(call: Call, key: MachineKey, work: (call: Call) => Promise<void>): Promise<void> {
  await work(call);
  interruptionsOf(call, key.appName).gone(key);
}

/** Deletes a Machine that the engine creates again afterwards, once it may be interrupted. */
export async function deleteToReplace(call: Call, key: MachineKey, work: (call: Call) => Promise<void>): Promise<void> {
  const app = interruptionsOf(call, key.appName);
  const waited = await app.begin(key, call, true);
  try {
    await work(after(call, waited));
  } catch (error) {
    app.end(key, true, call);
    throw error;
  }
  app.deleted(key, call);
}

/** Creates a Machine. If it replaces one that this run has deleted, the interruption ends with it. */
export async function createReplacement<T>(
  call: Call,
  replaced: MachineKey | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (replaced === undefined) return work();
  const app = interruptionsOf(call, replaced.appName);
  app.recreating(replaced.machineId);
  let hasFailed = true;
  try {
    const made = await work();
    hasFailed = false;
    return made;
  } finally {
    app.end(replaced, hasFailed, call);
  }
}

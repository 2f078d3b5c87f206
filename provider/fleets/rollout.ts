// Carries out the planner's steps, one after the other or side by side, until the fleet is as wanted. After every step it
// looks at the service and plans again, so that an interrupted rollout is resumed in the same way.
import { MachinesError, messageOf } from "../client/errors.ts";
import { fewAtATime } from "../client/fewAtATime.ts";
import { lastEvent } from "../client/events.ts";
import type { Volume } from "../client/listCache.ts";
import type { Machine } from "../client/machine.ts";
import type { Call } from "../core/resource.ts";
import { discard } from "../machines/create.ts";
import { wantedOf, type FleetInputs } from "./inputs.ts";
import {
  fleetMachines,
  keyOf,
  lookAt,
  machineView,
  membersOf,
  noConfig,
  volumeOf,
  type FleetKey,
  type Found,
  type Rollout,
} from "./members.ts";
import { countText, describe, reasonOf, RolloutFailure, showStep, underwayText, Voice } from "./messages.ts";
import { Best, bringsUp, isReleaseDue, mostAttempts, plan, type Plan, type Step, type Wanted } from "./planner.ts";
import { Steps, takeAway } from "./steps.ts";
import { Observed } from "./observed.ts";
import { forgetDeleted, isInUse, isLeftCopy, leaveUnmounted } from "./unmounted.ts";
import { adoptVolumes, growVolumes, machinesOf, volumesIn } from "./volumes.ts";

/** How a rollout ended. */
export interface Outcome {
  readonly machines: readonly Machine[];
  readonly state: Exclude<Plan["state"], "working" | "stuck">;
}

/** Members that a deletion destroys at a time, so that a large fleet does not exceed the limit of requests. */
const destroyedAtATime = 16;

/** A step that has failed, or a look at the service. */
interface Failure {
  readonly step: Step | undefined;
  readonly error: unknown;
}

/**
 * Carries out a rollout; `begins` is called before each step.
 * @throws RolloutFailure after a step has failed and the others have ended.
 */
export async function rollOut(rollout: Rollout, begins: () => void): Promise<Outcome> {
  const { call, fleet, template, before } = rollout;
  const carryOut = (used: Set<string>): Promise<Outcome> => new Course(rollout, used, begins).run();
  if (template.volume === undefined) return carryOut(new Set());
  const volumes = await volumesIn(call.api, fleet.app);
  await forgetDeleted(call, fleet, volumes);
  adoptVolumes(fleet, template.volume);
  const machines = before === undefined ? [] : await fleetMachines(call.api, fleet);
  await growVolumes(call, fleet, { machines, volumes }, template.volume);
  // The steps leave those that are mounted now.
  const mounted = new Set(machines.map(volumeOf));
  const rest = volumes.filter(({ id }) => !mounted.has(id));
  const left = rest.filter((volume) => isLeftCopy(fleet, volume, machines));
  const outcome = await carryOut(machinesOf(volumes));
  if (outcome.state === "complete") await leaveRest(rollout, { volumes: rest, left, machines: outcome.machines });
  return outcome;
}

/** The volumes that no Machine mounted when a rollout began. */
interface Rest {
  readonly volumes: readonly Volume[];
  /** Copies that an interrupted rollout left. */
  readonly left: readonly Volume[];
  /** The Machines of the fleet at its end. */
  readonly machines: readonly Machine[];
}

/**
 * Deletes copies that an interrupted rollout left, and reports other volumes once: others may have destroyed the Machines that had
 * them, or an earlier fleet. The fleet is as wanted, so a failure is a warning.
 */
async function leaveRest({ call, fleet, wanted }: Rollout, { volumes, left, machines }: Rest): Promise<void> {
  const mounted = new Set(machines.map(volumeOf));
  const rest = volumes.filter(({ id }) => !mounted.has(id) && !fleet.kept.has(id));
  const isUnwanted = (volume: Volume): boolean => wanted.deleteVolumes && left.includes(volume);
  for (const error of await leaveUnmounted(call, fleet, rest, isUnwanted))
    call.warn(
      `Fleet ${fleet.app}/${fleet.name}: a copy that an interrupted rollout left was not deleted: ${messageOf(error)}`,
    );
}

/** One rollout while it is carried out. */
class Course {
  readonly #rollout: Rollout;
  readonly #observed: Observed;
  readonly #voice: Voice;
  readonly #steps: Steps;
  readonly #underway = new Map<Step, Promise<void>>();
  readonly #failures: Failure[] = [];
  readonly #best = new Best();
  readonly #broughtUp = new Map<string, number>();
  readonly #used: Set<string>;
  readonly #begins: () => void;
  #wanted: Wanted;
  #hasBegun = false;

  constructor(rollout: Rollout, used: Set<string>, begins: () => void) {
    const { call, fleet, wanted, isPromoted } = rollout;
    this.#rollout = rollout;
    this.#observed = new Observed(call, fleet);
    this.#voice = new Voice(() => countText(rollout, this.#observed.machines), rollout);
    this.#steps = new Steps(rollout, this.#voice);
    this.#used = used;
    this.#begins = begins;
    this.#wanted = wantedOf(wanted, isPromoted);
  }

  async run(): Promise<Outcome> {
    for (;;) {
      // A step that ends while we look may not be visible yet, so it counts as under way until the next look.
      const steps = [...this.#underway.keys()];
      const outcome = await this.#turn(steps).catch((error: unknown) => {
        this.#failures.push({ step: undefined, error });
        return undefined;
      });
      if (outcome) return outcome;
      if (this.#underway.size === 0 && (this.#failures.length > 0 || steps.length === 0)) throw await this.#failure();
      if (steps.every((step) => this.#underway.has(step))) await Promise.race(this.#underway.values());
    }
  }

  /** Looks, and begins what the plan allows. */
  async #turn(steps: readonly Step[]): Promise<Outcome | undefined> {
    let machines = await this.#observed.look();
    if (this.#failures.length > 0) return undefined;
    let next = this.#plan(machines, steps);
    if (next.state !== "working" && !this.#observed.isListed) {
      // What others have changed meanwhile counts too.
      machines = await this.#observed.list();
      next = this.#plan(machines, steps);
    }
    const { state, begin, members, stuck } = next;
    if (state === "stuck") throw stuckError(members, stuck);
    if (state !== "working") {
      warnOfLost(this.#rollout, members);
      return { machines, state };
    }
    if (begin.length > 0) this.#steps.requireProgress();
    for (const step of begin) this.#underway.set(step, this.#begin(step, members));
    if (begin.length > 0) this.#voice.say(underwayText([...this.#underway.keys()]));
    return undefined;
  }

  #plan(machines: readonly Machine[], underway: readonly Step[]): Plan & { readonly members: readonly Found[] } {
    const { call, fleet, template, before } = this.#rollout;
    // Only members that this rollout has not brought up yet are judged by what they did before it.
    const now = this.#hasBegun ? undefined : call.api.clock.now();
    const members = membersOf(machines, fleet, template, before, now);
    for (const { name } of members) this.#used.add(name);
    const wanted = this.#wanted;
    if (!this.#hasBegun)
      this.#wanted = { ...wanted, needsRelease: wanted.needsRelease && isReleaseDue(wanted, members) };
    this.#hasBegun = true;
    if (this.#best.isBeatenBy(members, wanted.regions)) this.#steps.progressed();
    const situation = { wanted: this.#wanted, members, underway, fleet: fleet.name };
    const names = { used: this.#used, taken: this.#observed.taken };
    return { ...plan({ ...situation, ...names, broughtUp: this.#broughtUp }), members };
  }

  async #begin(step: Step, members: readonly Found[]): Promise<void> {
    showStep(this.#rollout, step);
    this.#begins();
    try {
      for (const [id, machine] of await this.#steps.carryOut(step, members)) this.#observed.set(id, machine);
      if (bringsUp(step)) this.#broughtUp.set(step.name, (this.#broughtUp.get(step.name) ?? 0) + 1);
      if (step.kind === "observe") this.#wanted = { ...this.#wanted, isObserved: true };
      if (step.kind === "release") this.#wanted = { ...this.#wanted, needsRelease: false };
      if (step.kind === "observe" || step.kind === "release") this.#steps.progressed();
      showStep(this.#rollout, step, { error: undefined });
    } catch (error) {
      showStep(this.#rollout, step, { error });
      this.#failures.push({ step, error });
    } finally {
      this.#underway.delete(step);
    }
  }

  async #failure(): Promise<RolloutFailure> {
    const { api } = this.#rollout.call;
    // Also after a cancellation, and after the deadline.
    const grace = api.within({ at: api.clock.now() + 10_000, allowed: "10s" });
    const machines = await this.#observed
      .list(grace)
      .catch(() => (this.#hasBegun ? this.#observed.machines : undefined));
    const [first, ...more] = this.#failures;
    const doing = first?.step === undefined ? "" : `${describe(first.step)}: `;
    const reason = first === undefined ? "No step is left that could go on." : `${doing}${reasonOf(first.error)}`;
    const also = more.length === 0 ? "" : ` ${more.length} more also failed.`;
    const code = first?.error instanceof MachinesError ? first.error.code : "machine-failed";
    const steps = this.#failures.flatMap(({ step, error }) => (step ? [{ step, error: reasonOf(error) }] : []));
    return new RolloutFailure(this.#rollout, { reason: reason + also, code, cause: first?.error, steps }, machines);
  }
}

/** The error for members that were brought up as often as a rollout does, and are down again. */
function stuckError(members: readonly Found[], names: readonly string[]): MachinesError {
  const [name = ""] = names;
  const machine = members.find((one) => one.name === name)?.machine;
  const now = machine === undefined ? "it is gone" : `it is ${machine.state}, ${lastEvent(machine)}`;
  return new MachinesError(
    "machine-failed",
    `Machine ${name} was ready ${mostAttempts} times in this rollout, and each time failed again afterwards: ${now}.`,
  );
}

/** A Machine whose host cannot be reached ends no rollout. */
function warnOfLost({ call, fleet }: Rollout, members: readonly Found[]): void {
  const lost = members.filter(({ phase }) => phase === "lost").map(({ name, machine }) => `${name} (${machine.id})`);
  if (lost.length > 0)
    call.warn(
      `Fleet ${fleet.app}/${fleet.name}: the hosts of ${lost.join(", ")} cannot be reached, so these Machines are left as they are. Run pulumi refresh and up when they can.`,
    );
}

/** Destroys all Machines of a fleet, and then deletes or reports its volumes that none of them had. */
export async function destroyAll(call: Call, fleet: FleetKey, wanted: Partial<FleetInputs>): Promise<void> {
  const { api } = call;
  // R8: a list does not prove absence, so the known ones that it lacks are requested; once, because then they are destroyed.
  const first = await lookAt(api, fleet, new Set(fleet.machines));
  const mounted = new Set(first.machines.map(volumeOf));
  const volumes = wanted.volume === undefined ? [] : await volumesIn(api, fleet.app);
  const rest = volumes.filter(({ id }) => !mounted.has(id));
  const left = rest.filter((volume) => isLeftCopy(fleet, volume, first.machines));
  const reportedBefore = new Set(fleet.kept);
  for (let { machines } = first; machines.length > 0; { machines } = await lookAt(api, fleet)) {
    const template = { config: wanted.config ?? noConfig };
    const nothing = { before: undefined, committed: undefined, isPromoted: true };
    const rollout = { call, fleet, wanted: wanted as FleetInputs, template, ...nothing };
    const members = membersOf(machines, fleet, template, undefined);
    await fewAtATime(destroyedAtATime, machines, async (machine) => {
      const member = members.find((one) => one.machine === machine);
      call.views?.status(machineView(fleet, machine.name ?? machine.id), "destroying");
      if (member) await takeAway(rollout, "destroy", member);
      // The Machine of a release command is no member.
      else await discard(call, keyOf(rollout, machine));
      call.views?.status(machineView(fleet, machine.name ?? machine.id), "destroyed");
    });
  }
  const unreported = rest.filter(({ id }) => reportedBefore.has(id) || !fleet.kept.has(id));
  const isUnwanted = (volume: Volume): boolean =>
    wanted.deleteVolumes === true && (isInUse(fleet, volume) || left.includes(volume));
  const [error] = await leaveUnmounted(call, fleet, unreported, isUnwanted);
  if (error !== undefined) throw error;
}

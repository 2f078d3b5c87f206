// Carries out the planner's steps, one after the other or side by side, until the fleet is as wanted. After every step it
// looks at the service and plans again, so that an interrupted rollout is resumed in the same way.
import { MachinesError, messageOf } from "../client/errors.ts";
import { fewAtATime } from "../client/fewAtATime.ts";
import type { Machine } from "../client/wait.ts";
import type { Call } from "../core/resource.ts";
import { discard } from "../machines/create.ts";
import { wantedOf, type FleetInputs } from "./inputs.ts";
import { fleetMachines, keyOf, membersOf, noConfig, type FleetKey, type Found, type Rollout } from "./members.ts";
import { isReleaseDue, plan, type Plan, type Step, type Wanted } from "./planner.ts";
import { carryOut, describe, takeAway, type Moment } from "./steps.ts";
import { View } from "./view.ts";
import { growVolumes, machinesOf, volumesIn } from "./volumes.ts";

/** How a rollout ended. */
export interface Outcome {
  readonly machines: readonly Machine[];
  readonly state: Exclude<Plan["state"], "working">;
}

/** Members that a deletion destroys at a time, so that a large fleet does not exceed the limit of requests. */
const destroyedAtATime = 16;

/** A step that has failed, or a look at the service. */
interface Failure {
  readonly step: Step | undefined;
  readonly error: unknown;
}

/** Carries out a rollout. @throws MachinesError `machine-failed` after a step has failed and the others have ended. */
export async function rollOut(rollout: Rollout): Promise<Outcome> {
  const { call, fleet, wanted, template, before } = rollout;
  const { api } = call;
  const underway = new Map<Step, Promise<void>>();
  const view = new View(call, fleet);
  const lastProgress: Moment = { at: api.clock.now() };
  const failures: Failure[] = [];
  let target: Wanted = wantedOf(wanted);
  let hasBegun = false;
  const volumes = template.volume ? await volumesIn(api, fleet.app) : [];
  const used = machinesOf(volumes);
  if (template.volume && before) await growVolumes(call, fleet.app, fleet.name, volumes, template.volume);
  const begin = async (step: Step, members: readonly Found[]): Promise<void> => {
    try {
      for (const [id, machine] of await carryOut(rollout, step, members, lastProgress)) view.set(id, machine);
      lastProgress.at = api.clock.now();
      if (step.kind === "observe") target = { ...target, isObserved: true };
      if (step.kind === "release") target = { ...target, needsRelease: false };
    } catch (error) {
      failures.push({ step, error });
    } finally {
      underway.delete(step);
    }
  };
  const planned = (machines: readonly Machine[], steps: readonly Step[]) => {
    const members = membersOf(machines, fleet, template, before);
    for (const { name } of members) used.add(name);
    if (!hasBegun) target = { ...target, needsRelease: target.needsRelease && isReleaseDue(target, members) };
    hasBegun = true;
    return { ...plan({ wanted: target, members, underway: steps, fleet: fleet.name, used }), members };
  };
  for (;;) {
    // A step that ends while we look may not be visible yet, so it counts as under way until the next look.
    const steps = [...underway.keys()];
    let machines: readonly Machine[] = [];
    try {
      machines = await view.look();
      if (failures.length === 0) {
        let next = planned(machines, steps);
        if (next.state !== "working" && !view.isListed) {
          // What others have changed meanwhile counts too.
          machines = await view.list();
          next = planned(machines, steps);
        }
        if (next.state !== "working") {
          warnOfLost(rollout, next.members);
          return { machines, state: next.state };
        }
        for (const step of next.begin) underway.set(step, begin(step, next.members));
        if (next.begin.length > 0) call.progress(progressOf(next.members, [...underway.keys()]));
      }
    } catch (error) {
      failures.push({ step: undefined, error });
    }
    if (underway.size === 0 && (failures.length > 0 || steps.length === 0))
      throw failureOf(rollout, await view.list().catch(() => machines), failures);
    if (steps.every((step) => underway.has(step))) await Promise.race(underway.values());
  }
}

/** A Machine whose host cannot be reached ends no rollout. */
function warnOfLost({ call, fleet }: Rollout, members: readonly Found[]): void {
  const lost = members.filter(({ phase }) => phase === "lost").map(({ name, machine }) => `${name} (${machine.id})`);
  if (lost.length > 0)
    call.warn(
      `Fleet ${fleet.app}/${fleet.name}: the hosts of ${lost.join(", ")} cannot be reached, so these Machines are left as they are. Run pulumi refresh and up when they can.`,
    );
}

/** What is being done, in one line. */
function progressOf(members: readonly Found[], steps: readonly Step[]): string {
  const done = members.filter(({ template, phase }) => template !== "outdated" && phase !== "kept").length;
  const names = steps.slice(0, 3).map(describe).join(", ");
  const more = steps.length > 3 ? ` and ${steps.length - 3} more` : "";
  const progress = members.length === 0 ? "" : `; ${done} of ${members.length} Machines have the new configuration`;
  return `${names}${more}${progress}`;
}

function failureOf(
  { fleet, template, before }: Rollout,
  machines: readonly Machine[],
  failures: readonly Failure[],
): MachinesError {
  const [first] = failures;
  const members = membersOf(machines, fleet, template, before).filter(({ phase }) => phase === "serving");
  const done = members.filter((one) => one.template !== "outdated");
  const ready = members.filter((one) => one.isReady).length;
  const doing = first?.step === undefined ? "" : `${describe(first.step)}: `;
  const reason = first === undefined ? "No step is left that could go on." : `${doing}${messageOf(first.error)}`;
  const also = failures.length > 1 ? ` ${failures.length - 1} more failed too.` : "";
  const names = done.length === 0 ? "" : ` (${done.map(({ name }) => name).join(", ")})`;
  return new MachinesError(
    first?.error instanceof MachinesError ? first.error.code : "machine-failed",
    `the rollout of Fleet ${fleet.app}/${fleet.name} stopped. ${reason}${also} ${done.length} of ${members.length} Machines have the new configuration${names}, and ${ready} are ready; the others are unchanged. Correct the cause and run up again: it goes on with the rest.`,
    { cause: first?.error },
  );
}

/** Destroys all Machines of a fleet. */
export async function destroyAll(call: Call, fleet: FleetKey, wanted: Partial<FleetInputs>): Promise<void> {
  const { api } = call;
  for (;;) {
    const machines = await fleetMachines(api, fleet.app, fleet.name);
    if (machines.length === 0) return;
    const template = { config: wanted.config ?? noConfig };
    const rollout = { call, fleet, wanted: wanted as FleetInputs, template, before: undefined };
    const members = membersOf(machines, fleet, template, undefined);
    await fewAtATime(destroyedAtATime, machines, async (machine) => {
      const member = members.find((one) => one.machine === machine);
      if (member) await takeAway(rollout, "destroy", member);
      // The Machine of a release command is no member.
      else await discard(call, keyOf(rollout, machine));
    });
  }
}

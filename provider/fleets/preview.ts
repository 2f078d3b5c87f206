// What an update of a fleet will do, for the user of a preview.
import type { Api } from "../client/api.ts";
import { isNotFound } from "../client/errors.ts";
import { bareId } from "../../api/names.ts";
import type { Note } from "../core/resource.ts";
import { greatestOf } from "../core/values.ts";
import { ownerTag } from "../machines/create.ts";
import { wantedOf, type FleetInputs } from "./inputs.ts";
import { fleetOf } from "../machines/live.ts";
import { fleetTagged, membersOf, type FleetKey, type Found } from "./members.ts";
import { planAll, promised, totalOf, type Step } from "./planner.ts";
import { describeStandby, planStandbys } from "./standbys.ts";
import { describe } from "./steps.ts";
import { machinesOf, volumesIn } from "./volumes.ts";

/** Lines of a plan that are shown at most. */
const mostLines = 30;

/** The ids of the members after some steps; the names of those that do not exist yet. */
function membersAfter(members: readonly Found[], steps: readonly Step[]): string[] {
  const gone = new Set(steps.filter(({ kind }) => ["destroy", "keep", "move"].includes(kind)).map(({ name }) => name));
  const added = steps.flatMap((step) => (step.kind === "create" ? [step.name] : step.kind === "move" ? [step.to] : []));
  const left = members.filter(({ name, phase }) => !gone.has(name) && ["serving", "green"].includes(phase));
  return [...left.map(({ machine }) => machine.id), ...added.filter((name) => !gone.has(name))];
}

/** The steps of the update; undefined if there are none. */
export async function previewRollout(
  inputs: FleetInputs,
  api: Api,
  owner: string | undefined,
): Promise<Note | undefined> {
  const app = bareId(inputs.app);
  const machines = await fleetTagged(api, app).catch((error: unknown) => {
    // The App is created by the same update.
    if (isNotFound(error)) return [];
    throw error;
  });
  // The same fleet has another owner after a change of the binding.
  const mine = machines.filter((one) =>
    inputs.name === undefined ? one.config?.metadata?.[ownerTag] === owner : fleetOf(one) === inputs.name,
  );
  const name = inputs.name ?? mine.map(fleetOf)[0];
  // A program does not know a generated name before the fleet exists.
  if (name === undefined) return undefined;
  // In a program, a list of versions may be given.
  const { minSecretsVersion: version } = inputs;
  const minSecretsVersion = Array.isArray(version) ? (greatestOf(version) as number | undefined) : version;
  const key: FleetKey = { app, name, owner: undefined, stack: "" };
  const template = { ...inputs, minSecretsVersion };
  const members = membersOf(mine, key, template, undefined);
  const wanted = wantedOf(inputs);
  const used = machinesOf(inputs.volume && machines.length > 0 ? await volumesIn(api, app) : []);
  const waves = planAll({ wanted, members, fleet: name, used });
  const standbys = planStandbys({
    ...{ wanted: { ...inputs, minSecretsVersion }, fleet: key, template, machines: mine },
    members: membersAfter(members, waves.flat()),
  });
  if (waves.length + standbys.length === 0) return undefined;
  const total = totalOf(wanted.regions);
  const ready = members.filter((one) => one.isReady && one.phase === "serving").length;
  const least = wanted.strategy === "immediate" ? 0 : Math.min(ready, promised(wanted));
  const isRollout = members.some(({ template }) => template === "outdated");
  const head = isRollout
    ? `Fleet ${name}: ${wanted.strategy} update, at least ${least} of ${total} Machines are ready at every moment:`
    : `Fleet ${name}:`;
  const steps = [...waves.map((wave) => wave.map(describe).join(", ")), ...standbys.map(describeStandby)];
  const lines = steps.map((step, i) => `  ${i + 1}. ${step}`);
  const more = lines.length > mostLines ? [`  … and ${lines.length - mostLines} more`] : [];
  return { note: [head, ...lines.slice(0, mostLines), ...more].join("\n") };
}

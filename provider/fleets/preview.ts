// What an update of a fleet will do, for the user of a preview.
import type { Api } from "../client/api.ts";
import { isNotFound } from "../client/errors.ts";
import { bareId } from "../../api/names.ts";
import type { Note } from "../core/resource.ts";
import { greatestOf } from "../core/values.ts";
import { ownerTag } from "../machines/create.ts";
import { wantedOf, type FleetInputs } from "./inputs.ts";
import { fleetOf, fleetTagged, membersOf, type FleetKey } from "./members.ts";
import { planAll, promised, totalOf, type Step } from "./planner.ts";
import { describe } from "./steps.ts";
import { machinesOf, volumesIn } from "./volumes.ts";

/** Lines of a plan that are shown at most. */
const mostLines = 30;

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
  const members = membersOf(mine, key, { ...inputs, minSecretsVersion }, undefined);
  const wanted = wantedOf(inputs);
  const used = machinesOf(inputs.volume && machines.length > 0 ? await volumesIn(api, app) : []);
  const waves = planAll({ wanted, members, fleet: name, used });
  if (waves.length === 0) return undefined;
  const total = totalOf(wanted.regions);
  const ready = members.filter((one) => one.isReady && one.phase === "serving").length;
  const least = wanted.strategy === "immediate" ? 0 : Math.min(ready, promised(wanted));
  const isRollout = members.some(({ template }) => template === "outdated");
  const head = isRollout
    ? `Fleet ${name}: ${wanted.strategy} update, at least ${least} of ${total} Machines are ready at every moment:`
    : `Fleet ${name}:`;
  const lines = waves.map((wave, i) => `  ${i + 1}. ${wave.map((step: Step) => describe(step)).join(", ")}`);
  const more = lines.length > mostLines ? [`  … and ${lines.length - mostLines} more`] : [];
  return { note: [head, ...lines.slice(0, mostLines), ...more].join("\n") };
}

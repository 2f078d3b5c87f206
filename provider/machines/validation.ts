// Checks whether a declared Machine is valid: by its own fields, and by findings of the service at preview.
import { camelKey, toWire } from "../../api/case.ts";
import { configProblems, machineConfig, type MachineConfig } from "../../api/machineConfig.ts";
import type { Api } from "../client/api.ts";
import { bareId } from "../../api/names.ts";
import { orUndefined } from "../client/existence.ts";
import { findVolume, listMachines } from "../client/listCache.ts";
import { isNotFound } from "../client/errors.ts";
import type { Problem, Warning } from "../core/resource.ts";
import { hasUnknown } from "../core/values.ts";
import { isOwnedBy } from "./create.ts";
import type { MachineInputs, Written } from "./inputs.ts";
import { memoryProblems } from "./memory.ts";

import { isJob, modelledInExtra } from "./settings.ts";

/** Rules about several fields, with a program's names. */
export function validate(inputs: Partial<MachineInputs>): Problem[] {
  const { config: settings, state, region, fallbackRegions, memoryLimitMb } = inputs;
  if (!settings) return [];
  const wire = toWire(machineConfig, settings) as MachineConfig;
  const problems = configProblems(wire).map(({ path, key, message }): Problem => ({
    path: [
      ...["config", ...path.map((part) => (typeof part === "string" ? camelKey(part) : part))],
      ...(key === undefined ? [] : [key]),
    ],
    message: message.replace(/\b[a-z]+(?:_[a-z0-9]+)+\b/g, camelKey),
  }));
  if ((state === "suspended" || state === "started") && isJob(settings, state)) {
    const cause = settings.schedule === undefined ? "config.autoDestroy" : "config.schedule";
    problems.push({
      path: ["state"],
      message: `a Machine with ${cause} ends by itself and cannot be kept ${state}; leave it out`,
    });
  }
  problems.push(...memoryProblems(memoryLimitMb, wire));
  if (fallbackRegions !== undefined && fallbackRegions.length > 0) {
    const path = ["fallbackRegions"];
    if (region === undefined) problems.push({ path, message: "needs region, the one that is tried first" });
    if ((settings.mounts ?? []).length > 0)
      problems.push({ path, message: "a Machine that mounts a volume can run in the volume's region alone" });
  }
  for (const path of modelledInExtra(settings)) {
    problems.push({
      path: ["config", "extra", ...path],
      message: "is a field this version knows: set it in config itself",
    });
  }
  problems.push(...metadataProblems(settings.metadata ?? {}, ["config", "metadata"]));
  return problems;
}

/** Metadata keys that only this provider sets, and values that would remove their own key (R6). */
export const metadataProblems = (metadata: Readonly<Record<string, string>>, at: readonly string[]): Problem[] =>
  Object.entries(metadata).flatMap(([name, value]) => {
    const path = [...at, name];
    return [
      ...(name.startsWith("pulumi-")
        ? [{ path, message: 'keys that begin with "pulumi-" are the provider\'s own' }]
        : []),
      ...(value === "" ? [{ path, message: "an empty value removes a key; leave the key out instead" }] : []),
    ];
  });

/** Why a Machine cannot be in a region: it would mount a volume of another one. */
export async function mountProblem(
  api: Api,
  appName: string,
  region: string | undefined,
  { mounts = [] }: Partial<Pick<MachineInputs["config"], "mounts">>,
): Promise<string | undefined> {
  for (const { volume } of mounts) {
    const found = volume === undefined ? undefined : await orUndefined(() => findVolume(api, appName, bareId(volume)));
    if (found?.region !== undefined && found.region !== region)
      return `got ${JSON.stringify(region)}, but the volume ${appName}/${found.id} that it mounts is in ${JSON.stringify(found.region)}; a Machine runs in its volume's region`;
  }
  return undefined;
}

/** Why a name cannot be used: a live Machine has it. */
export async function nameProblem(
  api: Api,
  appName: string,
  name: string | undefined,
  owner: string | undefined,
): Promise<string | Warning | undefined> {
  if (name === undefined) return undefined;
  try {
    const existing = (await listMachines(api, appName)).find(
      (other) => other.name === name && other.state !== "destroyed",
    );
    if (!existing) return undefined;
    const id = `${appName}/${existing.id}`;
    const isTaken = `the name ${JSON.stringify(name)} is taken by Machine ${existing.id} of App ${appName}`;
    const importing = `import it with \`pulumi import machines:index:Machine <resource> ${id}\``;
    // A forced replacement is indistinguishable here, and one that deletes first would succeed.
    return isOwnedBy(existing, owner)
      ? {
          warning: `${isTaken}, which an earlier run created for this resource, or for one of the same name in another backend or organization, so that up would fail. If no state holds it any longer, ${importing}, or delete it. If you replace it by force, set deleteBeforeReplace: true in the resource's options.`,
        }
      : `${isTaken}; choose another, leave it out to get a free one, or ${importing}`;
  } catch (error) {
    // An App that does not exist yet has no Machines.
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** A Machine stays in its region, so removing that region from the list does not move it. */
export function warnings(old: Written, next: Written): string[] {
  const { placedRegion, fallbackRegions: before = [] } = old;
  const { region, fallbackRegions: after = [] } = next;
  if (placedRegion === undefined || !before.includes(placedRegion) || region === placedRegion) return [];
  if (hasUnknown(region) || hasUnknown(after) || after.includes(placedRegion)) return [];
  return [
    `it runs in ${placedRegion}, which fallbackRegions no longer names; it stays there. To create it again in ${region ?? "another region"}, replace it (pulumi up --replace).`,
  ];
}

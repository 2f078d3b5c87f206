// The release command of a fleet, which runs in a Machine of its own before a new configuration reaches the first member.
import { MachinesError, messageOf } from "../client/errors.ts";
import { hasCrashed, latestExit } from "../client/events.ts";
import { versionOf } from "../client/wait.ts";
import { createOnce, discard } from "../machines/create.ts";
import { waitForTarget } from "../machines/power.ts";
import { sameVersion, toService } from "../machines/settings.ts";
import { fleetMachines, keyOf, ownConfig, releaseConfig, type Rollout } from "./members.ts";
import { regionsOf } from "./planner.ts";

/**
 * Runs the release command in a Machine of its own. That of an interrupted run is waited for; one that has failed is
 * replaced.
 */
export async function runRelease(rollout: Rollout, name: string): Promise<void> {
  const { call, fleet, template, wanted } = rollout;
  const { api, progress } = call;
  const { releaseCommand: command = [], fallbackRegions } = wanted;
  const counts = regionsOf(wanted);
  const region = Object.keys(counts).find((code) => (counts[code] ?? 0) > 0) ?? "";
  const config = releaseConfig(fleet, template, region, command);
  const existing = (await fleetMachines(api, fleet.app, fleet.name)).find((one) => one.name === name);
  const isUsable =
    existing !== undefined &&
    sameVersion(ownConfig(existing, config, undefined), config) &&
    existing.state !== "failed" &&
    !hasCrashed(existing);
  if (existing && !isUsable) await discard(call, keyOf(rollout, existing));
  const body = { name, region, config: toService(config), minSecretsVersion: template.minSecretsVersion };
  const machine = isUsable ? existing : await createOnce(call, undefined, fleet.app, body, { config, fallbackRegions });
  const key = keyOf(rollout, machine);
  progress(`${name} runs ${JSON.stringify(command)}`);
  const ended = await waitForTarget(
    call,
    key,
    { config },
    { target: "started", version: versionOf(machine), fresh: true },
  ).catch((error: unknown) => {
    throw new MachinesError(
      error instanceof MachinesError ? error.code : "machine-failed",
      `the release command ${JSON.stringify(command)} did not succeed: ${messageOf(error)} Its Machine ${name} is kept until the next rollout.`,
      { cause: error },
    );
  });
  if (latestExit(ended)?.requested === true)
    throw new MachinesError(
      "machine-failed",
      `the Machine ${name} was stopped before the release command ${JSON.stringify(command)} had ended.`,
    );
  await discard(call, key);
}

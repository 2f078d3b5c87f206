// The release command of a fleet, which runs in a Machine of its own before a new configuration reaches the first member.
import { MachinesError, messageOf } from "../client/errors.ts";
import { hasCrashed, latestExit, notReached } from "../client/events.ts";
import { isDestroyed, versionOf, type Machine, type MachineKey } from "../client/machine.ts";
import { waitForMachine } from "../client/wait.ts";
import { createOnce, discard } from "../machines/create.ts";
import { sameVersion, toService } from "../machines/settings.ts";
import { fleetMachines, keyOf, ownConfig, releaseConfig, secretsTag, type Rollout } from "./members.ts";
import { regionsOf } from "./placement.ts";

/**
 * Runs the release command in a Machine of its own, which destroys itself. That of an interrupted run is waited for if it still
 * runs; one that was left after a failure, or that has other secrets, is replaced.
 */
export async function runRelease(rollout: Rollout, name: string): Promise<void> {
  const { call, fleet, template, wanted } = rollout;
  const { api, progress } = call;
  const { releaseCommand: command = [], fallbackRegions } = wanted;
  const counts = regionsOf(wanted);
  const region = Object.keys(counts).find((code) => (counts[code] ?? 0) > 0) ?? "";
  const config = releaseConfig(fleet, template, region, command);
  const existing = (await fleetMachines(api, fleet)).find((one) => one.name === name);
  const isUsable =
    existing !== undefined &&
    sameVersion(ownConfig(existing, config, undefined), config) &&
    existing.config?.metadata?.[secretsTag] === config.metadata?.[secretsTag] &&
    existing.state !== "failed" &&
    !hasCrashed(existing);
  if (existing && !isUsable) await discard(call, keyOf(rollout, existing));
  const body = { name, region, config: toService(config), minSecretsVersion: template.minSecretsVersion };
  const machine = isUsable ? existing : await createOnce(call, undefined, fleet.app, body, { config, fallbackRegions });
  const key = keyOf(rollout, machine);
  progress(`${name} runs ${JSON.stringify(command)}`);
  const ended = await end(rollout, key, machine).catch((error: unknown) => {
    throw new MachinesError(
      error instanceof MachinesError ? error.code : "machine-failed",
      `the release command ${JSON.stringify(command)} did not succeed: ${messageOf(error)}`,
      { cause: error },
    );
  });
  if (isDestroyed(ended)) await waitForMachine(api, key, ["destroyed"], { progress });
  else await discard(call, key);
}

/**
 * Waits until the command has ended.
 * @throws MachinesError if it did not end by itself with code 0, or if that is not known.
 */
async function end({ call }: Rollout, key: MachineKey, machine: Machine): Promise<Machine> {
  const { api, progress } = call;
  // Not `settled`, which a Machine is as soon as it runs.
  const states = ["stopped", "failed", "destroyed"] as const;
  await waitForMachine(api, key, states, { version: versionOf(machine), progress, fresh: true });
  const live = await api.machines.get(key);
  const exit = latestExit(live);
  if (exit?.exitCode === 0 && !exit.requested) return live;
  // Someone else may have stopped or destroyed it.
  throw notReached(key, live, "done");
}

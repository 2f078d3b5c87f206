// Whether the Machines of a release run it, and pass their checks.
import type { Api } from "../../provider/client/api.ts";
import { isNotFound, messageOf } from "../../provider/client/errors.ts";
import { isObject } from "../../api/schema.ts";
import { quotable } from "../../api/printable.ts";
import { versionOf as versionIn } from "../../provider/client/machine.ts";
import { failureOf } from "../../provider/machines/failure.ts";
import { clientOf } from "../targets.ts";
import { exportStack, stackConfig } from "../pulumi.ts";
import { plainText, readState } from "../stackState.ts";
import type { ReleaseRecord, Stack } from "./stacks.ts";

/** The Machines of a release, as the service has them now. */
export interface Health {
  /** Why they are not healthy; nothing where they are. */
  readonly problems: readonly string[];
  /** Why some could not be read. */
  readonly unseen: readonly string[];
  /** Those that run the release as another version than the state has, as after an update that was rolled back. */
  readonly otherVersion: readonly string[];
}

/**
 * Looks at the Machines of a release with the stack's own tokens.
 * @param env environment for what the stack's configuration leaves open
 */
export async function healthOf(
  stack: Stack,
  { machines, digest }: ReleaseRecord,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Health> {
  const { clientFor, versionOf, label } = await knownOf(stack, env);
  const [problems, unseen, otherVersion]: [string[], string[], string[]] = [[], [], []];
  await Promise.all(
    machines.map(async (id) => {
      const [appName = "", machineId = ""] = id.split("/");
      try {
        const { machines: served, clock } = clientFor(id);
        const live = await served.get({ appName, machineId });
        const { state, checks = [], imageRef } = live;
        const isRun = imageRef?.digest === digest;
        if (!isRun) problems.push(`${label(id)} runs another image`);
        // The checks of a Machine that does not run say nothing more.
        const failure = failureOf(live, {}, clock.now());
        if (failure !== undefined) problems.push(`${label(id)} is ${state}: ${failure}`);
        else if (state !== "started") problems.push(`${label(id)} is ${state}`);
        else
          for (const { name, status, output } of checks)
            if (status !== "passing")
              problems.push(
                `${label(id)}: its check ${name ?? ""} is ${status ?? "unknown"}${output ? ` (${quotable(output, 200)})` : ""}`,
              );
        const known = versionOf(id);
        if (isRun && known !== undefined && versionIn(live) !== known) otherVersion.push(id);
      } catch (error) {
        if (isNotFound(error)) problems.push(`${label(id)} does not exist any more`);
        else unseen.push(`${label(id)} cannot be read: ${messageOf(error)}`);
      }
    }),
  );
  return { problems: problems.sort(), unseen: unseen.sort(), otherVersion: otherVersion.sort() };
}

/**
 * The facts about a Machine in the state: the client, with the provider of the program that created it or else the stack's
 * configuration, and its version.
 */
async function knownOf(stack: Stack, env: NodeJS.ProcessEnv) {
  const [own, text] = await Promise.all([stackConfig(stack.name), exportStack(stack.name, "clear")]);
  const { resources, providers } = readState(text, `the state of ${stack.name}`);
  const machineOf = (machine: string) => resources.find(({ type, id }) => type === "Machine" && id === machine);
  const inFleets = resources.flatMap((fleet) => {
    const { machines } = fleet.outputs;
    const all: unknown[] = fleet.type === "Fleet" && Array.isArray(machines) ? machines : [];
    return all.filter(isObject).map((machine) => ({ ...machine, provider: fleet.provider }));
  });
  const memberOf = (machine: string): Record<string, unknown> & { provider?: string | undefined } =>
    inFleets.find((one) => "id" in one && one.id === machine) ?? {};
  return {
    clientFor: (machine: string): Api =>
      clientOf((machineOf(machine) ?? memberOf(machine)).provider, own, providers, () => undefined, env),
    label: (machine: string): string => {
      const name = plainText(memberOf(machine)["name"]);
      return name === undefined ? `Machine ${machine}` : `Machine ${name} (${machine}) of a fleet`;
    },
    versionOf: (machine: string): string | undefined =>
      plainText((machineOf(machine)?.outputs ?? memberOf(machine))["version"]),
  };
}

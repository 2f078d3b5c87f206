// Whether the Machines of a release run it, and pass their checks.
import type { Api } from "../../provider/client/api.ts";
import { messageOf } from "../../provider/client/errors.ts";
import { clientOf } from "../targets.ts";
import { exportStack, stackConfig } from "../pulumi.ts";
import { readState } from "../stackState.ts";
import type { ReleaseRecord, Stack } from "./stacks.ts";

/** Why the Machines of a release are not healthy now; nothing where they are. They are looked at with the stack's own tokens. */
export async function unhealthy(stack: Stack, { machines, digest }: ReleaseRecord): Promise<string[]> {
  const clientOf = await clientsOf(stack);
  const looked = await Promise.all(
    machines.map(async (id) => {
      const [appName = "", machineId = ""] = id.split("/");
      try {
        const { state, checks = [], imageRef } = await clientOf(id).machines.get({ appName, machineId });
        const failing = checks.filter(({ status }) => status !== "passing");
        return [
          ...(state === "started" ? [] : [`${id} is ${state}`]),
          ...(imageRef?.digest === digest ? [] : [`${id} runs another image`]),
          ...failing.map(({ name, status }) => `${id} has the check ${name ?? ""}, which is ${status ?? "unknown"}`),
        ];
      } catch (error) {
        return [`${id} cannot be looked at: ${messageOf(error)}`];
      }
    }),
  );
  return looked.flat();
}

/** The client for a Machine: with the provider of the program that created it, or else the stack's configuration. */
async function clientsOf(stack: Stack): Promise<(machine: string) => Api> {
  const [own, text] = await Promise.all([stackConfig(stack.name), exportStack(stack.name, "clear")]);
  const { resources, providers } = readState(text, `the state of ${stack.name}`);
  return (machine) => {
    const urn = resources.find(({ type, id }) => type === "Machine" && id === machine)?.provider;
    return clientOf(urn, own, providers, () => undefined);
  };
}

// Whether the Machines of a release run it, and pass their checks.
import { clientFor } from "../../client/connect.ts";
import { readConfig } from "../../core/config.ts";
import { messageOf } from "../../core/errors.ts";
import { stackConfig } from "../pulumi.ts";
import type { ReleaseRecord, Stack } from "./stacks.ts";

/** Why the Machines of a release are not healthy now; nothing where they are. They are looked at with the stack's own token. */
export async function unhealthy(stack: Stack, { machines, digest }: ReleaseRecord): Promise<string[]> {
  const own = await stackConfig(stack.name);
  const api = clientFor(
    readConfig((key) => own.get(key), process.env),
    () => undefined,
  );
  const looked = await Promise.all(
    machines.map(async (id) => {
      const [appName = "", machineId = ""] = id.split("/");
      try {
        const { state, checks = [], imageRef } = await api.machines.get({ appName, machineId });
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

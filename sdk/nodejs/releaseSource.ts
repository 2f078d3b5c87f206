// Reads the Machines of the previous stack for a Release: in this binding with another address and token.
import * as pulumi from "@pulumi/pulumi";
import type { GetMachineResult } from "./getMachine.ts";
import type { ReleaseSource } from "./releaseArgs.ts";
import { call } from "./runtime.ts";

/** Reads a Machine by its id. */
export type MachineReader = (id: string) => Promise<GetMachineResult>;

/** Reads Machines where `source` says, which is known by then, or where this stack's own are. */
export function machineReader(
  _name: string,
  _parent: pulumi.Resource,
  source: ReleaseSource | undefined,
): MachineReader {
  const own = new pulumi.Config("machines");
  const asked = new Promise<(key: string) => string | undefined>((resolve) => {
    const { endpoint, token } = source ?? {};
    pulumi
      .all([endpoint, token])
      .apply(([endpoint, token]) => resolve((key) => ({ endpoint, token })[key] ?? own.get(key)));
  });
  return async (id) => {
    const [app = ""] = id.split("/");
    return call("getMachine", { app, machine: id }, undefined, await asked);
  };
}

// How a Release looks at the Machines of the stack before: with this binding, by a provider with another address and token.
import * as pulumi from "@pulumi/pulumi";
import { getMachine, type GetMachineResult } from "./getMachine";
import { Provider } from "./provider";
import type { ReleaseSource } from "./releaseArgs";

/** Reads a Machine by its id. */
export type MachineReader = (id: string) => Promise<GetMachineResult>;

/** Reads Machines where `source` says, or where this stack's own are. */
export function machineReader(
  name: string,
  parent: pulumi.Resource,
  source: ReleaseSource | undefined,
): MachineReader {
  const own = new pulumi.Config("machines");
  const provider =
    source &&
    new Provider(
      `${name}-source`,
      { endpoint: source.endpoint ?? own.get("endpoint"), token: source.token ?? own.getSecret("token") },
      { parent },
    );
  return (id) => {
    const [app = ""] = id.split("/");
    return getMachine({ app, machine: id }, { parent, ...(provider && { provider }) });
  };
}

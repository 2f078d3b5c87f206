// The Docker runtime for a service: `createService({ runtime: await dockerRuntime() })`.
import { networkInterfaces } from "node:os";
import type { RuntimeFactory } from "../runtime.ts";
import { DockerRuntime } from "./dockerRuntime.ts";
import { connectEngine } from "./engine.ts";

export { EngineError } from "./engine.ts";

/** The address of this computer at which containers reach it, if it is one of this computer's own. */
export async function machinesReach(): Promise<string | undefined> {
  const { docker } = await connectEngine();
  const bridge = (await docker
    .getNetwork("bridge")
    .inspect()
    .catch(() => undefined)) as BridgeNetwork | undefined;
  const gateway = bridge?.IPAM?.Config?.[0]?.Gateway;
  // An engine in a virtual machine has an address that only the containers have.
  const own = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses.map(({ address }) => address));
  return own.find((address) => address === gateway);
}

interface BridgeNetwork {
  readonly IPAM?: { readonly Config?: readonly { readonly Gateway?: string }[] };
}

/**
 * Connects to a container engine, and returns a runtime that runs each Machine as a container of it.
 * @throws EngineError if no engine answers.
 */
export async function dockerRuntime(): Promise<RuntimeFactory> {
  const engine = await connectEngine();
  return (host) => new DockerRuntime(engine, host);
}

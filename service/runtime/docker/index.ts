// The Docker runtime for a service: `createService({ runtime: await dockerRuntime() })`.
import { createServer } from "node:net";
import type { RuntimeFactory, VolumeArchives } from "../runtime.ts";
import { untilSure } from "../fence.ts";
import { Reconciler } from "../reconciler/reconciler.ts";
import { isNetwork } from "./addresses.ts";
import { furtherCapabilities } from "./confinement.ts";
import { DockerDriver } from "./dockerDriver.ts";
import { Containers } from "./containers.ts";
import { allowing, connectEngine, ended } from "./engine.ts";
import { engineIdOf } from "./engineId.ts";
import { firewallProblem } from "./firewall.ts";
import { isRegistryName, Registries } from "./registries.ts";
import { VolumeContents } from "./volumeContents.ts";

export { EngineError } from "./engine.ts";

/** What identifies the container engine. */
export const engineId = async (): Promise<string> => engineIdOf(await connectEngine());

/** Ends the containers of a service that run, and keeps them and their volumes. Returns their number. */
export async function endContainers(dataId: string): Promise<number> {
  const containers = new Containers(await connectEngine(), dataId);
  let ended = 0;
  for (const machine of await containers.machines())
    for (const { id, isAlive, isPaused } of await containers.of(machine)) {
      if (!isAlive) continue;
      if (isPaused) await allowing([404, 409], containers.get(id).unpause());
      await allowing([304, 404], containers.get(id).stop());
      ended++;
    }
  return ended;
}

/** The contents of the volumes of a service that does not run. */
export async function volumesOf(dataId: string): Promise<Pick<VolumeArchives, "write">> {
  const engine = await connectEngine();
  const contents = new VolumeContents(engine.docker, dataId, new Containers(engine, dataId));
  return { write: (id, archive, signal) => contents.write(id, archive, signal) };
}

/** The address of this computer at which containers reach it, if it is one of this computer's own. */
export async function machinesReach(): Promise<string | undefined> {
  const { docker } = await connectEngine();
  const bridge = (await docker
    .getNetwork("bridge")
    .inspect()
    .catch(() => undefined)) as BridgeNetwork | undefined;
  const { Gateway, Subnet } = bridge?.IPAM?.Config?.[0] ?? {};
  // Of its usual network, an engine that was just installed names no gateway until its next start. It is the first address.
  const gateway = Gateway ?? firstIn(Subnet);
  // An engine in a virtual machine has an address that only the containers have.
  return gateway !== undefined && (await isOwn(gateway)) ? gateway : undefined;
}

interface BridgeNetwork {
  readonly IPAM?: { readonly Config?: readonly { readonly Gateway?: string; readonly Subnet?: string }[] };
}

/** The first address of an IPv4 network. */
function firstIn(network = ""): string | undefined {
  const [, head, last] = /^(\d+\.\d+\.\d+)\.(\d+)\//.exec(network) ?? [];
  return last === undefined ? undefined : `${head}.${Number(last) + 1}`;
}

/** Whether this computer can listen at an address. Its list of addresses lacks those of bridges that no container uses. */
function isOwn(address: string): Promise<boolean> {
  const server = createServer();
  return new Promise((done) => {
    server.once("error", () => done(false));
    server.listen(0, address, () => server.close(() => done(true)));
  });
}

/** What an operator allows Machines beside the usual. */
export interface DockerOptions {
  /** Registries that images may come from; `public`, the default, means all that are on the internet. */
  readonly registries?: readonly string[] | undefined;
  /** Further capabilities of containers. Default: none. */
  readonly capabilities?: readonly string[] | undefined;
  /** Private networks that Machines reach, such as 10.1.2.0/24. Default: none. */
  readonly reach?: readonly string[] | undefined;
}

/** What is wrong with a value of these options, as a sentence that names the option of `start`; undefined if nothing is. */
export function wallProblem({ registries = [], capabilities = [], reach = [] }: DockerOptions): string | undefined {
  const wrong = (option: string, takes: string, values: readonly string[], isRight: (value: string) => boolean) => {
    const value = values.find((one) => !isRight(one));
    return value === undefined ? undefined : `${option} takes ${takes}, got ${JSON.stringify(value)}`;
  };
  return (
    wrong("--registries", "public or names such as ghcr.io or 10.0.0.5:5000", registries, isRegistryName) ??
    wrong("--capabilities", `any of ${furtherCapabilities.join(", ")}`, capabilities, (one) =>
      furtherCapabilities.includes(one),
    ) ??
    wrong("--reach", "IPv4 networks such as 10.1.2.0/24", reach, isNetwork)
  );
}

/**
 * Connects to a container engine, and returns a runtime that runs each Machine as a container of it.
 * @throws EngineError if no engine answers.
 */
export async function dockerRuntime({
  registries,
  capabilities = [],
  reach = [],
}: DockerOptions = {}): Promise<RuntimeFactory> {
  const engine = await connectEngine();
  const walls = {
    ...{ capabilities, reach },
    registries: new Registries(registries),
    firewallProblem: await firewallProblem(engine),
  };
  return (host) =>
    new Reconciler(host, (reports) => {
      engine.fence.unsure = untilSure(host, reports.closed, ended("the service closes"));
      return new DockerDriver(engine, host, reports, walls);
    });
}

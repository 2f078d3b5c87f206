// Removes what a service has left in the engine.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Dockerode from "dockerode";
import { expect, vi } from "vitest";
import { allowing } from "../../service/runtime/docker/engine.ts";
import { removeRules } from "../../service/runtime/docker/firewall.ts";
import { hang } from "../support/patience.mts";

/** Removes the containers, networks, rules and volumes of the data with this identity. */
export async function removeOf(dataId: string): Promise<void> {
  const docker = new Dockerode();
  const label = [`machines-service.data=${dataId}`];
  for (const { Id } of await docker.listContainers({ all: true, filters: { label } }))
    await allowing([404, 409], docker.getContainer(Id).remove({ force: true, v: true }));
  // A container that is being removed still uses its network.
  const removeNetworks = async (): Promise<void> => {
    const networks = await docker.listNetworks({ filters: { label } });
    for (const { Id } of networks) await allowing([403, 404], docker.getNetwork(Id).remove());
    expect(networks).toEqual([]);
  };
  await vi.waitFor(removeNetworks, { interval: 20, timeout: hang });
  if (process.getuid?.() === 0) await removeRules(dataId);
  const { Volumes } = await docker.listVolumes({ filters: { label } });
  for (const { Name } of Volumes ?? []) await allowing([404], docker.getVolume(Name).remove());
}

/** Removes those of a data folder. */
export const removeStored = (folder: string): Promise<void> =>
  removeOf(readFileSync(join(folder, "data-id"), "utf8").trim());

/** Waits until the data with this identity has no container and no network. Volumes are kept for a day. */
export async function expectNothingRuns(dataId: string): Promise<void> {
  const docker = new Dockerode();
  const filters = { label: [`machines-service.data=${dataId}`] };
  const names = async (): Promise<unknown[]> => [
    ...(await docker.listContainers({ all: true, filters })).map(({ Names }) => Names),
    ...(await docker.listNetworks({ filters })).map(({ Name }) => Name),
  ];
  await expect.poll(names, { interval: 50 }).toEqual([]);
}

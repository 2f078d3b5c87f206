// Serves the reads of one refresh from one list. The first read of an App requests the list, and the others wait for it.
// An object that the list lacks is confirmed by a GET before it counts as deleted (F14).
import { orUndefined } from "./existence.ts";
import type { Api, AnswerOf } from "./api.ts";
import { versionOf, type Machine } from "./machine.ts";

/** A volume as programs see it. */
export type Volume = AnswerOf<"volumes", "get">;

/** Milliseconds for which a list is reused: since its last use, and at most since its request. */
const freshFor = 5000;
const freshAtMost = 30_000;

function listed<T>(api: Api, key: string, ask: () => Promise<readonly T[]>): Promise<readonly T[]> {
  const known = api.session.lists.get(key);
  const now = api.clock.now();
  if (known && now - known.served < freshFor && now - known.asked < freshAtMost) {
    known.served = now;
    return known.list as Promise<readonly T[]>;
  }
  const list = ask();
  list.catch(() => api.session.lists.delete(key));
  api.session.lists.set(key, { asked: now, served: now, list });
  return list;
}

const fromList = async <T extends { id: string }>(
  ask: () => Promise<readonly T[]>,
  id: string,
): Promise<T | undefined> => (await orUndefined(ask))?.find((item) => item.id === id);

/** Reads Machines and volumes of an App by requests of their own. For one of them, a list of a large App would be too much. */
export function readOneByOne({ session, clock }: Api, appName: string): void {
  const now = clock.now();
  for (const kind of ["machines", "volumes"])
    session.lists.set(`${kind}/${appName}`, { asked: now, served: now, list: Promise.resolve([]) });
}

/** The App's Machines; concurrent calls share one list. */
export const listMachines = (api: Api, appName: string): Promise<readonly Machine[]> =>
  listed(api, `machines/${appName}`, () => api.machines.list({ appName }));

/** A live Machine, from the App's list if it has it. @throws ApiError 404 when it does not exist. */
export async function findMachine(api: Api, appName: string, machineId: string): Promise<Machine> {
  const listed = await fromList(() => listMachines(api, appName), machineId);
  const isBehind = listed !== undefined && api.session.staleReads.isStale(machineId, versionOf(listed));
  return listed === undefined || isBehind ? api.machines.get({ appName, machineId }) : listed;
}

/** A volume, from the App's list if it has it. @throws ApiError 404 when it does not exist. */
export async function findVolume(api: Api, appName: string, volumeId: string): Promise<Volume> {
  const ask = () => listed(api, `volumes/${appName}`, () => api.volumes.list({ appName }));
  return (await fromList(ask, volumeId)) ?? (await api.volumes.get({ appName, volumeId }));
}

/** An IP address of an App as programs see it. */
export type Ip = AnswerOf<"ipAssignments", "list">["ips"][number] & { readonly ip: string };

/** The App's addresses as they are now. */
export async function askIps(api: Api, appName: string): Promise<readonly Ip[]> {
  const { ips } = await api.ipAssignments.list({ appName });
  return ips.flatMap(({ ip, ...rest }) => (ip ? [{ ...rest, ip }] : []));
}

/** The App's addresses; concurrent calls share one list. */
export const listIps = (api: Api, appName: string): Promise<readonly Ip[]> =>
  listed(api, `ips/${appName}`, () => askIps(api, appName));

/** The snapshots of a volume; concurrent calls share one list. */
export const listSnapshots = (
  api: Api,
  appName: string,
  volumeId: string,
): Promise<Readonly<AnswerOf<"volumes", "listSnapshots">>> =>
  listed(api, `snapshots/${volumeId}/${appName}`, () => api.volumes.listSnapshots({ appName, volumeId }));

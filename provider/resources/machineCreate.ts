// Creating a Machine exactly once. The interface has no idempotency key, so every create carries a tag of its own: an
// answer that was lost is settled by looking for the tag, and an interrupted create is found again by the next run.
import { randomBytes } from "node:crypto";
import type { Api } from "../client/api.ts";
import { orUndefined } from "../client/existence.ts";
import { everyTenSeconds, growingPause } from "../client/clock.ts";
import type { Intent } from "../client/journal.ts";
import { withLease } from "../client/lease.ts";
import { pollUntil, consistencyWindow } from "../client/poll.ts";
import { waitForMachine, type Machine, type MachineKey } from "../client/wait.ts";
import { ApiError, isAmbiguous, isNotFound, MachinesError } from "../core/errors.ts";
import { idInState, stackId } from "../core/run.ts";
import type { Call } from "../core/resource.ts";
import { isJob } from "./machinePower.ts";
import { fromService, sameMetadata, sameVersion, type Config } from "./machineSettings.ts";

type Body = Parameters<Api["machines"]["create"]>[0]["body"];

/** Tag of a Machine that tells the one create which made it. */
export const opTag = "pulumi-op";
/** Tag of a Machine that tells whose it is. */
export const ownerTag = "pulumi-owner";
/** Tag of a Machine that tells which state it was made for: owners of two backends, or organizations, can be the same. */
export const stackTag = "pulumi-stack";
const attempts = 3;

/** What is wanted beside the body that is sent. */
export interface Wanted {
  /** The configuration as the program wrote it. */
  readonly config: Config;
  /** Regions to try when the body's has no room. */
  readonly fallbackRegions?: readonly string[] | undefined;
}

/** Creates the Machine, or finds the one that an interrupted create of the same owner made. */
export async function createOnce(
  call: Call,
  owner: string | undefined,
  appName: string,
  body: Body,
  wanted: Wanted,
): Promise<Machine> {
  const { api } = call;
  const { journal } = api.shared;
  const left = journal.find(owner);
  if (left && left.endpoint === api.config.endpoint) {
    const found = await takeUp(call, left, appName, body, wanted);
    if (found) return found;
  }
  const op = randomBytes(16).toString("hex");
  const tags = { [opTag]: op, ...(owner === undefined ? {} : { [ownerTag]: owner, [stackTag]: stackId() }) };
  const tagged = { ...body, config: { ...body.config, metadata: { ...body.config.metadata, ...tags } } };
  if (owner !== undefined)
    await journal.write({
      ...{ owner, op, endpoint: api.config.endpoint, place: appName, name: body.name ?? "" },
      at: api.clock.now(),
    });
  const [region, ...others] = regionsOf(body, wanted);
  for (let [attempt, place] = [1, region]; ; attempt++) {
    try {
      return await onceLetGo(call, appName, () => api.machines.create({ appName, body: { ...tagged, region: place } }));
    } catch (error) {
      // A second request is refused for its name, its volume or the room it takes, when the first one was applied after all.
      const refusedAsDouble =
        attempt > 1 &&
        (claimant(error) !== undefined || (error instanceof ApiError && error.status === 409) || lacksRoom(error));
      const made =
        isAmbiguous(error) || refusedAsDouble ? await theOneWith(call, appName, op, api.clock.now()) : undefined;
      if (made) return made;
      if (!isAmbiguous(error)) {
        // After a first request whose fate is open the note stays, and no other region is tried: the next run looks again.
        if (attempt > 1) throw error;
        const next = lacksRoom(error) ? others.shift() : undefined;
        if (next === undefined) {
          journal.settle(owner);
          throw withRegions(error, regionsOf(body, wanted));
        }
        call.warn(`region ${place ?? "?"} has no room for Machine ${body.name ?? "?"}; trying ${next}`);
        [attempt, place] = [0, next];
        continue;
      }
      // Nothing came to light: it was not applied. Sent again with the same tag, so that even a late one would be found.
      if (attempt === attempts) throw error;
    }
  }
}

/** Sends a request again while it is refused for a volume whose Machine is gone: that is let go a moment later (bodies 1.2). */
async function onceLetGo<T>({ api, progress }: Call, appName: string, send: () => Promise<T>): Promise<T> {
  const say = everyTenSeconds(api.clock, progress);
  const pause = growingPause(100, 1000);
  for (;;) {
    try {
      return await send();
    } catch (error) {
      const machineId = claimant(error);
      if (machineId === undefined) throw error;
      const holder = await orUndefined(() => api.machines.get({ appName, machineId }));
      const isLeaving = holder === undefined || holder.state === "destroyed" || holder.state === "destroying";
      const wait = pause();
      if (!isLeaving || api.clock.now() + wait >= api.deadline.at) throw error;
      say(`waiting for a volume to be let go by Machine ${machineId}, which is gone`);
      await api.clock.sleep(wait, api.deadline.signal);
    }
  }
}

/** The Machine that holds a volume a request was refused for. */
const claimant = (error: unknown): string | undefined =>
  error instanceof ApiError && error.status === 412
    ? /volume already claimed by machine (\w+)/.exec(error.reason)?.[1]
    : undefined;

const regionsOf = ({ region }: Body, { fallbackRegions = [] }: Wanted): (string | undefined)[] => [
  region,
  ...new Set(fallbackRegions.filter((other) => other !== region)),
];

/** Whether a region refused for want of room, or because the organization may have no more there (bodies 1.2). */
const lacksRoom = (error: unknown): error is ApiError =>
  error instanceof ApiError &&
  [403, 409, 412, 422].includes(error.status) &&
  /insufficient|no capacity|candidate host|could not reserve resource|over the allowed quota/.test(error.reason);

/** Says that every region was tried, when there were several. */
const withRegions = (error: unknown, regions: readonly (string | undefined)[]): unknown =>
  lacksRoom(error) && regions.length > 1
    ? new MachinesError("api", `none of ${regions.join(", ")} has room for the Machine: ${error.message}`, {
        cause: error,
      })
    : error;

const tagged = async (api: Api, appName: string, op: string): Promise<Machine[]> =>
  (await api.machines.list({ appName }).catch(noneWithoutApp)).filter(
    ({ config, state }) => config?.metadata?.[opTag] === op && state !== "destroyed",
  );

/** Whether a Machine was made for an owner. */
export const isOwnedBy = ({ config }: Machine, owner: string | undefined): boolean =>
  owner !== undefined && config?.metadata?.[ownerTag] === owner;

const noneWithoutApp = (error: unknown): Machine[] => {
  if (isNotFound(error)) return [];
  throw error;
};

/** The Machine with the tag, once it shows; what was begun so long ago shows at once or never. Of several, made by a request that was sent again, the oldest stays. */
function theOneWith(call: Call, appName: string, op: string, begun: number): Promise<Machine | undefined> {
  const { api, warn } = call;
  return pollUntil(api, begun + consistencyWindow, async () => {
    const [first, ...rest] = (await tagged(api, appName, op)).sort((a, b) =>
      (a.createdAt ?? "") < (b.createdAt ?? "") ? -1 : 1,
    );
    for (const extra of rest) {
      warn(`a repeated request made Machine ${extra.id} a second time; it is destroyed`);
      await discard(call, { appName, machineId: extra.id });
    }
    return first;
  });
}

/** Destroys a Machine that was made for nothing, once whoever works on it has ended: a run that was killed may hold its lease. */
const discard = ({ api, progress }: Call, key: MachineKey): Promise<void> =>
  withLease(api, key, { description: "deletion by pulumi", progress }, async (lease) => {
    await api.machines.destroy({ ...key, force: true, leaseNonce: lease.nonce() });
    lease.letGo();
  });

/** Whether a Machine is at rest and cordoned as one that is made now would be; a job may have ended since. */
function isMadeSo(
  { state, cordoned = false }: Machine,
  { skipLaunch = false, skipServiceRegistration = false }: Body,
  { config }: Wanted,
): boolean {
  const rests = ["created", "stopped", "suspended"].includes(state);
  return cordoned === skipServiceRegistration && (skipLaunch ? rests : isJob(config) || !rests || state === "created");
}

/**
 * What an interrupted create left behind; the engine cannot have its id. The same as wanted: it is the one. Otherwise
 * it is destroyed.
 */
async function takeUp(
  call: Call,
  left: Intent,
  appName: string,
  body: Body,
  wanted: Wanted,
): Promise<Machine | undefined> {
  const { api, progress, warn } = call;
  const found = await theOneWith(call, left.place, left.op, left.at ?? 0);
  // What is in the state was handed over, whatever the note says: a computer that lost its power may have lost the end of it.
  if (!found || idInState(left.owner) === `${left.place}/${found.id}`) {
    api.shared.journal.settle(left.owner);
    return undefined;
  }
  const config = found.config && fromService(found.config, wanted.config);
  const fits =
    left.place === appName &&
    (body.name === undefined || body.name === found.name) &&
    (body.region === undefined || regionsOf(body, wanted).includes(found.region)) &&
    isMadeSo(found, body, wanted) &&
    config !== undefined &&
    sameVersion(config, wanted.config) &&
    sameMetadata(config, wanted.config);
  if (fits) {
    warn(`Machine ${found.id} was created by an interrupted run; it is adopted`);
    return found;
  }
  warn(
    `Machine ${left.place}/${found.id} was created by an interrupted run and differs from what is wanted now; it is destroyed`,
  );
  const key = { appName: left.place, machineId: found.id };
  await discard(call, key);
  await waitForMachine(api, key, ["destroyed"], { progress });
  api.shared.journal.settle(left.owner);
  return undefined;
}

// Creates a Machine exactly once. The interface has no idempotency key, so every create carries its own tag. After a lost answer
// the tag shows whether the Machine exists. The next run finds the Machine of an interrupted create by it.
import { randomBytes } from "node:crypto";
import type { Api } from "../client/api.ts";
import type { Intent } from "../core/journal.ts";
import { withLease } from "../client/lease.ts";
import { consistencyWindow, pollUntil } from "../client/poll.ts";
import { retryUnlessApplied } from "../core/retryUnlessApplied.ts";
import { latestExit } from "../client/events.ts";
import type { Machine, MachineKey } from "../client/machine.ts";
import { waitForMachine } from "../client/wait.ts";
import { ApiError, isNotFound, MachinesError } from "../client/errors.ts";
import type { Call } from "../core/resource.ts";
import { holderOf, retryWhileReleased } from "./released.ts";
import { fromService, isJob, sameMetadata, sameVersion, type Config, type Power } from "./settings.ts";

type Body = Parameters<Api["machines"]["create"]>[0]["body"];

/** Tag with the identifier of the create. */
export const opTag = "pulumi-op";
/** Tag with the Machine's owner. */
export const ownerTag = "pulumi-owner";
/** Tag with the state that the Machine was created for: two backends, or two organizations, can have the same owners. */
export const stackTag = "pulumi-stack";

/** The wanted properties besides the request body. */
export interface CreateArgs {
  /** The configuration as the program wrote it. */
  readonly config: Config;
  /** Regions to try when the body's has no capacity. */
  readonly fallbackRegions?: readonly string[] | undefined;
  readonly state?: Power | undefined;
  readonly memoryLimitMb?: number | undefined;
  /** Called when it is certain that no Machine was created. */
  readonly refused?: () => void;
}

/** Creates the Machine, or adopts the one of an interrupted create of the same owner. */
export async function createOnce(
  call: Call,
  owner: string | undefined,
  appName: string,
  body: Body,
  wanted: CreateArgs,
): Promise<Machine> {
  const { api, run } = call;
  const { journal } = run;
  const interrupted = journal.find(owner);
  if (interrupted && interrupted.endpoint === api.config.endpoint) {
    const found = await takeUp(call, interrupted, appName, body, wanted);
    if (found) return found;
  }
  const op = randomBytes(16).toString("hex");
  const tags = { [opTag]: op, ...(owner === undefined ? {} : { [ownerTag]: owner, [stackTag]: run.stateIds.own }) };
  const tagged = { ...body, config: { ...body.config, metadata: { ...body.config.metadata, ...tags } } };
  if (owner !== undefined)
    await journal.write({
      ...{ owner, op, endpoint: api.config.endpoint, place: appName, name: body.name ?? "" },
      ...{ at: api.clock.now(), fixedInputs: unseenOf(body, wanted) },
    });
  const regions = regionsOf(body, wanted);
  for (const [at, region] of regions.entries()) {
    // While the result of a request is unknown, the entry stays and no other region is tried. The next run looks again.
    let isRefused = false;
    try {
      return await retryUnlessApplied(api, {
        send: () =>
          retryWhileReleased(call, appName, () => api.machines.create({ appName, body: { ...tagged, region } })),
        // A repeated request has the same tag, so that a late Machine is found too.
        look: () => theOneWith(call, appName, op, api.clock.now()),
        isDuplicate: (error) =>
          holderOf(error) !== undefined || (error instanceof ApiError && error.status === 409) || lacksRoom(error),
        refused: () => (isRefused = true),
      });
    } catch (error) {
      if (!isRefused) throw error;
      const next = regions[at + 1];
      if (!lacksRoom(error) || next === undefined) {
        journal.settle(owner);
        wanted.refused?.();
        throw withRegions(error, regions);
      }
      call.warn(`region ${region ?? "?"} has no room for Machine ${body.name ?? "?"}; trying ${next}`);
    }
  }
  throw new MachinesError("api", `no region was tried for Machine ${body.name ?? "?"}`);
}

const regionsOf = ({ region }: Body, { fallbackRegions = [] }: CreateArgs): (string | undefined)[] => [
  region,
  ...new Set(fallbackRegions.filter((other) => other !== region)),
];

/**
 * Whether a region refused for lack of capacity, or because of the organization's limit there
 * (docs/interface.md#refusals).
 */
const lacksRoom = (error: unknown): error is ApiError =>
  error instanceof ApiError &&
  [403, 409, 412, 422].includes(error.status) &&
  /insufficient|no capacity|candidate host|could not reserve resource|over the allowed quota/.test(error.reason);

/** Adds that every region was tried, if there were several. */
const withRegions = (error: unknown, regions: readonly (string | undefined)[]): unknown =>
  lacksRoom(error) && regions.length > 1
    ? new MachinesError("api", `none of ${regions.join(", ")} has room for the Machine: ${error.message}`, {
        cause: error,
      })
    : error;

const tagged = async (api: Api, appName: string, op: string): Promise<Machine[]> =>
  (await api.machines.list({ appName, includeDeleted: true }).catch(noneWithoutApp)).filter(
    (machine) => machine.config?.metadata?.[opTag] === op && (machine.state !== "destroyed" || hasLeft(machine)),
  );

/** Whether a job has ended and destroyed itself: it must not run twice. One that was destroyed on request does not count. */
const hasLeft = (machine: Machine): boolean =>
  machine.state === "destroyed" && machine.config?.autoDestroy === true && latestExit(machine)?.requested === false;

/**
 * The inputs that a list does not show, as JSON: the version of the secrets and the memory limit; and which keys of the metadata are
 * the program's, because others may set more.
 */
const unseenOf = ({ minSecretsVersion }: Body, { config, memoryLimitMb }: CreateArgs): string =>
  JSON.stringify({ minSecretsVersion, memoryLimitMb, metadataKeys: Object.keys(config.metadata ?? {}) });

/** What an interrupted create noted. An older version noted nothing. */
const notedIn = ({ fixedInputs = "{}" }: Intent) =>
  JSON.parse(fixedInputs) as {
    readonly minSecretsVersion?: number;
    readonly memoryLimitMb?: number;
    readonly metadataKeys?: readonly string[];
  };

/**
 * Whether what a list does not show of an interrupted create is as wanted now. An older version did not note it. A memory limit is set
 * after the create, but nothing removes one.
 */
function hasUnseen(interrupted: Intent, { minSecretsVersion }: Body, { memoryLimitMb }: CreateArgs): boolean {
  if (interrupted.fixedInputs === undefined) return true;
  const had = notedIn(interrupted);
  const hasSecrets = minSecretsVersion === undefined || minSecretsVersion === had.minSecretsVersion;
  return hasSecrets && (memoryLimitMb !== undefined || had.memoryLimitMb === undefined);
}

/** Whether a Machine was created for an owner. */
export const isOwnedBy = ({ config }: Machine, owner: string | undefined): boolean =>
  owner !== undefined && config?.metadata?.[ownerTag] === owner;

const noneWithoutApp = (error: unknown): Machine[] => {
  if (isNotFound(error)) return [];
  throw error;
};

/**
 * The Machine with the tag, as soon as it is visible. A Machine of an old request is visible at once or never. If a
 * repeated request created several, the oldest is kept.
 */
function theOneWith(call: Call, appName: string, op: string, begun: number): Promise<Machine | undefined> {
  const { api, warn } = call;
  return pollUntil(api, begun + consistencyWindow, async () => {
    const [first, ...rest] = (await tagged(api, appName, op)).sort((a, b) =>
      (a.createdAt ?? "") < (b.createdAt ?? "") ? -1 : 1,
    );
    for (const extra of rest.filter(({ state }) => state !== "destroyed")) {
      warn(`a repeated request created a second Machine, ${extra.id}; it is destroyed`);
      await discard(call, { appName, machineId: extra.id });
    }
    return first;
  });
}

/** Destroys a Machine that is not wanted, and waits until it is gone. A killed run may still hold its lease. */
export async function discard({ api, progress }: Call, key: MachineKey): Promise<void> {
  await withLease(api, key, { description: "deletion by pulumi", progress }, async (lease) => {
    await api.machines.destroy({ ...key, force: true, leaseNonce: lease.nonce() });
    lease.letGo();
  });
  await waitForMachine(api, key, ["destroyed"], { progress });
}

/** A configuration in a program's form, also with the metadata that an interrupted create set and the program no longer has. */
function withNotedMetadata(live: NonNullable<Machine["config"]>, wanted: Config, interrupted: Intent): Config {
  const { metadataKeys = [] } = notedIn(interrupted);
  const noted = Object.fromEntries(metadataKeys.map((key) => [key, ""]));
  return fromService(live, { ...wanted, metadata: { ...noted, ...wanted.metadata } });
}

/** Whether a Machine's power state and cordon are those of a new one; a job may have exited since. */
function isMadeSo(
  { state, cordoned = false }: Machine,
  { skipLaunch = false, skipServiceRegistration = false }: Body,
  { config, state: wanted }: CreateArgs,
): boolean {
  if (state === "destroyed") return !skipLaunch && wanted !== "suspended";
  const isOff = ["created", "stopped"].includes(state);
  const rests = isOff || state === "suspended";
  return (
    cordoned === skipServiceRegistration &&
    (skipLaunch ? isOff : isJob(config, wanted) || !rests || state === "created")
  );
}

/**
 * The Machine of an interrupted create; the engine cannot have its id. It is adopted if it matches the wanted one, and
 * destroyed otherwise. A job that has destroyed itself is adopted too, so that it does not run twice.
 */
async function takeUp(
  call: Call,
  interrupted: Intent,
  appName: string,
  body: Body,
  wanted: CreateArgs,
): Promise<Machine | undefined> {
  const { run, warn } = call;
  const found = await theOneWith(call, interrupted.place, interrupted.op, interrupted.at ?? 0);
  // The id of a Machine in the state was delivered. Its entry may say otherwise after a power loss.
  if (!found || run.program.idInState(interrupted.owner) === `${interrupted.place}/${found.id}`) {
    run.journal.settle(interrupted.owner);
    return undefined;
  }
  const config = found.config && withNotedMetadata(found.config, wanted.config, interrupted);
  const fits =
    interrupted.place === appName &&
    (body.name === undefined || body.name === found.name) &&
    (body.region === undefined || regionsOf(body, wanted).includes(found.region)) &&
    isMadeSo(found, body, wanted) &&
    config !== undefined &&
    sameVersion(config, wanted.config) &&
    sameMetadata(config, wanted.config) &&
    hasUnseen(interrupted, body, wanted);
  if (fits) {
    warn(`Machine ${found.id} was created by an interrupted run; it is adopted`);
    return found;
  }
  const name = `Machine ${interrupted.place}/${found.id}`;
  if (found.state === "destroyed")
    warn(
      `${name} was created by an interrupted run and has ended; what is wanted now differs, so another one is created`,
    );
  else {
    warn(`${name} was created by an interrupted run and differs from what is wanted now; it is destroyed`);
    await discard(call, { appName: interrupted.place, machineId: found.id });
  }
  run.journal.settle(interrupted.owner);
  return undefined;
}

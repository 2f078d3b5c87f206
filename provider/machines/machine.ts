// Machines (docs/interface.md#machine): creates, updates and deletes them as a program declares.
import { isObject } from "../../api/schema.ts";
import { findMachine } from "../client/listCache.ts";
import { withLease } from "../client/lease.ts";
import { isDestroyed, versionOf, type Machine, type MachineKey } from "../client/machine.ts";
import { isJustMade, getFresh, waitForMachine } from "../client/wait.ts";
import { ApiError, isNotFound, MachinesError } from "../client/errors.ts";
import { PartialStateError } from "../core/partialState.ts";
import { sentChanges } from "../core/diff.ts";
import { pathId } from "../core/ids.ts";
import { defineResource, type Call, type Resource, type Values } from "../core/resource.ts";
import { UNKNOWN } from "../core/values.ts";
import { bareId } from "../../api/names.ts";
import { createOnce } from "./create.ts";
import { fleetOf, liveMachines } from "./live.ts";
import { inputs, outputs, toLive } from "./inputs.ts";
import { bring, currentOr, end, finish } from "./executor.ts";
import { configFields, isJob, sameVersion, toService, type Config } from "./settings.ts";
import { memoryOf } from "./memory.ts";
import { createReplacement, deleteForGood, deleteToReplace, whenInterruptible } from "./interruptions.ts";
import { interrupts, onlyOptionsChanged } from "./plan.ts";
import { mountProblem, nameProblem, validate, warnings } from "./validation.ts";
import { regionProblem, regionsProblem, roomWarning } from "../shared/region.ts";
import { orUndefined } from "../client/existence.ts";

/** Inputs whose change creates a new version: the configuration without its metadata, and the secrets' version. */
const versioned = [
  ...Object.keys(configFields)
    .filter((name) => name !== "metadata")
    .map((name) => `config.${name}` as const),
  "minSecretsVersion" as const,
];

const machineId = pathId("app", "machineId");
const keyOf = (id: { readonly app: string; readonly machineId: string }): MachineKey => ({
  appName: id.app,
  machineId: id.machineId,
});

export const machine: Resource = defineResource({
  name: "Machine",
  summary: "A small VM that runs a container image under a versioned configuration.",
  inputs,
  // The power state is an input a program may give and an output it can always read.
  outputs,
  id: machineId,
  list: {
    objects: async (pass, appName) =>
      (await liveMachines(pass, appName))
        // Those of a fleet belong to the fleet.
        .filter((live) => fleetOf(live) === undefined)
        .map(({ id, name, createdAt, config }) => ({
          parts: { app: appName, machineId: id },
          name,
          createdAt,
          metadata: config?.metadata,
        })),
    exists: async (api, { app = "", machineId = "" }) => {
      const live = await orUndefined(() => api.machines.get({ appName: app, machineId }));
      return live !== undefined && !isDestroyed(live);
    },
    shownBy: "machines.get",
    deletedBy: "machines.destroy",
    isTagged: true,
  },
  replaceOn: ["app", "name", "region", "config.mounts.*.volume"],
  uniqueBy: ["app", "name"],
  dependsOn: {
    version: versioned,
    state: [...versioned, "state"],
    // A new version may get another image for the same tag.
    imageRef: versioned,
    updatedAt: "any",
  },
  pendingWhen(state, next) {
    // A Machine that destroyed itself and is to be created again cannot be updated.
    if (isDone(state) && next.recreate === true) return { property: "recreate", replaces: true };
    // A Machine that ended by itself is started again. A Machine with a schedule has its next start anyway.
    const mustStart = (next.state ?? "started") === "started" && state.config?.schedule === undefined;
    return state.failure !== undefined && mustStart ? { property: "failure", replaces: false } : undefined;
  },
  derivedFrom: { imageRef: "config.image", placedRegion: "region" },
  sharesWith: (old, next) => volumesOf(old).some((volume) => volume !== UNKNOWN && volumesOf(next).includes(volume)),
  usesAlone: (inputs) =>
    volumesOf(inputs).map((volume, i) => ({
      path: ["config", "mounts", i, "volume"],
      kind: "volume",
      id: volume === UNKNOWN ? UNKNOWN : `${bareId(String(inputs["app"]))}/${volume}`,
      agreesOn: "region",
    })),
  autoname: { property: "name", maxLength: 63, separator: "-", random: true },
  validate,
  previewChecks: [
    { needs: ["region"], ask: ({ region }, api) => regionProblem(api, region) },
    { needs: ["fallbackRegions"], ask: ({ fallbackRegions }, api) => regionsProblem(api, fallbackRegions) },
    {
      needs: ["region"],
      uses: ["fallbackRegions", "config.guest", "config.size"],
      ask: ({ region, fallbackRegions, config }, api) =>
        roomWarning(
          api,
          [region, ...(fallbackRegions ?? [])].filter((one) => one !== undefined),
          config,
        ),
    },
    {
      needs: ["region", "app"],
      uses: ["config.mounts"],
      ask: ({ app, region, config }, api) => mountProblem(api, bareId(app), region, config),
    },
    { needs: ["name", "app"], ask: ({ name, app }, api, owner) => nameProblem(api, bareId(app), name, owner) },
  ],

  warnings,
  observed: ["version", "cordoned", "imageRef"],

  create({ inputs: wanted, owner, ...call }) {
    const before = call.run.program.idInState(owner);
    const replaced = before === undefined ? undefined : keyOf(machineId.parse(before));
    return createReplacement(call, replaced, async () => {
      const { api } = call;
      const { app, name, region, state, cordoned } = wanted;
      const body = {
        name,
        region,
        config: toService(wanted.config),
        skipLaunch: state === "stopped" || undefined,
        skipServiceRegistration: cordoned || undefined,
        minSecretsVersion: wanted.minSecretsVersion,
      };
      const created = await createOnce(call, owner, app, body, wanted);
      const key = { appName: app, machineId: created.id };
      try {
        return toLive(app, await finish(call, key, wanted, created), wanted);
      } catch (error) {
        const now = await currentOr(api, key, created);
        // A job that destroyed itself cannot be repaired in place.
        if (now.state !== "destroyed") throw new PartialStateError(toLive(app, now, wanted), error);
        call.run.journal.settle(owner);
        throw error;
      }
    });
  },

  async read({ id, state, api }) {
    // A Machine that destroyed itself as configured has done its work: it is neither gone nor created again.
    const done = state?.config?.autoDestroy === true && state.recreate !== true && state.machineId !== undefined;
    const key = { appName: id.app, machineId: id.machineId };
    try {
      const live = await findMachine(api, id.app, id.machineId).catch((error: unknown) => {
        if (!isNotFound(error) || !isJustMade(state?.createdAt, api.clock.now())) throw error;
        return getFresh(api, key, { fresh: true });
      });
      if (live.state === "destroyed" && !done) return undefined;
      return {
        ...toLive(id.app, live, state, api.clock.now()),
        memoryLimitMb: await memoryOf(api, key, live, state?.memoryLimitMb),
      };
    } catch (error) {
      if (!done || !isNotFound(error)) throw error;
      await api.apps.get({ appName: id.app });
      return { ...state, name: state.name ?? "", machineId: id.machineId, state: "destroyed" };
    }
  },

  async update({ id, inputs: wanted, old, unfinished, ...call }) {
    const key = keyOf(id);
    if (isDone(old)) {
      call.warn(
        `Machine ${id.app}/${id.machineId} has done its work and destroyed itself: the change is noted, and takes effect with recreate: true`,
      );
      return Object.fromEntries(
        Object.entries(old).filter(([name]) => !Object.hasOwn(inputs.shape, name)),
      ) as typeof old;
    }
    const changes = sentChanges(machine, old, wanted);
    if (!unfinished && onlyOptionsChanged(changes, old, wanted)) {
      const { restart: _restart, reload: _reload, ...kept } = old;
      return kept;
    }
    // If only a part of the change was applied, we own the old and the new metadata keys.
    const metadata = { ...old.config.metadata, ...wanted.config.metadata };
    const { placedRegion } = old;
    const isUnfinished = unfinished || old.failure !== undefined;
    const partly = (found: Machine) => {
      const live = toLive(id.app, found, { ...wanted, placedRegion, config: { ...wanted.config, metadata } });
      // The program may have removed secrets of the previous configuration.
      const isPrevious = call.marksInputsOnly && live.config && sameVersion(live.config, old.config);
      return isPrevious ? { ...live, config: { ...wanted.config, metadata: live.config?.metadata } } : live;
    };
    const apply = (within: Call) =>
      withLease(within.api, key, { description: "update by pulumi", progress: within.progress }, (lease) =>
        bring(within, key, lease, wanted, { ...old, unfinished: isUnfinished || lease.isAgain }, partly),
      );
    try {
      const isInterrupted = !isJob(wanted.config, wanted.state) && (isUnfinished || interrupts(changes, old, wanted));
      const live = await (isInterrupted ? whenInterruptible(call, key, apply) : apply(call));
      const found = toLive(id.app, live, { ...wanted, placedRegion });
      // A new version starts without a limit, so the previous limit no longer exists.
      const limitGone = wanted.memoryLimitMb === undefined && found.version !== old.version;
      return limitGone ? { ...found, memoryLimitMb: null } : found;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw new MachinesError(
        "api",
        `Machine ${id.app}/${id.machineId} was destroyed outside of this program: run pulumi refresh, then up makes a new one (${error.message})`,
        { cause: error },
      );
    }
  },

  delete({ id, state, owner, ...call }) {
    const key = keyOf(id);
    const work = (within: Call) => destroy(within, key, { config: state.config, force: state.forceDestroy === true });
    const serves = state.config !== undefined && !isJob(state.config);
    const isReplaced = call.run.program.isReplacedFirst(owner, machineId.render(id));
    const remove = serves && isReplaced ? deleteToReplace : deleteForGood;
    return remove(call, key, work);
  },
});

/** Destroys a Machine under its lease. */
async function destroy(
  call: Call,
  key: MachineKey,
  options: { readonly config: Config | undefined; readonly force: boolean },
): Promise<void> {
  const { api, progress } = call;
  try {
    await withLease(api, key, { description: "deletion by pulumi", progress }, async (lease) => {
      // The previous holder of the lease may have started, stopped or destroyed the Machine. A Machine with a lease
      // exists, visible or not.
      const live = await getFresh(api, key, { fresh: true });
      if (!lease.isAgain && !isDestroyed(live)) call.confirm?.({ version: versionOf(live) ?? "none" });
      await end(call, key, lease, live, options);
      lease.letGo();
    });
  } catch (error) {
    // A Machine that is being deleted or is deleted has no lease. A client without permission gets an error, and does
    // not ask again.
    const refused = error instanceof ApiError && error.operation === "machines.acquireLease";
    if (!refused || [401, 403].includes(error.status)) throw error;
    const { state: now } = await api.machines.get(key);
    if (now === "destroying") await waitForMachine(api, key, ["destroyed"], { progress });
    else if (now !== "destroyed") throw error;
  }
}

/** Whether a Machine has done its work and destroyed itself, as configured. */
const isDone = ({ state, config: settings }: { state?: string | undefined; config?: Config | undefined }): boolean =>
  state === "destroyed" && settings?.autoDestroy === true;

function volumesOf(values: Values): string[] {
  const { config: settings } = values as { config?: { mounts?: unknown } };
  const mounts: unknown[] = isObject(settings) && Array.isArray(settings.mounts) ? settings.mounts : [];
  return mounts.flatMap((mount) => {
    const volume = isObject(mount) ? mount["volume"] : undefined;
    return typeof volume === "string" ? [bareId(volume)] : [];
  });
}

// Machines (spec 4.2): what a program declares of one, and how the declaration is made true.
import { z } from "zod";
import { camelKey, toWire } from "../../api/case.ts";
import { configProblems, machineConfig, type MachineConfig } from "../../api/machineConfig.ts";
import { appName, machineName, regionCode } from "../../api/names.ts";
import { isObject, optional, required } from "../../api/schema.ts";
import type { Api } from "../client/api.ts";
import { findMachine, listMachines } from "../client/inventory.ts";
import { withLease } from "../client/lease.ts";
import { versionOf, type Machine } from "../client/wait.ts";
import { ApiError, isNotFound, MachinesError, PartialStateError } from "../core/errors.ts";
import { pathId } from "../core/ids.ts";
import { behaviour, computed, defineResource, type Problem, type Values } from "../core/resource.ts";
import { bareId, UNKNOWN } from "../core/values.ts";
import { createOnce, isOwnedBy } from "./machineCreate.ts";
import { config, configFields, fromService, modelledInExtra, toService, type Config } from "./machineSettings.ts";
import { bringTo, destroyGracefully, isJob, liveNow, untilDestroyed } from "./machinePower.ts";
import { applyChanges } from "./machineUpdate.ts";
import { regionProblem } from "./region.ts";

const inputs = z.object({
  app: required(appName, "App the Machine runs in: the `id` of an App. Changing it replaces the Machine.", {
    format: "reference",
  }),
  name: computed(machineName).describe(
    "Name, 1 to 63 of `a-z`, `0-9` and `-`, unique among the App's Machines. Made from the resource's name when left out. Changing it replaces the Machine.",
  ),
  region: computed(regionCode).describe(
    "Region code, for example `ams`; the service picks one when left out. Changing it replaces the Machine.",
  ),
  config: config.describe(
    "Configuration. It is owned whole: what the program does not say is at its documented default, anything else is drift. Changing it makes a new version of the Machine.",
  ),
  state: computed(z.enum(["started", "stopped", "suspended"]), "passing").describe(
    "Power state to keep the Machine in. Left out, it is started once and its power is left alone from then on.",
  ),
  cordoned: z.boolean().default(false).describe("Whether the platform's proxy leaves the Machine out."),
  waitForChecks: behaviour(z.boolean().optional()).describe(
    "Whether creation and update wait until all checks pass; true when left out and the configuration has checks.",
  ),
  forceDestroy: behaviour(z.boolean().default(false)).describe(
    "Lets the deletion kill the Machine when stopping it fails.",
  ),
});

const outputs = z.object({
  name: required(z.string(), "Name of the Machine."),
  region: optional(z.string(), "Region the Machine runs in."),
  machineId: required(z.string(), "Identifier within the App; stable for life."),
  version: optional(z.string(), "Identifier of the configuration's version, 26 characters."),
  state: required(z.string(), "State of the Machine."),
  privateIp: optional(z.string(), "IPv6 address on the private network."),
  imageRef: optional(
    z.object({
      registry: optional(z.string(), "Registry."),
      repository: optional(z.string(), "Repository."),
      tag: optional(z.string(), "Tag."),
      digest: optional(z.string(), "`sha256:` and the digest."),
    }),
    "The image that runs.",
  ),
  placedRegion: optional(z.string(), "Region the Machine runs in."),
  hostStatus: optional(z.string(), "Status of the host: `ok`, `unknown` or `unreachable`."),
  createdAt: optional(z.string(), "RFC 3339 time of creation."),
  updatedAt: optional(z.string(), "RFC 3339 time of the last change."),
});

/** What a program declares of a Machine. */
export type MachineInputs = z.output<typeof inputs>;

/** Inputs whose change makes a new version: the configuration without its metadata. */
const versioned = Object.keys(configFields)
  .filter((name) => name !== "metadata")
  .map((name) => `config.${name}` as const);

/** State from a live Machine; `written` is the configuration whose metadata keys are ours (R6). */
const toLive = (app: string, live: Machine, written: Config | undefined) => ({
  app,
  machineId: live.id,
  name: live.name ?? "",
  region: live.region,
  config: live.config ? fromService(live.config, written) : undefined,
  state: live.state,
  cordoned: live.cordoned,
  version: versionOf(live),
  privateIp: live.privateIp,
  imageRef: live.imageRef && {
    registry: live.imageRef.registry,
    repository: live.imageRef.repository,
    tag: live.imageRef.tag,
    digest: live.imageRef.digest,
  },
  placedRegion: live.region,
  hostStatus: live.hostStatus,
  createdAt: live.createdAt,
  updatedAt: live.updatedAt,
});

export const machine = defineResource({
  name: "Machine",
  summary: "A small VM that runs a container image under a versioned configuration.",
  inputs,
  // The power state is an input a program may give and an output it can always read.
  outputs,
  id: pathId("app", "machineId"),
  replaceOn: ["app", "name", "region", "config.mounts.*.volume"],
  uniqueBy: ["app", "name"],
  moves: {
    version: versioned,
    state: [...versioned, "state"],
    // Another version may find another image under the same tag.
    imageRef: versioned,
    updatedAt: "any",
  },
  repeats: { imageRef: "config.image", placedRegion: "region" },
  holdsOn: (old, next) => volumesOf(old).some((volume) => volumesOf(next).includes(volume)),
  autoname: { property: "name", maxLength: 63, separator: "-", random: true },
  validate,
  questions: [
    { needs: ["region"], ask: ({ region }, api) => regionProblem(api, region) },
    { needs: ["name", "app"], ask: ({ name, app }, api, owner) => nameProblem(api, bareId(app), name, owner) },
  ],

  async create({ inputs: wanted, owner, ...call }) {
    const { api } = call;
    const { app, name, region, state, cordoned } = wanted;
    const body = {
      name,
      region,
      config: toService(wanted.config),
      skipLaunch: state === "stopped" || undefined,
      skipServiceRegistration: cordoned || undefined,
    };
    const made = await createOnce(call, owner, app, body, wanted.config);
    const key = { appName: app, machineId: made.id };
    try {
      const version = versionOf(made);
      return toLive(
        app,
        await bringTo(call, key, wanted, { target: state ?? "started", version, fresh: true }),
        wanted.config,
      );
    } catch (error) {
      const now = await liveNow(api, key, made);
      // A job that destroyed itself is nothing that could be repaired in place.
      if (now.state === "destroyed") throw error;
      throw new PartialStateError(toLive(app, now, wanted.config), error);
    } finally {
      // From here on the engine has the id, or there is nothing to have.
      api.shared.intents.settle(owner);
    }
  },

  async read({ id, state, api }) {
    // A Machine that destroyed itself as told has done its work: it is not gone, and not made again.
    const done = state?.config?.autoDestroy === true && state.machineId !== undefined;
    try {
      const live = await findMachine(api, id.app, id.machineId);
      if (live.state === "destroyed" && !done) return undefined;
      return toLive(id.app, live, state?.config);
    } catch (error) {
      if (!done || !isNotFound(error)) throw error;
      await api.apps.get({ appName: id.app });
      return { ...state, name: state.name ?? "", machineId: id.machineId, state: "destroyed" };
    }
  },

  async update({ id, inputs: wanted, old, unfinished, ...call }) {
    const { api, progress } = call;
    const key = { appName: id.app, machineId: id.machineId };
    // When only part of the change was made, the metadata keys of before and after are both ours to look after.
    const metadata = { ...old.config.metadata, ...wanted.config.metadata };
    const partly = (found: Machine) => toLive(id.app, found, { ...wanted.config, metadata });
    try {
      const live = await withLease(api, key, { description: "update by pulumi", progress }, (lease) =>
        applyChanges(call, key, lease, wanted, { ...old, unfinished }, partly),
      );
      return toLive(id.app, live, wanted.config);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw new MachinesError(
        "api",
        `Machine ${id.app}/${id.machineId} was destroyed outside of this program: run pulumi refresh, then up makes a new one (${error.message})`,
        { cause: error },
      );
    }
  },

  async delete({ id, state, ...call }) {
    const { api, progress } = call;
    const key = { appName: id.app, machineId: id.machineId };
    const options = { config: state.config, force: state.forceDestroy === true };
    try {
      await withLease(api, key, { description: "deletion by pulumi", progress }, async (lease) => {
        // Whoever held the lease before us may have started, stopped or destroyed it.
        await destroyGracefully(call, key, lease, await api.machines.get(key), options);
        lease.letGo();
      });
    } catch (error) {
      // What is going or gone has no lease to give.
      if (!(error instanceof ApiError) || error.operation !== "machines.acquireLease") throw error;
      const { state: now } = await api.machines.get(key);
      if (now === "destroying") await untilDestroyed(call, key);
      else if (now !== "destroyed") throw error;
    }
  },
});

function volumesOf(values: Values): string[] {
  const { config: settings } = values as { config?: { mounts?: unknown } };
  const mounts: unknown[] = isObject(settings) && Array.isArray(settings.mounts) ? settings.mounts : [];
  return mounts.flatMap((mount) => {
    const volume = isObject(mount) ? mount["volume"] : undefined;
    return typeof volume === "string" && volume !== UNKNOWN ? [bareId(volume)] : [];
  });
}

/** Rules that span fields, in the words of a program. */
function validate({ config: settings, state }: Partial<MachineInputs>): Problem[] {
  if (!settings) return [];
  const wire = toWire(machineConfig, settings) as MachineConfig;
  const problems = configProblems(wire).map(({ path, message }): Problem => ({
    path: ["config", ...path.map((part) => (typeof part === "string" ? camelKey(part) : part))],
    message: message.replace(/\b[a-z]+(?:_[a-z0-9]+)+\b/g, camelKey),
  }));
  if (state === "suspended" && isJob(settings)) {
    problems.push({ path: ["state"], message: "a Machine that ends by itself cannot be kept suspended" });
  }
  for (const path of modelledInExtra(settings)) {
    problems.push({
      path: ["config", "extra", ...path],
      message: "is a field this version knows: set it in config itself",
    });
  }
  for (const [name, value] of Object.entries(settings.metadata ?? {})) {
    const path = ["config", "metadata", name];
    if (name.startsWith("pulumi-"))
      problems.push({ path, message: 'keys that begin with "pulumi-" are the provider\'s own' });
    if (value === "") problems.push({ path, message: "an empty value removes a key; leave the key out instead" });
  }
  return problems;
}

async function nameProblem(
  api: Api,
  appName: string,
  name: string | undefined,
  owner: string | undefined,
): Promise<string | undefined> {
  if (name === undefined) return undefined;
  try {
    const taken = (await listMachines(api, appName)).find(
      (other) => other.name === name && other.state !== "destroyed" && !isOwnedBy(other, owner),
    );
    return (
      taken &&
      `the name ${JSON.stringify(name)} is taken by Machine ${taken.id} of App ${appName}; choose another, or leave it out to get a free one`
    );
  } catch (error) {
    // An App that is yet to be made holds no Machines.
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

// Apps (docs/interface.md#apps).
import { z } from "zod";
import { docsUrl } from "../../api/docsUrl.ts";
import { optional, required } from "../../api/schema.ts";
import { appName } from "../../api/names.ts";
import type { AnswerOf, Api } from "../client/api.ts";
import { Pending, poll } from "../client/poll.ts";
import { createExactlyOnce } from "../core/exactlyOnce.ts";
import { ApiError, isNotFound, MachinesError } from "../client/errors.ts";
import { isDestroyed } from "../client/machine.ts";
import { PartialStateError } from "../core/partialState.ts";
import { pathId } from "../core/ids.ts";
import { behaviour, computed, defineResource, type RunInfo } from "../core/resource.ts";
import { appUrls } from "./urls.ts";
import { organizationProblem } from "../core/organization.ts";

const inputs = z.object({
  name: computed(appName).describe(
    "Name, 1 to 62 of `a-z`, `0-9` and `-`, unique on the whole platform. Generated from the resource's name when left out. Changing it replaces the App.",
  ),
  organization: computed(z.string()).describe(
    "Slug of the organization that owns the App; the provider's `organization` when left out. Changing it replaces the App.",
  ),
  network: computed(z.string()).describe(
    "IPv6 private network the App is on; the organization's default network when left out. Changing it replaces the App.",
  ),
  forceDestroy: behaviour(z.boolean().default(false)).describe(
    "Allows deleting the App together with the Machines and volumes that it still holds.",
  ),
});

const outputs = z.object({
  name: required(z.string(), "Name of the App."),
  organization: optional(z.string(), "Slug of the organization that owns the App."),
  network: optional(z.string(), "IPv6 private network the App is on."),
  appId: optional(z.string(), "Opaque identifier within the platform."),
  ...appUrls,
});

/** Milliseconds within which the deletion of an App's Machines and volumes starts, if it is part of the same run. */
const othersBeginWithin = 2000;
const visibleWithin = 60_000;
const longestPause = 1000;

const toLive = (live: AnswerOf<"apps", "get">, organization: string | undefined) => ({
  name: live.name,
  // An organization never changes, and the answer may have the real slug for "personal". The written value is kept.
  organization: organization ?? live.organization?.slug,
  network: live.network || undefined,
  appId: live.id,
  httpUrl: live.httpUrl,
  httpsUrl: live.httpsUrl,
});

/** A network that a program names. ASSUMED: "default" is the name of the network of an App that names none. */
export const namedNetwork = (network: string | undefined): string | undefined =>
  network === "default" ? undefined : network;

export const app = defineResource({
  name: "App",
  summary: "A named group of Machines, volumes, addresses, certificates and secrets.",
  inputs,
  outputs,
  id: pathId("name"),
  within: { kind: "app", part: "name" },
  list: {
    objects: (_, name) => Promise.resolve([{ parts: { name } }]),
    shownBy: "apps.get",
    deletedBy: "apps.delete",
  },
  namedAs: "app",
  replaceOn: ["name", "organization", "network"],
  uniqueBy: ["name"],
  autoname: { property: "name", maxLength: 62, separator: "-", random: true },
  previewChecks: [
    { needs: ["name"], ask: ({ name }, api) => nameProblem(api, name) },
    { needs: [], uses: ["organization"], ask: ({ organization }, api) => organizationProblem(api, organization) },
  ],
  refuseToReplace: ({ name }, { forceDestroy }, api) =>
    forceDestroy === true ? Promise.resolve(undefined) : volumesProblem(api, name),
  observed: ["appId"],

  async create({ inputs: { name, organization, network }, owner, ...call }) {
    const { api, progress } = call;
    const appName = name ?? "";
    const orgSlug = organization ?? api.config.organization;
    await createExactlyOnce(call, {
      what: `App ${appName}`,
      owner,
      place: `Apps of organization ${orgSlug}`,
      name: appName,
      unique: true,
      fixedInputs: { network: namedNetwork(network) },
      list: () => visible(api, appName),
      keyOf: (found) => found.name,
      send: async () => {
        await api.apps.create({ body: { name: appName, orgSlug, network } });
        return { name: appName };
      },
      pick: ([found]) => found,
    });
    const until = api.clock.now() + visibleWithin;
    const readApp = async (): Promise<Awaited<ReturnType<Api["apps"]["get"]>> | Pending> => {
      try {
        return await api.apps.get({ appName });
      } catch (error) {
        // A new App may answer 404 and even 401 for a moment.
        const isLate = isNotFound(error) || (error instanceof ApiError && error.status === 401);
        if (!isLate || api.clock.now() >= until) throw error;
        return new Pending(`waiting for App ${appName} to be visible`, () => error);
      }
    };
    try {
      return toLive(
        await poll({ api, progress }, readApp, { first: 50, longest: longestPause, margin: 0 }),
        organization,
      );
    } catch (error) {
      throw new PartialStateError({ name: appName, organization, network }, error);
    }
  },

  async read({ id, state, api }) {
    return toLive(await api.apps.get({ appName: id.name }), state?.organization);
  },

  // Every input but the behaviour ones replaces: there is nothing to send.
  async update({ id, old, unfinished, api }) {
    const live = toLive(await api.apps.get({ appName: id.name }), old.organization);
    // A preview has promised the previous addresses; a refresh finds others. A create that did not end has learnt none.
    return unfinished ? live : { ...live, httpUrl: old.httpUrl, httpsUrl: old.httpsUrl };
  },

  async delete({ id, state, api, run, progress }) {
    const appName = id.name;
    if (state.forceDestroy !== true) await refuseWhileInUse(run, api, appName);
    await api.apps.delete({ appName, force: state.forceDestroy === true ? true : undefined });
    api.session.deleted.add(appName);
    const untilGone = async (): Promise<Pending> => {
      // A 404 ends it: core decides its meaning.
      await api.apps.get({ appName });
      return new Pending(
        `waiting for App ${appName} to be deleted`,
        () =>
          new MachinesError(
            "wait-timeout",
            `App ${appName} was not deleted within ${api.deadline.allowed}; the deletion continues in the service. Run destroy again.`,
          ),
      );
    };
    await poll({ api, progress }, untilGone, { first: 50, longest: longestPause });
  },
});

/** The App of a name, if it exists and we can see it. */
async function visible(api: Api, appName: string): Promise<readonly { readonly name: string }[]> {
  try {
    return [await api.apps.get({ appName })];
  } catch (error) {
    // The service's error for an App of this name in another organization is clearer.
    if (isNotFound(error) || (error instanceof ApiError && error.status === 403)) return [];
    throw error;
  }
}

/**
 * Deleting an App deletes everything in it. Objects that this deletion must not delete stop it. Objects that this run
 * deletes itself may still be in deletion: a program that names the App by a plain string deletes all of it at once.
 */
function refuseWhileInUse(run: RunInfo, api: Api, appName: string): Promise<void> {
  let until = api.clock.now() + othersBeginWithin;
  const checkContents = async (): Promise<void | Pending> => {
    const contents = await heldBy(api, appName);
    if (contents.length === 0) return undefined;
    if (run.deletions.in(api, appName) > 1) until = api.clock.now() + othersBeginWithin;
    const refusal = (): MachinesError =>
      new MachinesError(
        "refused",
        `App ${appName} still contains objects that would be deleted with it: ${contents.join(", ")}. Delete or import these first, or set forceDestroy: true on the App and run up before the deletion.`,
      );
    if (api.clock.now() >= until) throw refusal();
    return new Pending(undefined, refusal);
  };
  return poll({ api }, checkContents, { first: 50, longest: longestPause });
}

async function heldBy(api: Api, appName: string): Promise<string[]> {
  const [machines, volumes] = await Promise.all([api.machines.list({ appName }), volumesIn(api, appName)]);
  return [
    ...machines
      .filter((machine) => !isDestroyed(machine))
      .map(({ id, name }) => `Machine ${name ?? id} (${appName}/${id})`),
    ...volumes,
  ];
}

async function volumesIn(api: Api, appName: string): Promise<string[]> {
  const volumes = await api.volumes.list({ appName });
  return volumes
    .filter(({ state }) => !isLeaving(state))
    .map(({ id, name }) => `volume ${name ?? id} (${appName}/${id})`);
}

/** Why an App must not be replaced: the volumes in it would be replaced too. */
async function volumesProblem(api: Api, appName: string): Promise<string | undefined> {
  const volumes = await volumesIn(api, appName);
  return volumes.length === 0
    ? undefined
    : `changing it replaces the App ${appName} and destroys the data of its volumes: ${volumes.join(", ")}. ` +
        `Keep the old value; to move the data, create a second App and fork the volumes into it (${docsUrl("volumes.md#moving-a-volume")}). ` +
        "To allow the data loss, set forceDestroy: true on the App and allowDataLoss: true on each Volume.";
}

/** Whether a volume is being deleted and only kept for a restore (docs/interface.md#volume-states). */
export const isLeaving = (state: string | undefined): boolean =>
  ["scheduling_destroy", "pending_destroy", "fork_cleanup", "waiting_for_detach", "destroying", "destroyed"].includes(
    state ?? "",
  );

async function nameProblem(api: Api, name: string | undefined): Promise<string | undefined> {
  if (name === undefined) return undefined;
  try {
    await api.apps.get({ appName: name });
    return `the name ${JSON.stringify(name)} is taken by an App that exists already; choose another, or leave it out to get a free one. If an interrupted replacement of this resource left that App behind, \`npx pulumi-machines undo-replacement\` restores it`;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    if (error instanceof ApiError && error.status === 403)
      return `the name ${JSON.stringify(name)} is taken by another organization's App; choose another`;
    throw error;
  }
}

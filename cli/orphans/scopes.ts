// The Apps and clusters to compare: those that the state contains or names, and those that the user requests.
import { orUndefined, ignoreIfDeleted } from "../../provider/client/existence.ts";
import type { Api } from "../../provider/client/api.ts";
import { isLeaving } from "../../provider/postgres/clusters.ts";
import { everyApp } from "../../provider/client/pages.ts";
import { ApiError, MachinesError, messageOf } from "../../provider/client/errors.ts";
import { bareId } from "../../api/names.ts";
import { resources } from "../../provider/registry.ts";
import type { ListedObject } from "../../provider/core/listing.ts";
import { listedApps, listedClusters, type ListedType } from "./listing.ts";
import { fewAtATime } from "../../provider/client/fewAtATime.ts";
import { plainText, type StateResource } from "../stackState.ts";

/** Selects the objects to compare. */
export interface ScopeSelection {
  /** Apps that may not be in the state. */
  readonly apps: readonly string[];
  /** Whether to compare all Apps and clusters of the organization. */
  readonly isAll: boolean;
  /** Whether to compare snapshots of volumes and backups of clusters, too. */
  readonly hasSnapshots: boolean;
  /** Types to compare; all when empty. */
  readonly only: readonly string[];
}

/** An App or a cluster to compare. */
export interface Scope {
  readonly noun: "App" | "cluster";
  readonly name: string;
  /** Whether everything in it is compared; otherwise only objects of this stack. */
  readonly isWhole: boolean;
  /** Whether there can be objects in it other than attachments. */
  readonly isReady: boolean;
}

/** The start of the comparison. */
export interface Seen {
  readonly holders: readonly Scope[];
  /** Names of Apps and ids of clusters that are proved to be gone. */
  readonly gone: readonly string[];
  /** Apps and clusters that may be orphans themselves. */
  readonly roots: readonly (readonly [ListedType, readonly ListedObject[]])[];
}

/**
 * The Apps and clusters to read. Refused ones are reported to `failures`.
 * @throws MachinesError `missing-apps` if everything in the state seems to be missing
 */
export async function scopesOf(
  api: Api,
  own: readonly StateResource[],
  wanted: ScopeSelection,
  failures: string[],
): Promise<Seen> {
  const [apps, clusters] = await Promise.all([appsOf(api, own, wanted, failures), clustersOf(api, own, wanted)]);
  return {
    holders: [...apps.holders, ...clusters.holders],
    gone: [...apps.gone, ...clusters.gone],
    roots: [
      [listedApps, apps.roots],
      [listedClusters, clusters.roots],
    ],
  };
}

/** The resources of a type. */
export const ofType = (all: readonly StateResource[], type: string): readonly StateResource[] =>
  all.filter((held) => held.type === type);

/** The App that contains a resource, as far as its id or its inputs show. */
function appOf({ type, id, inputs }: StateResource): string | undefined {
  const resource = resources[type];
  if (resource?.within.kind !== "app" || type === "App") return undefined;
  const named = id === "" ? inputs["app"] : id.split("/")[0];
  return typeof named === "string" ? bareId(named) : undefined;
}

/** The Apps that a resource is, is in, or is attached to, as far as its id or its inputs show. */
export function appsOfResource(held: StateResource): readonly string[] {
  if (held.type !== "App")
    return [appOf(held) ?? [], held.type === "PostgresAttachment" ? attachedTo(held) : []].flat();
  const named = held.id === "" ? held.inputs["name"] : held.id;
  return typeof named === "string" ? [named] : [];
}

/** Apps and clusters that contain resources, as `App shop`: they must not be deleted. */
export function usedBy(all: readonly StateResource[]): ReadonlySet<string> {
  const apps = all.filter(({ type }) => type !== "App").flatMap(appsOfResource);
  const clusters = all.flatMap((held) => clusterOf(held) ?? []);
  return new Set([...apps.map((app) => `App ${app}`), ...clusters.map((id) => `PostgresCluster ${id}`)]);
}

/** The App to which an attachment connects its cluster. */
function attachedTo({ id, inputs }: StateResource): readonly string[] {
  const named = id === "" ? inputs["app"] : id.split("/")[1];
  return typeof named === "string" ? [bareId(named)] : [];
}

/** The cluster that contains a resource, as far as its id or its inputs show. */
function clusterOf({ type, id, inputs }: StateResource): string | undefined {
  if (resources[type]?.within.kind !== "cluster" || type === "PostgresCluster") return undefined;
  const named = id === "" ? inputs["cluster"] : id.split("/")[0];
  return typeof named === "string" ? bareId(named) : undefined;
}

async function appsOf(api: Api, own: readonly StateResource[], wanted: ScopeSelection, failures: string[]) {
  const listed = wanted.isAll ? await everyApp(api, { orgSlug: api.config.organization }) : [];
  // ASSUMED: an App with a role was created by the platform for itself, below a cluster for instance.
  const all = listed.filter(({ appRole }) => !appRole).map(({ name }) => name);
  const created = ofType(own, "App").filter(({ isExternal, id }) => id !== "" && !isExternal);
  const pending = ofType(own, "App").flatMap(({ id, inputs }) => (id === "" ? (plainText(inputs["name"]) ?? []) : []));
  const whole = new Set([...created.map(({ id }) => id), ...pending, ...wanted.apps, ...all]);
  const needed = new Set([
    ...created.map(({ id }) => id),
    ...own.flatMap((held) => (held.id === "" ? [] : (appOf(held) ?? []))),
  ]);
  const named = new Set([...whole, ...own.flatMap((held) => appOf(held) ?? [])]);
  const [holders, gone]: [Scope[], string[]] = [[], []];
  const identities = new Map<string, string | undefined>();
  await fewAtATime(4, [...named], async (name) => {
    const ask = () => api.apps.get({ appName: name });
    try {
      const live = needed.has(name) ? await ignoreIfDeleted(api, { kind: "app", name }, ask) : await orUndefined(ask);
      identities.set(name, live?.id);
      if (live) holders.push({ noun: "App", name, isWhole: whole.has(name), isReady: true });
      else if (needed.has(name)) gone.push(name);
      else if (wanted.apps.includes(name)) failures.push(`there is no App ${name} at ${api.config.endpoint}`);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 403) throw error;
      failures.push(messageOf(error));
    }
  });
  return {
    holders,
    gone,
    roots: holders
      .filter(({ isWhole }) => isWhole)
      .map(({ name }) => ({ parts: { name }, identity: identities.get(name) })),
  };
}

async function clustersOf(api: Api, own: readonly StateResource[], wanted: ScopeSelection) {
  const pending = ofType(own, "PostgresCluster").filter(({ id }) => id === "");
  const asks = wanted.isAll || pending.length > 0;
  const listed = asks ? (await api.postgres.list({ orgSlug: api.config.organization })).data : [];
  const roots = listed.filter(
    ({ name, status }) => !isLeaving(status) && (wanted.isAll || pending.some(({ inputs }) => inputs["name"] === name)),
  );
  const created = new Set(
    ofType(own, "PostgresCluster").flatMap(({ isExternal, id }) => (id === "" || isExternal ? [] : [id])),
  );
  const [holders, gone]: [Scope[], string[]] = [[], []];
  await fewAtATime(4, [...new Set([...created, ...roots.map(({ id }) => id)])], async (name) => {
    const ask = async () => (await api.postgres.get({ postgresClusterId: name })).data;
    const live = created.has(name)
      ? await ignoreIfDeleted(api, { kind: "cluster", name }, ask)
      : await orUndefined(ask);
    if (live && !isLeaving(live.status))
      holders.push({ noun: "cluster", name, isWhole: true, isReady: live.status === "ready" });
    else if (created.has(name)) gone.push(name);
  });
  return {
    holders,
    gone,
    roots: roots.map(({ id, name, createdAt }) => ({ parts: { clusterId: id }, name, createdAt })),
  };
}

/** An App or a cluster as it is now; undefined if it is gone. */
export async function rootNow(api: Api, { type }: ListedType, id: string): Promise<ListedObject | undefined> {
  if (type === listedApps.type) {
    const live = await orUndefined(() => api.apps.get({ appName: id }));
    return live && { parts: { name: id }, identity: live.id };
  }
  const live = await orUndefined(() => api.postgres.get({ postgresClusterId: id }));
  if (!live || isLeaving(live.data.status)) return undefined;
  return { parts: { clusterId: id }, name: live.data.name, createdAt: live.data.createdAt };
}

/** @throws MachinesError `invalid-input` if neither the state nor the user names anything to compare */
export function requireSomething(own: readonly StateResource[], wanted: ScopeSelection, what: string): void {
  const isSomething = own.some(
    (held) => held.type === "App" || held.type === "PostgresCluster" || appOf(held) !== undefined,
  );
  if (!isSomething && !wanted.isAll && wanted.apps.length === 0)
    throw new MachinesError(
      "invalid-input",
      `${what} holds no App and no cluster, so there is nothing to compare: name an App with --app, or compare the whole organization with --all-apps`,
    );
}

// Managed Postgres clusters (docs/interface.md#managed-postgres, docs/interface.md#cluster-states).
import { z } from "zod";
import { camelKey } from "../../api/case.ts";
import { clusterName, regionCode } from "../../api/names.ts";
import { createPostgresCluster, postgresPlan, postgresVersion } from "../../api/postgres.ts";
import { optional, required } from "../../api/schema.ts";
import type { Api } from "../client/api.ts";
import { Pending, poll } from "../client/poll.ts";
import { isLeaving, untilReady, type Cluster } from "./clusters.ts";
import { createExactlyOnce } from "../core/exactlyOnce.ts";
import { MachinesError } from "../client/errors.ts";
import { PartialStateError } from "../core/partialState.ts";
import { pathId } from "../core/ids.ts";
import { canonical, equal } from "../core/values.ts";
import { behaviour, computed, defineResource, fieldsOf, type Call, type Problem } from "../core/resource.ts";
import { directUri, credentialsIfReported, firstDatabase, poolerUri, type Credentials } from "./credentials.ts";
import { regionProblem } from "../shared/region.ts";
import { organizationProblem } from "../core/organization.ts";

const time = z.string().refine((text) => z.iso.datetime({ offset: true }).safeParse(text).success, {
  error: 'must be an RFC 3339 time with offset such as "2026-01-31T12:00:00Z"',
});
const source = required(z.string(), "Cluster to copy: the `id` of a PostgresCluster.", { format: "reference" });

const inputs = z.object({
  name: computed(clusterName).describe(
    "Name, 1 to 63 of `a-z`, `0-9` and `-`, unique in the organization. Generated from the resource's name when left out. Changing it replaces the cluster.",
  ),
  organization: computed(z.string()).describe(
    "Slug of the organization that owns the cluster; the provider's `organization` when left out, or that of the cluster it is created from. Changing it replaces the cluster.",
  ),
  region: computed(regionCode).describe(
    "Region code, for example `fra`; it must offer Postgres. Required to create an empty cluster. Changing it replaces the cluster.",
  ),
  plan: computed(postgresPlan).describe(
    "Size, in any case: `basic` (2 shared CPUs, 1 GB), `starter` (2 shared CPUs, 2 GB), `launch` (2 CPUs, 8 GB), `scale` (4 CPUs, 32 GB) or `Performance` (8 CPUs, 64 GB). Required to create an empty cluster. Changing it replaces the cluster.",
  ),
  diskSizeGb: computed(z.int().min(10).max(1000)).describe(
    "Disk in GB, 10 to 1000; 10 when left out. Changing it replaces the cluster.",
  ),
  pgMajorVersion: computed(postgresVersion).describe(
    "Major version of Postgres, `16` or `17`; `16` when left out. A service that runs clusters as servers may also have `18`. Changing it replaces the cluster.",
  ),
  // The service never returns it. If the state does not know it, it counts as the default and not as a change.
  poolMode: computed(z.enum(["session", "transaction"]).meta({ wireDefault: "session" })).describe(
    "When the pool reuses a connection: `session` or `transaction`. The service does not return it. Changing it replaces the cluster.",
  ),
  postgisEnabled: computed(z.boolean()).describe(
    "Whether the extension PostGIS may be installed later; false when left out. Changing it replaces the cluster.",
  ),
  restore: computed(
    z.object({
      cluster: source,
      backupId: optional(z.string(), "Backup to restore: the `id` of a PostgresBackup.", { format: "reference" }),
      pitrTime: optional(time, "RFC 3339 time with offset to restore to."),
    }),
  ).describe(
    "Creates the cluster from a backup of another one, by `backupId` or by `pitrTime`. Region, plan and other settings come from that cluster. Once the cluster exists, this may be removed, and those settings still need not be set. Changing it replaces the cluster.",
  ),
  fork: computed(z.object({ cluster: source })).describe(
    "Creates the cluster as a copy of another one's present state. Region, plan and other settings come from that cluster. Once the cluster exists, this may be removed, and those settings still need not be set. Changing it replaces the cluster.",
  ),
  deletionProtection: behaviour(z.boolean().default(true)).describe(
    "Prevents the cluster from being deleted or replaced. To do either, set this to false first.",
  ),
});

const outputs = z.object({
  name: required(z.string(), "Name of the cluster."),
  organization: optional(z.string(), "Slug of the organization that owns the cluster."),
  region: optional(z.string(), "Region the cluster is in."),
  plan: optional(z.string(), "Size of the cluster."),
  diskSizeGb: optional(z.int(), "Disk in GB."),
  pgMajorVersion: optional(z.string(), "Major version of Postgres."),
  postgisEnabled: optional(z.boolean(), "Whether the extension PostGIS may be installed."),
  clusterId: required(z.string(), "Identifier."),
  status: optional(z.string(), "`creating`, `initializing`, `ready` or `failed`."),
  cpuKind: optional(z.string(), "`shared` or `performance`."),
  cpus: optional(z.int(), "Number of CPUs."),
  memoryMb: optional(z.int(), "Memory in MB."),
  replicas: optional(z.int(), "Copies of the data beside the primary."),
  createdAt: optional(z.string(), "RFC 3339 time of creation."),
  directHost: optional(z.string(), "Host name of the primary."),
  directPort: optional(z.int(), "Port of the primary."),
  poolerHost: optional(z.string(), "Host name of the connection pool."),
  poolerPort: optional(z.int(), "Port of the connection pool."),
  username: optional(z.string(), "The cluster's first user, who may do everything."),
  password: optional(z.string(), "Password of that user.", { secret: true }),
  directUri: optional(z.string(), "URI to connect with, as that user, straight to the primary.", { secret: true }),
  poolerUri: optional(z.string(), "URI to connect with, as that user, through the connection pool.", { secret: true }),
});

const longestPause = 2000;
/** Inputs that a copy inherits from its source. */
const copied = [
  "organization",
  "region",
  "plan",
  "diskSizeGb",
  "pgMajorVersion",
  "poolMode",
  "postgisEnabled",
] as const;

type Inputs = z.output<typeof inputs>;

function toLive(live: Cluster, organization: string | undefined, credentials: Credentials | undefined) {
  const { direct, pooler } = live.endpoints?.primary ?? {};
  return {
    name: live.name,
    // The written value is kept: the answer may have the real slug for "personal".
    organization: organization ?? live.organization?.slug,
    region: live.region,
    plan: live.plan,
    diskSizeGb: live.diskSizeGb,
    pgMajorVersion: live.pgMajorVersion,
    postgisEnabled: live.postgisEnabled,
    clusterId: live.id,
    status: live.status,
    cpuKind: live.cpuKind,
    cpus: live.cpus,
    memoryMb: live.memoryMb,
    replicas: live.replicas,
    createdAt: live.createdAt,
    directHost: direct?.host,
    directPort: direct?.port,
    poolerHost: pooler?.host,
    poolerPort: pooler?.port,
    username: credentials?.username,
    password: credentials?.password,
    directUri: credentials && directUri(live, credentials, firstDatabase),
    poolerUri: credentials && poolerUri(live, credentials, firstDatabase),
  };
}

export const postgresCluster = defineResource({
  name: "PostgresCluster",
  summary: "A managed Postgres cluster: empty, restored from a backup, or a copy of another one.",
  description:
    "No setting of a cluster can be changed in place. Every change replaces the cluster, which deletes all its data, so `deletionProtection` must be switched off first.",
  inputs,
  outputs,
  id: pathId("clusterId"),
  within: { kind: "cluster", part: "clusterId" },
  list: {
    objects: (_, clusterId) => Promise.resolve([{ parts: { clusterId } }]),
    shownBy: "postgres.get",
    deletedBy: "postgres.delete",
  },
  replaceOn: ["name", ...copied, "restore", "fork"],
  uniqueBy: ["name"],
  dependsOn: {
    status: "any",
    directHost: "any",
    directPort: "any",
    poolerHost: "any",
    poolerPort: "any",
    username: "any",
    password: "any",
    directUri: "any",
    poolerUri: "any",
  },
  autoname: { property: "name", maxLength: 63, separator: "-", random: true },
  losesData: "all its databases",
  minutes: { create: 20, update: 20 },
  validate: problemsOf,
  previewChecks: [
    { needs: ["region"], ask: ({ region }, api) => regionProblem(api, region, "Postgres") },
    { needs: [], uses: ["organization"], ask: ({ organization }, api) => organizationProblem(api, organization) },
  ],
  observed: ["plan", "diskSizeGb", "pgMajorVersion", "postgisEnabled", "replicas"],

  async create({ inputs: wanted, owner, ...call }) {
    let live = await begin(call, owner, wanted);
    try {
      live = await untilReady(call, live.id, (seen) => (live = seen));
      return toLive(live, wanted.organization, await credentialsIfReported(call, live.id));
    } catch (error) {
      throw new PartialStateError(toLive(live, wanted.organization, undefined), error);
    }
  },

  async read({ id, state, ...call }) {
    const { data: live } = await call.api.postgres.get({ postgresClusterId: id.clusterId });
    if (isLeaving(live.status)) return undefined;
    const credentials = live.status === "ready" ? await credentialsIfReported(call, live.id) : undefined;
    return toLive(live, state?.organization, credentials ?? knownCredentials(state));
  },

  // Every input but the behaviour ones replaces, so this is only called to finish a creation.
  async update({ id, old, ...call }) {
    let { data: live } = await call.api.postgres.get({ postgresClusterId: id.clusterId });
    let credentials = knownCredentials(old);
    try {
      live = await untilReady(call, live.id, (seen) => (live = seen));
      credentials = (await credentialsIfReported(call, live.id)) ?? credentials;
      return toLive(live, old.organization, credentials);
    } catch (error) {
      throw new PartialStateError(toLive(live, old.organization, credentials), error);
    }
  },

  async delete({ id, api, progress }) {
    const key = { postgresClusterId: id.clusterId };
    await api.postgres.delete(key);
    api.session.deleted.add(id.clusterId);
    const readSettled = async (): Promise<boolean | Pending> => {
      // A 404 or a 410 ends it too: core decides what they mean.
      if ((await api.postgres.get(key)).data.status === "deleted") return true;
      return new Pending(
        `waiting for cluster ${id.clusterId} to be deleted`,
        () =>
          new MachinesError(
            "wait-timeout",
            `cluster ${id.clusterId} was not deleted within ${api.deadline.allowed}; the deletion continues in the service. Run destroy again.`,
          ),
      );
    };
    await poll({ api, progress }, readSettled, { longest: longestPause });
  },
});

const knownCredentials = (state: { username?: string | undefined; password?: string | undefined } | undefined) =>
  state?.username === undefined || state.password === undefined
    ? undefined
    : { username: state.username, password: state.password };

/** Creates the cluster exactly once: its name is unique in the organization, so that a lost answer can be looked up. */
async function begin(call: Call, owner: string | undefined, wanted: Inputs): Promise<Cluster> {
  const { api } = call;
  const { name, organization, deletionProtection: _, ...settings } = wanted;
  const { restore, fork } = settings;
  const from = (restore ?? fork)?.cluster;
  const copiedFrom = from === undefined ? undefined : await untilReady(call, from);
  const orgSlug = organization ?? copiedFrom?.organization?.slug ?? api.config.organization;
  return createExactlyOnce<Cluster, Cluster>(call, {
    what: `cluster ${name ?? ""}`,
    owner,
    place: `clusters of organization ${orgSlug}`,
    name: name ?? "",
    unique: true,
    fixedInputs: whateverTheirForm(settings),
    list: async () => (await api.postgres.list({ orgSlug })).data.filter((cluster) => cluster.name === name),
    keyOf: (cluster) => cluster.id,
    createdAt: ({ createdAt }) => createdAt,
    send: async () => (await post(api, orgSlug, wanted)).data,
    pick: (fresh) => fresh.find((cluster) => !isLeaving(cluster.status) && isAsWanted(cluster, wanted)),
  });
}

const fields = fieldsOf(inputs);
/** What the service chooses for an input that is left out, by the input's name. */
const standards: Readonly<Record<string, unknown>> = Object.fromEntries(
  Object.entries(fieldsOf(createPostgresCluster)).map(([name, { meta }]) => [camelKey(name), meta.wireDefault]),
);

/** Settings in one form, however they are spelled and whether a default is written or left out. */
const whateverTheirForm = (settings: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(settings).map(([name, given]) => {
      const field = fields[name];
      const value = field ? canonical(field, given) : given;
      return [name, equal(value, standards[name]) ? undefined : value];
    }),
  );

/** Whether a cluster matches the wanted one, as far as its list entry shows. */
const isAsWanted = (live: Cluster, wanted: Inputs): boolean =>
  live.name === wanted.name &&
  (wanted.region ?? live.region) === live.region &&
  (wanted.plan ?? live.plan ?? "").toLowerCase() === (live.plan ?? "").toLowerCase();

function post(api: Api, orgSlug: string, { name, restore, fork, ...wanted }: Inputs) {
  if (restore) {
    const { cluster, backupId, pitrTime } = restore;
    return api.postgres.restore({ postgresClusterId: cluster, body: { backupId, pitrTime, name } });
  }
  if (fork) return api.postgres.fork({ postgresClusterId: fork.cluster, body: { name } });
  const { organization: _, deletionProtection: __, ...body } = wanted;
  return api.postgres.create({ body: { ...body, orgSlug, name } });
}

/** A cluster has one source, and inherits the other inputs from it. */
function problemsOf(given: Partial<Inputs>, isMade: boolean): readonly Problem[] {
  const { restore, fork } = given;
  if (restore && fork)
    return [{ path: ["fork"], message: "cannot be combined with restore; a cluster is created from one source" }];
  // An existing cluster has them already, whatever its source was.
  if (!restore && !fork && isMade) return [];
  if (!restore && !fork)
    return (["region", "plan"] as const)
      .filter((name) => given[name] === undefined)
      .map((name) => ({ path: [name], message: "is required, unless the cluster is created by restore or fork" }));
  const set = copied.filter((name) => given[name] !== undefined);
  const by = restore ? "restore" : "fork";
  const problems: Problem[] = set.map((name) => ({
    path: [name],
    message: `comes from the cluster named in ${by}; leave it out`,
  }));
  if (restore && (restore.backupId === undefined) === (restore.pitrTime === undefined))
    problems.push({ path: ["restore", "backupId"], message: "exactly one of backupId and pitrTime must be given" });
  return problems;
}

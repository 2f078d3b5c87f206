// The kinds of objects that are compared: how the service lists them, and which resource type stands for them.
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { orUndefined } from "../../provider/client/existence.ts";
import type { Api } from "../../provider/client/api.ts";
import { askIps } from "../../provider/client/listCache.ts";
import { everyCertificate } from "../../provider/client/pages.ts";
import { pathId, type IdFormat } from "../../provider/core/ids.ts";
import { isLeaving } from "../../provider/apps/app.ts";
import { holds } from "../../provider/certificates/hostnameCertificates.ts";
import { resources } from "../../provider/registry.ts";
import { firstDatabase, firstUser } from "../../provider/postgres/credentials.ts";

/** An object as the service lists it. */
export interface Found {
  /** Parts of its id. */
  readonly parts: Readonly<Record<string, string>>;
  /** Name, where it has one beside its id. */
  readonly name?: string | undefined;
  /** RFC 3339 time of creation, where the service tells. */
  readonly createdAt?: string | undefined;
  /** Metadata of a Machine: what was made by Pulumi is tagged there. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** One look at a service. */
export interface Look {
  readonly api: Api;
  /** The answer to a question that several kinds have, asked once. */
  readonly once: <T>(question: string, ask: () => Promise<T>) => Promise<T>;
}

/** Begins a look. */
export function lookAt(api: Api): Look {
  const answers = new Map<string, Promise<unknown>>();
  return {
    api,
    once<T>(question: string, ask: () => Promise<T>) {
      const answer = (answers.get(question) as Promise<T> | undefined) ?? ask();
      answers.set(question, answer);
      return answer;
    },
  };
}

/** A kind of object. */
export interface ListedType {
  /** Name of the resource type; `Hostname` for a bare hostname, which none stands for. */
  readonly type: string;
  readonly id: IdFormat;
  /** Whether a resource of the type can take one over. */
  readonly isImportable: boolean;
  /** Those of an App, or of a cluster. */
  readonly list: (look: Look, holder: string) => Promise<readonly Found[]>;
  /** Whether the one of an id is there, where more than the list can tell. */
  readonly isThere?: (api: Api, parts: Readonly<Record<string, string>>) => Promise<boolean>;
  /** What shows one, or the list that it is in. */
  readonly look: Operation;
  /** What deletes one; undefined where nothing does. */
  readonly deletion: Operation | undefined;
}

type Declared = Pick<ListedType, "list" | "isThere" | "look" | "deletion">;

function listedType(type: string, declared: Declared): ListedType {
  const resource = resources[type];
  if (!resource) throw new Error(`there is no resource type ${type}`);
  return { type, id: resource.id, isImportable: resource.noImport === undefined, ...declared };
}

/** What the service still shows of a Machine for a while. */
const isDestroyed = (state: string | undefined): boolean => state === "destroyed" || state === "destroying";

/** An App itself. */
export const listedApps = listedType("App", {
  list: (_, name) => Promise.resolve([{ parts: { name } }]),
  look: contract.apps.get,
  deletion: contract.apps.delete,
});

/** A cluster itself. */
export const listedClusters = listedType("PostgresCluster", {
  list: (_, clusterId) => Promise.resolve([{ parts: { clusterId } }]),
  look: contract.postgres.get,
  deletion: contract.postgres.delete,
});

const machines = listedType("Machine", {
  list: async ({ api }, appName) =>
    (await api.machines.list({ appName }))
      .filter(({ state }) => !isDestroyed(state))
      .map(({ id, name, createdAt, config }) => ({
        parts: { app: appName, machineId: id },
        name,
        createdAt,
        metadata: config?.metadata,
      })),
  isThere: async (api, { app = "", machineId = "" }) => {
    const live = await orUndefined(() => api.machines.get({ appName: app, machineId }));
    return live !== undefined && !isDestroyed(live.state);
  },
  look: contract.machines.get,
  deletion: contract.machines.destroy,
});

const volumes = listedType("Volume", {
  list: async (look, appName) =>
    (await liveVolumes(look, appName)).map(({ id, name, createdAt }) => ({
      parts: { app: appName, volumeId: id },
      name,
      createdAt,
    })),
  isThere: async (api, { app = "", volumeId = "" }) => {
    const live = await orUndefined(() => api.volumes.get({ appName: app, volumeId }));
    return live !== undefined && !isLeaving(live.state);
  },
  look: contract.volumes.get,
  deletion: contract.volumes.delete,
});

const liveVolumes = ({ api, once }: Look, appName: string) =>
  once(`volumes/${appName}`, async () =>
    (await api.volumes.list({ appName })).filter(({ state }) => !isLeaving(state)),
  );

const addresses = listedType("IpAssignment", {
  list: async ({ api }, appName) =>
    (await askIps(api, appName)).map(({ ip, createdAt }) => ({ parts: { app: appName, ip }, createdAt })),
  look: contract.ipAssignments.list,
  deletion: contract.ipAssignments.release,
});

/** What a hostname of an App holds; a list that does not say is asked for one by one. */
const hostnames = ({ api, once }: Look, appName: string) =>
  once(`hostnames/${appName}`, async () => {
    const all = await everyCertificate(api, { appName });
    return Promise.all(
      all.map(async ({ hostname, createdAt, ...told }) => {
        const isTold = told.hasCustomCertificate !== undefined && told.hasFlyCertificate !== undefined;
        const detail = isTold ? undefined : await api.certificates.get({ appName, hostname });
        const acme = detail ? holds(detail, "acme") : told.hasFlyCertificate === true || told.acmeRequested === true;
        const custom = detail ? holds(detail, "custom") : told.hasCustomCertificate === true;
        return { found: { parts: { app: appName, hostname }, createdAt }, acme, custom };
      }),
    );
  });

const acmeCertificates = listedType("AcmeCertificate", {
  list: async (look, appName) => (await hostnames(look, appName)).filter(({ acme }) => acme).map(({ found }) => found),
  look: contract.certificates.get,
  deletion: contract.certificates.deleteAcme,
});

const customCertificates = listedType("CustomCertificate", {
  list: async (look, appName) =>
    (await hostnames(look, appName)).filter(({ custom }) => custom).map(({ found }) => found),
  look: contract.certificates.get,
  deletion: contract.certificates.deleteCustom,
});

/** A hostname that a deletion that was interrupted left without certificates. */
const bareHostnames: ListedType = {
  type: "Hostname",
  id: pathId("app", "hostname"),
  isImportable: false,
  list: async (look, appName) =>
    (await hostnames(look, appName)).filter(({ acme, custom }) => !acme && !custom).map(({ found }) => found),
  look: contract.certificates.get,
  deletion: contract.certificates.delete,
};

const secrets = listedType("Secret", {
  list: async ({ api }, appName) =>
    (await api.secrets.list({ appName })).secrets.map(({ name, createdAt }) => ({
      parts: { app: appName, name },
      createdAt,
    })),
  look: contract.secrets.get,
  deletion: contract.secrets.delete,
});

const secretKeys = listedType("SecretKey", {
  list: async ({ api }, appName) =>
    (await api.secretKeys.list({ appName })).secretKeys.map(({ name, createdAt }) => ({
      parts: { app: appName, name },
      createdAt,
    })),
  look: contract.secretKeys.get,
  deletion: contract.secretKeys.delete,
});

const volumeSnapshots = listedType("VolumeSnapshot", {
  list: async (look, appName) => {
    const all = await liveVolumes(look, appName);
    const lists = all.map(async ({ id: volumeId }) =>
      (await look.api.volumes.listSnapshots({ appName, volumeId })).flatMap(({ id, createdAt }) =>
        id === undefined ? [] : [{ parts: { app: appName, volume: volumeId, snapshotId: id }, createdAt }],
      ),
    );
    return (await Promise.all(lists)).flat();
  },
  look: contract.volumes.listSnapshots,
  deletion: undefined,
});

// ASSUMED: these belong to the platform, whoever lists them; the first database and user come with every cluster.
const platformsDatabases: readonly string[] = [firstDatabase, "postgres", "template0", "template1"];
const platformsUsers: readonly string[] = [firstUser, "postgres", "repmgr", "replication", "pgbouncer"];

const databaseNames = ({ api, once }: Look, cluster: string): Promise<readonly string[]> =>
  once(`databases/${cluster}`, async () =>
    (await api.postgres.listDatabases({ postgresClusterId: cluster })).data.map(({ name }) => name),
  );

const databases = listedType("PostgresDatabase", {
  list: async (look, cluster) =>
    (await databaseNames(look, cluster))
      .filter((name) => !platformsDatabases.includes(name))
      .map((name) => ({ parts: { cluster, name } })),
  look: contract.postgres.listDatabases,
  deletion: contract.postgres.deleteDatabase,
});

const users = listedType("PostgresUser", {
  list: async ({ api }, cluster) =>
    (await api.postgres.listUsers({ postgresClusterId: cluster })).data
      .filter(({ username }) => !platformsUsers.includes(username))
      .map(({ username }) => ({ parts: { cluster, username } })),
  look: contract.postgres.listUsers,
  deletion: contract.postgres.deleteUser,
});

const extensions = listedType("PostgresExtension", {
  list: async (look, cluster) => {
    const lists = (await databaseNames(look, cluster)).map(async (database) =>
      (await look.api.postgres.listExtensions({ postgresClusterId: cluster, database })).data
        .filter(({ installed, system }) => installed != null && system !== true)
        .map(({ name }) => ({ parts: { cluster, database, name } })),
    );
    return (await Promise.all(lists)).flat();
  },
  look: contract.postgres.listExtensions,
  deletion: contract.postgres.removeExtension,
});

const attachments = listedType("PostgresAttachment", {
  list: async ({ api }, cluster) =>
    ((await api.postgres.get({ postgresClusterId: cluster })).data.attachedApps ?? []).flatMap(({ name }) =>
      name === undefined ? [] : [{ parts: { cluster, app: name } }],
    ),
  look: contract.postgres.get,
  deletion: contract.postgres.detach,
});

const backups = listedType("PostgresBackup", {
  list: async ({ api }, cluster) =>
    (await api.postgres.listBackups({ postgresClusterId: cluster })).data.map(({ id, startedAt }) => ({
      parts: { cluster, backupId: id },
      createdAt: startedAt ?? undefined,
    })),
  look: contract.postgres.listBackups,
  deletion: undefined,
});

/** What is in an App. */
export const listedInApp: readonly ListedType[] = [
  machines,
  volumes,
  addresses,
  acmeCertificates,
  customCertificates,
  bareHostnames,
  secrets,
  secretKeys,
  volumeSnapshots,
];

/** What is in a cluster; only attachments are told before it is ready. */
export const listedInCluster: readonly ListedType[] = [attachments, databases, users, extensions, backups];

/** What is mostly made by the platform's own schedule, and compared only when that is asked for. */
export const scheduled: readonly ListedType[] = [volumeSnapshots, backups];

type Parts = Readonly<Record<string, string>>;

/** The request that shows an object: `GET /v1/apps/shop/machines/3d8d413b29d089`. */
export const lookingAt = ({ look, id }: ListedType, parts: Parts): string => requestOf(look, id, parts);

/** The request that deletes an object: `DELETE /v1/apps/shop/machines/3d8d413b29d089`. */
export const deletionOf = ({ deletion, id }: ListedType, parts: Parts): string | undefined =>
  deletion && requestOf(deletion, id, parts);

function requestOf({ method, path }: Operation, id: IdFormat, parts: Parts): string {
  // The path names what the id names, in the same order.
  const values = id.parts.map((part) => encodeURIComponent(parts[part] ?? "").replaceAll("*", "%2A"));
  return `${method} ${path.replace(/\{\w+\}/g, () => values.shift() ?? "")}`;
}

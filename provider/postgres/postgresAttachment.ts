// Attachments of Postgres clusters to Apps (docs/interface.md#attachments): a record of the service, and on request a
// secret of the App, which the service does not set by itself.
import { z } from "zod";
import { appName, databaseName, secretName, userName } from "../../api/names.ts";
import { optional, required } from "../../api/schema.ts";
import type { AnswerOf } from "../client/api.ts";
import { ignoreIfDeleted, type Place } from "../client/existence.ts";
import { untilReady } from "./clusters.ts";
import { MachinesError } from "../client/errors.ts";
import { PartialStateError } from "../core/partialState.ts";
import { idOrName, pathId } from "../core/ids.ts";
import { defineResource, type Call, type GivingUp, type Problem } from "../core/resource.ts";
import { bareId } from "../../api/names.ts";
import { credentialsOf, firstDatabase, firstUser, poolerUri } from "./credentials.ts";
import { givingUp, rememberedSecrets, secretClaim, secretFacts, secretsByName, takenOver } from "../secrets/digests.ts";

const inputs = z.object({
  cluster: required(
    z.string(),
    "Cluster to attach: the `id` of a PostgresCluster. Changing it replaces the attachment.",
    { format: "reference" },
  ),
  app: required(appName, "App to attach it to: the `id` of an App. Changing it replaces the attachment.", {
    format: "reference",
  }),
  secretName: optional(
    secretName,
    "Name of the App's secret that gets the connection URI, for example `DATABASE_URL`. No secret is set when left out.",
  ),
  uri: optional(z.string(), "The connection URI itself; built from `user`, `password` and `database` when left out.", {
    secret: true,
  }),
  user: optional(
    idOrName(userName, "a PostgresUser"),
    "User to connect as: the `id` of a PostgresUser; the cluster's first user when left out.",
    { format: "reference" },
  ),
  password: optional(
    z.string(),
    "Password of `user`: the `password` of the PostgresUser. With it, a new password is also written to the secret. When left out, it is read from the service.",
    { secret: true },
  ),
  database: optional(
    idOrName(databaseName, "a PostgresDatabase"),
    "Database to connect to: the `id` of a PostgresDatabase; the cluster's first database when left out.",
    { format: "reference" },
  ),
});

const outputs = z.object({
  attachedAt: optional(z.string(), "RFC 3339 time of the attachment."),
  secretDigest: optional(z.string(), "Digest of the secret that was set; it changes with the value."),
  secretUpdatedAt: optional(z.string(), "RFC 3339 time at which the secret was set here."),
  secretsVersion: required(
    z.int(),
    "Version of the App's secrets since the secret was set; 0 if none was set. A Machine with this as `minSecretsVersion` gets the secret.",
  ),
});

type Inputs = z.output<typeof inputs>;
type Settings = Pick<Inputs, "cluster" | "app" | "secretName" | "uri" | "user" | "password" | "database">;

export const postgresAttachment = defineResource({
  name: "PostgresAttachment",
  summary: "Attaches a Postgres cluster to an App, and can set a secret of the App to its connection URI.",
  description:
    "An existing attachment is adopted, because it is only a record. The URI in the secret leads through the connection pool. A Machine sees the secret after its next update. An existing secret of that name is overwritten, with a warning.",
  inputs,
  outputs,
  id: pathId("cluster", "app"),
  within: { kind: "cluster", part: "cluster" },
  list: {
    objects: async ({ api }, cluster) =>
      ((await api.postgres.get({ postgresClusterId: cluster })).data.attachedApps ?? []).flatMap(({ name }) =>
        name === undefined ? [] : [{ parts: { cluster, app: name } }],
      ),
    shownBy: "postgres.get",
    deletedBy: "postgres.detach",
    isListedEarly: true,
  },
  replaceOn: ["cluster", "app"],
  // Deleting the old one unsets the secret: the new one must not have set it by then.
  uniqueBy: ["app", "secretName"],
  claims: ({ cluster = "", app = "", secretName: name, uri }) => ({
    [attachmentClaim(cluster, app)]: undefined,
    ...secretClaim(app, name, uri),
  }),
  dependsOn: { secretDigest: "any", secretUpdatedAt: "any", secretsVersion: "any" },
  validate: problemsOf,

  async observe({ id, inputs, state, ...call }) {
    const { data } = await call.api.postgres.get({ postgresClusterId: id.cluster });
    const names = [state?.secretName, inputs?.secretName].filter((name) => name !== undefined);
    const facts = await secretFacts(call, id.app, new Set(names));
    return isAttached(data, id.app) ? facts : undefined;
  },
  remember: ({ secretName: name, secretDigest = "" }, digest) =>
    name === undefined ? {} : rememberedSecrets({ [name]: secretDigest }, digest),

  async create({ inputs: wanted, ...call }) {
    const { cluster, app } = wanted;
    const { data } = await call.api.postgres.attach({ postgresClusterId: cluster, body: { appName: app } });
    const live = { cluster, app, attachedAt: data.attachedAt, secretsVersion: 0 };
    try {
      return { ...live, ...(await written(call, wanted, { given: {}, isNew: true })) };
    } catch (error) {
      // The state lacks the secret, so that the next up sets it.
      throw new PartialStateError({ ...live, secretName: null }, error);
    }
  },

  async read({ id, state, api }) {
    const { data } = await api.postgres.get({ postgresClusterId: id.cluster });
    if (!isAttached(data, id.app)) return undefined;
    const { attachedAt, secretDigest, secretUpdatedAt, secretsVersion = 0, secretName: name } = state ?? {};
    const live = { ...id, attachedAt, secretsVersion };
    if (name === undefined) return live;
    const digest = await digestOf({ api, app: id.app, name });
    // Overwritten or unset: our value no longer exists.
    return digest === secretDigest ? { ...live, secretDigest, secretUpdatedAt } : { ...live, secretName: null };
  },

  async update({ id, inputs: wanted, old, ...call }) {
    const { api } = call;
    const { data } = await api.postgres.attach({ postgresClusterId: id.cluster, body: { appName: id.app } });
    const given = old.secretName === wanted.secretName ? {} : await givenUp(call, id.app, old);
    const result = await written(call, wanted, { given, isNew: old.secretName !== wanted.secretName });
    const nothing = { secretDigest: undefined, secretUpdatedAt: undefined, secretsVersion: 0 };
    return { ...id, attachedAt: data.attachedAt, ...nothing, ...result };
  },

  async delete({ id, state, ...call }) {
    const { api, warn, otherClaimant } = call;
    const kept = await ignoreIfDeleted(api, appOf(id.app), async () => {
      const given = await givenUp(call, id.app, state);
      if (Object.keys(given).length > 0) await api.secrets.update({ appName: id.app, body: { values: { ...given } } });
      const { secretName: name } = state;
      return name !== undefined && given[name] === null ? undefined : name;
    });
    const claimant = otherClaimant(attachmentClaim(id.cluster, id.app))?.name;
    // An attachment has no owner, so another client that set its secret since keeps using it.
    const by =
      claimant === undefined
        ? kept && `the client that has set ${kept} since`
        : `${JSON.stringify(claimant)} of this program`;
    if (by !== undefined) return warn(`cluster ${id.cluster} stays attached to App ${id.app}: ${by} uses it.`);
    await api.postgres.detach({ postgresClusterId: id.cluster, appName: id.app });
  },
});

const isAttached = ({ attachedApps = [] }: AnswerOf<"postgres", "get">["data"], app: string): boolean =>
  attachedApps.some(({ name }) => name === app);

/** Core judges a 404 by the cluster. A 404 about the App is proved here, and does not concern the attachment (R8). */
const appOf = (name: string): Place => ({ kind: "app", name });

const digestOf = async ({ api, app, name }: { api: Call["api"]; app: string; name: string }) =>
  (await ignoreIfDeleted(api, appOf(app), () => api.secrets.get({ appName: app, secretName: name })))?.digest;

/** Warns the user if another client has set the secret. */
async function warnOfTaking({ api, warn }: Call, app: string, name: string): Promise<void> {
  if ((await secretsByName(api, app)).has(name)) warn(takenOver(app, [name]));
}

const attachmentClaim = (cluster: string, app: string): string => `attachment ${bareId(cluster)}/${bareId(app)}`;

interface Stored {
  readonly secretName?: string | undefined;
  readonly secretDigest?: string | undefined;
  readonly secretUpdatedAt?: string | undefined;
  readonly uri?: string | undefined;
}

/** The value to write for a secret that a state set and this resource releases (R12). */
async function givenUp(
  { api, ...call }: Call & GivingUp,
  app: string,
  { secretName: name, secretDigest, secretUpdatedAt: updatedAt, uri = "" }: Stored,
): Promise<Readonly<Record<string, string | null>>> {
  if (name === undefined) return {};
  const live = await secretsByName(api, app);
  // The state never has a generated URI. It is empty there, so that it differs from every other value.
  const written = { digests: { [name]: secretDigest }, values: { [name]: uri }, updatedAt };
  return givingUp({ app, names: [name], live, written }, call);
}

interface Change {
  /** The value to write for the previous secret. */
  readonly given: Readonly<Record<string, string | null>>;
  /** Whether this resource has not set a secret of this name so far. */
  readonly isNew: boolean;
}

/** Sets the secret, and releases the previous one, in one request. */
async function written(call: Call, wanted: Settings, { given, isNew }: Change) {
  const { app, secretName: name } = wanted;
  const values: Record<string, string | null> = { ...given };
  if (name !== undefined) values[name] = await uriOf(call, wanted);
  if (Object.keys(values).length === 0) return {};
  if (name !== undefined && isNew) await warnOfTaking(call, app, name);
  const { secrets = [], version } = await call.api.secrets.update({ appName: app, body: { values } });
  if (name === undefined) return {};
  const set = secrets.find((secret) => secret.name === name);
  return { secretDigest: set?.digest, secretUpdatedAt: set?.updatedAt, secretsVersion: version ?? 0 };
}

async function uriOf(call: Call, { cluster, uri, user = firstUser, password, database }: Settings): Promise<string> {
  if (uri !== undefined) return uri;
  const live = await untilReady(call, cluster);
  const credentials =
    password === undefined ? await credentialsOf(call.api, cluster, user) : { username: user, password };
  const pooled = poolerUri(live, credentials, database ?? firstDatabase);
  if (pooled === undefined)
    throw new MachinesError("api", `cluster ${cluster} does not report where its connection pool listens; give a uri`);
  return pooled;
}

/** These inputs are for the connection. They need a secret name, and exclude each other. */
function problemsOf({ secretName: name, uri, ...parts }: Partial<Inputs>): readonly Problem[] {
  const { user, password, database } = parts;
  const given = Object.entries({ uri, user, password, database }).filter(([, value]) => value !== undefined);
  if (name === undefined)
    return given.map(([part]) => ({ path: [part], message: "is a part of the secret's value; set secretName too" }));
  if (uri !== undefined)
    return given
      .filter(([part]) => part !== "uri")
      .map(([part]) => ({ path: [part], message: "cannot be combined with uri, which contains it" }));
  return password !== undefined && user === undefined
    ? [{ path: ["password"], message: "needs the user it is the password of" }]
    : [];
}

// The objects of the service and the objects of a state, both as sorted lines that can be compared: a type and an id.
import { fleetTag } from "../../api/fleetTags.ts";
import { isObject } from "../../api/schema.ts";
import { isForeign } from "../../provider/machines/settings.ts";
import { firstDatabase, firstUser } from "../../provider/postgres/credentials.ts";
import type { ResourceName } from "../../provider/registry.ts";
import type { Service } from "../../service/index.ts";
import { entriesOf, entryOf, none, type EveryType } from "../support/everyType.ts";
import type { Kept, Stack } from "../support/modelStack.ts";

const gone =
  "('scheduling_destroy', 'pending_destroy', 'fork_cleanup', 'waiting_for_detach', 'destroying', 'destroyed')";
const live = "JOIN clusters c ON c.id = cluster AND c.status NOT IN ('deleting', 'deleted')";
const machines = "machines m JOIN apps a ON a.id = m.app";
const isThere = `destroyed_at IS NULL AND m.state <> 'destroying' AND m.metadata ->> '${fleetTag}'`;

/** One query for the ids of all objects of a type. */
const queries: EveryType<string> = {
  App: "SELECT name AS id FROM apps WHERE deleting = 0",
  // The Machines of a fleet are known by their tag, also to a state that was written before they were created.
  Fleet: `SELECT DISTINCT a.name || '/' || (m.metadata ->> '${fleetTag}') AS id FROM ${machines} WHERE ${isThere} IS NOT NULL`,
  Machine: `SELECT a.name || '/' || m.id AS id FROM ${machines} WHERE ${isThere} IS NULL`,
  MachineMetadata: `SELECT a.name || '/' || m.id || '/' || k.key AS id FROM ${machines}, json_each(m.metadata) k
    WHERE ${isThere} IS NULL`,
  MachineCommand: none("the service does not store commands"),
  Volume: `SELECT a.name || '/' || v.id AS id FROM volumes v JOIN apps a ON a.id = v.app WHERE state NOT IN ${gone}`,
  VolumeSnapshot: none("no operation deletes one: it outlives its resource, and expires"),
  Secret: "SELECT a.name || '/' || s.name AS id FROM secrets s JOIN apps a ON a.id = s.app",
  AppSecrets: none("its objects are Secrets"),
  SecretKey: "SELECT a.name || '/' || s.name AS id FROM secret_keys s JOIN apps a ON a.id = s.app",
  Ciphertext: none("the service does not store it"),
  Signature: none("the service does not store it"),
  DeployToken: none("no operation revokes one: it outlives its resource, and expires"),
  IpAssignment: "SELECT a.name || '/' || i.ip AS id FROM ips i JOIN apps a ON a.id = i.app",
  // A hostname that has no certificate is left of one.
  AcmeCertificate:
    "SELECT a.name || '/' || hostname AS id FROM hostnames h JOIN apps a ON a.id = h.app WHERE acme_requested = 1 OR custom_chain IS NULL",
  CertificateValidation: none("it is a wait for an AcmeCertificate"),
  CustomCertificate:
    "SELECT a.name || '/' || hostname AS id FROM hostnames h JOIN apps a ON a.id = h.app WHERE custom_chain IS NOT NULL",
  PostgresCluster: "SELECT id FROM clusters WHERE status NOT IN ('deleting', 'deleted')",
  PostgresDatabase: `SELECT cluster || '/database/' || d.name AS id FROM databases d ${live} WHERE d.name <> '${firstDatabase}'`,
  PostgresUser: `SELECT cluster || '/user/' || u.name AS id FROM database_users u ${live} WHERE u.name <> '${firstUser}'`,
  PostgresExtension: `SELECT cluster || '/extension/' || database || '/' || e.name AS id FROM extensions e ${live}`,
  PostgresBackup: none("no operation deletes one: it outlives its resource, until the service removes it"),
  PostgresAttachment: `SELECT cluster || '/' || a.name AS id FROM attachments t JOIN apps a ON a.id = t.app ${live}`,
};

/** Whether objects of a type are counted. */
export const isCounted = (type: ResourceName): boolean => entryOf(queries, type) !== undefined;

/** Every object of the service, or of one organization; clusters, which are in no App, are counted for none. */
export function onService({ context, slug }: Pick<Service, "context"> & { readonly slug?: string }): string[] {
  const sql = "SELECT a.name FROM apps a JOIN orgs o ON o.id = a.org WHERE o.slug = ?";
  const apps =
    slug === undefined ? undefined : new Set(context.store.all<{ name: string }>(sql, slug).map(({ name }) => name));
  return entriesOf(queries)
    .flatMap(([type, sql]) => context.store.all<{ id: string }>(sql).map(({ id }) => `${type} ${id}`))
    .filter((line) => !line.startsWith("MachineMetadata ") || !isForeign(line.slice(line.lastIndexOf("/") + 1)))
    .filter((line) => apps === undefined || apps.has(line.slice(line.indexOf(" ") + 1).split("/", 1)[0] ?? ""))
    .sort();
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const keysIn = (value: unknown): string[] => (isObject(value) ? Object.keys(value) : []);
const metadata = (id: string, values: unknown): string[] =>
  keysIn(values)
    .filter((key) => !isForeign(key))
    .map((key) => `MachineMetadata ${id}/${key}`);

/** The objects of resources that do not have exactly the one with their id. */
const several: Readonly<Partial<Record<ResourceName, (kept: Kept) => readonly string[]>>> = {
  Machine: ({ id, state: { config } }) => [
    `Machine ${id}`,
    ...metadata(id, isObject(config) ? config["metadata"] : undefined),
  ],
  MachineMetadata: ({ id, state }) => metadata(id, state["values"]),
  AppSecrets: ({ id, state }) => keysIn(state["digests"]).map((name) => `Secret ${id}/${name}`),
  PostgresAttachment: ({ id, state: { app, secretName } }) => [
    `PostgresAttachment ${id}`,
    ...(secretName === undefined ? [] : [`Secret ${text(app)}/${text(secretName)}`]),
  ],
  IpAssignment: ({ state: { app, ip } }) =>
    text(ip)
      .split(",")
      .map((one) => `IpAssignment ${text(app)}/${one}`),
};

/** The objects of one resource. */
export const linesOf = (kept: Kept): readonly string[] =>
  several[kept.type]?.(kept) ?? (isCounted(kept.type) ? [`${kept.type} ${kept.id}`] : []);

/** All objects of a state. */
export const inState = ({ resources }: Stack): string[] =>
  [...new Set(resources.filter(({ mark }) => mark !== "replacing").flatMap(linesOf))].sort();

/** Whether another resource of the state has the same object. */
export function isClaimed(kept: Kept, resources: readonly Kept[]): boolean {
  const lines = linesOf(kept);
  return resources.some((other) => other.name !== kept.name && linesOf(other).some((line) => lines.includes(line)));
}

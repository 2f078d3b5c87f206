// The objects of the service and the objects of a state, both as sorted lines that can be compared.
import type { Kept, Stack } from "../support/modelStack.ts";
import { firstDatabase, firstUser } from "../../provider/postgres/credentials.ts";
import { fleetTag } from "../../api/fleetTags.ts";
import type { Service } from "../../service/index.ts";

const gone =
  "('scheduling_destroy', 'pending_destroy', 'fork_cleanup', 'waiting_for_detach', 'destroying', 'destroyed')";
const live = "JOIN clusters c ON c.id = cluster AND c.status NOT IN ('deleting', 'deleted')";

/** One query for all objects of a type; each row identifies one object. */
const questions: Readonly<Record<string, string>> = {
  App: "SELECT name AS what FROM apps WHERE deleting = 0",
  // The Machines of a fleet are known by their tag, also to a state that was written before they were created.
  Fleet: `SELECT DISTINCT a.name || '/' || (m.metadata ->> '${fleetTag}') AS what FROM machines m JOIN apps a ON a.id = m.app
    WHERE destroyed_at IS NULL AND state <> 'destroying' AND m.metadata ->> '${fleetTag}' IS NOT NULL`,
  Machine: `SELECT id AS what FROM machines
    WHERE destroyed_at IS NULL AND state <> 'destroying' AND metadata ->> '${fleetTag}' IS NULL`,
  Volume: `SELECT id AS what FROM volumes WHERE state NOT IN ${gone}`,
  Secret: "SELECT a.name || '/' || s.name AS what FROM secrets s JOIN apps a ON a.id = s.app",
  SecretKey: "SELECT a.name || '/' || s.name AS what FROM secret_keys s JOIN apps a ON a.id = s.app",
  IpAssignment: "SELECT a.name || '/' || i.ip AS what FROM ips i JOIN apps a ON a.id = i.app",
  AcmeCertificate:
    "SELECT a.name || '/' || hostname AS what FROM hostnames h JOIN apps a ON a.id = h.app WHERE acme_requested = 1",
  CustomCertificate:
    "SELECT a.name || '/' || hostname AS what FROM hostnames h JOIN apps a ON a.id = h.app WHERE custom_chain IS NOT NULL",
  PostgresCluster: "SELECT id AS what FROM clusters WHERE status NOT IN ('deleting', 'deleted')",
  PostgresDatabase: `SELECT cluster || '/' || d.name AS what FROM databases d ${live} WHERE d.name <> '${firstDatabase}'`,
  PostgresUser: `SELECT cluster || '/' || u.name AS what FROM database_users u ${live} WHERE u.name <> '${firstUser}'`,
  PostgresExtension: `SELECT cluster || '/' || database || '/' || e.name AS what FROM extensions e ${live}`,
  PostgresAttachment: `SELECT cluster || '/' || a.name AS what FROM attachments t JOIN apps a ON a.id = t.app ${live}`,
};

/** Every object of the service. */
export const onService = ({ context }: Service): string[] =>
  Object.entries(questions)
    .flatMap(([kind, sql]) => context.store.all<{ what: string }>(sql).map(({ what }) => `${kind} ${what}`))
    .sort();

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** The objects of one resource in a state. */
const said: Readonly<Record<string, (kept: Kept) => readonly string[]>> = {
  App: ({ id }) => [`App ${id}`],
  Machine: ({ state }) => [`Machine ${text(state["machineId"])}`],
  Fleet: ({ id }) => [`Fleet ${id}`],
  Volume: ({ state }) => [`Volume ${text(state["volumeId"])}`],
  Secret: ({ id }) => [`Secret ${id}`],
  AppSecrets: ({ id, state }) => Object.keys(state["digests"] ?? {}).map((name) => `Secret ${id}/${name}`),
  PostgresAttachment: ({ id, state }) => [
    `PostgresAttachment ${id}`,
    ...(state["secretName"] === undefined ? [] : [`Secret ${text(state["app"])}/${text(state["secretName"])}`]),
  ],
  SecretKey: ({ id }) => [`SecretKey ${id}`],
  IpAssignment: ({ state }) =>
    text(state["ip"])
      .split(",")
      .map((ip) => `IpAssignment ${text(state["app"])}/${ip}`),
  AcmeCertificate: ({ id }) => [`AcmeCertificate ${id}`],
  CustomCertificate: ({ id }) => [`CustomCertificate ${id}`],
  PostgresCluster: ({ id }) => [`PostgresCluster ${id}`],
  PostgresDatabase: ({ id }) => [`PostgresDatabase ${id.replace("/database/", "/")}`],
  PostgresUser: ({ id }) => [`PostgresUser ${id.replace("/user/", "/")}`],
  PostgresExtension: ({ id }) => [`PostgresExtension ${id.replace("/extension/", "/")}`],
};

/** The objects of one resource. */
export const linesOf = (kept: Kept): readonly string[] => said[kept.type]?.(kept) ?? [];

/** All objects of a state. */
export const inState = ({ resources }: Stack): string[] =>
  [...new Set(resources.filter(({ mark }) => mark !== "replacing").flatMap(linesOf))].sort();

/** Whether another resource of the state has the same object. */
export function isClaimed(kept: Kept, resources: readonly Kept[]): boolean {
  const lines = linesOf(kept);
  return resources.some((other) => other.name !== kept.name && linesOf(other).some((line) => lines.includes(line)));
}

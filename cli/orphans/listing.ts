// The types that are compared, as their definitions list them.
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { listHostnames } from "../../provider/certificates/hostnameCertificates.ts";
import { pathId, type IdFormat } from "../../provider/core/ids.ts";
import type { Listing } from "../../provider/core/listing.ts";
import { isParent, type Resource } from "../../provider/core/resource.ts";
import { resources } from "../../provider/registry.ts";

/** A type whose objects are compared. */
export interface ListedType extends Listing {
  /** Name of the resource type; `Hostname` for a hostname without a certificate, which has none. */
  readonly type: string;
  readonly id: IdFormat;
  /** Whether a resource of the type can adopt one. */
  readonly isImportable: boolean;
}

const listed = Object.values(resources).flatMap((resource) => {
  const { name: type, id, list, noImport } = resource;
  return list === undefined ? [] : [{ resource, as: { type, id, isImportable: noImport === undefined, ...list } }];
});

function typesWhere(applies: (resource: Resource) => boolean): readonly ListedType[] {
  return listed.filter(({ resource }) => applies(resource)).map(({ as }) => as);
}

/** Every type whose objects a program can adopt, by name. */
export const importableTypes: ReadonlyMap<string, ListedType> = new Map(
  listed.flatMap(({ as }) => (as.isImportable ? [[as.type, as] as const] : [])),
);

const typeNamed = (type: string): ListedType => {
  const [found] = typesWhere(({ name }) => name === type);
  if (!found) throw new Error(`there is no listed type ${type}`);
  return found;
};

/** Apps themselves. */
export const listedApps = typeNamed("App");

/** Clusters themselves. */
export const listedClusters = typeNamed("PostgresCluster");

/** A hostname that an interrupted deletion has left without certificates. */
const bareHostnames: ListedType = {
  type: "Hostname",
  id: pathId("app", "hostname"),
  isImportable: false,
  objects: async (pass, appName) =>
    (await listHostnames(pass, appName)).filter(({ acme, custom }) => !acme && !custom).map(({ object }) => object),
  shownBy: "certificates.get",
  deletedBy: "certificates.delete",
};

/** The objects in an App. */
export const listedInApp: readonly ListedType[] = [
  ...typesWhere((resource) => resource.within.kind === "app" && !isParent(resource)),
  bareHostnames,
];

/** The objects in a cluster. */
export const listedInCluster = typesWhere((resource) => resource.within.kind === "cluster" && !isParent(resource));

type Parts = Readonly<Record<string, string>>;

/** The request that shows an object: `GET /v1/apps/shop/machines/3d8d413b29d089`. */
export const requestToShow = ({ shownBy, id }: ListedType, parts: Parts): string => requestOf(shownBy, id, parts);

/** Whether an object can be deleted. */
export const isDeletable = ({ deletedBy }: ListedType): boolean => deletedBy !== undefined;

function requestOf(operation: Listing["shownBy"], id: IdFormat, parts: Parts): string {
  const [group = "", method = ""] = operation.split(".");
  const rows: Readonly<Record<string, Readonly<Record<string, Operation>>>> = contract;
  const row = rows[group]?.[method];
  if (!row) throw new Error(`there is no operation ${operation}`);
  // The path has the same parts as the id, in the same order.
  const values = id.parts.map((part) => encodeURIComponent(parts[part] ?? "").replaceAll("*", "%2A"));
  return `${row.method} ${row.path.replace(/\{\w+\}/g, () => values.shift() ?? "")}`;
}

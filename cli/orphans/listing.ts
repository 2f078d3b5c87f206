// The types that are compared, as their definitions list them.
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { listHostnames } from "../../provider/certificates/hostnameCertificates.ts";
import { pathId, type IdFormat } from "../../provider/core/ids.ts";
import type { Listing } from "../../provider/core/listing.ts";
import { isParent, type Resource } from "../../provider/core/resource.ts";
import { opTag, ownerTag, stackTag } from "../../provider/machines/create.ts";
import { fleetOf, liveMachines } from "../../provider/machines/live.ts";
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
  if (list === undefined) return [];
  const objects = type === "Fleet" ? listFleets(list) : list.objects;
  return [{ resource, as: { type, id, isImportable: noImport === undefined, ...list, objects } }];
});

/** The fleets of an App. The list shows the tags of one Machine of each; here they have only those that all Machines share. */
function listFleets({ objects }: Listing): Listing["objects"] {
  return async (pass, app) => {
    const [fleets, machines] = [await objects(pass, app), await liveMachines(pass, app)];
    return fleets.map((fleet) => {
      const tags = machines
        .filter((machine) => fleetOf(machine) === fleet.name)
        .map(({ config, incompleteConfig }) => (config ?? incompleteConfig)?.metadata ?? {});
      const isSame = (tag: string): boolean => new Set(tags.map(({ [tag]: value }) => value)).size <= 1;
      const { [ownerTag]: owner, [stackTag]: state, ...rest } = fleet.metadata ?? {};
      // A fleet with Machines of several owners is not all of one stack: any tag shows that it is Pulumi's.
      if (!isSame(ownerTag)) return { ...fleet, metadata: { ...rest, [opTag]: "of several owners" } };
      const known = { ...(owner === undefined ? {} : { [ownerTag]: owner }) };
      return {
        ...fleet,
        metadata: { ...rest, ...known, ...(state !== undefined && isSame(stackTag) ? { [stackTag]: state } : {}) },
      };
    });
  };
}

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

// Lists the objects of a type page by page. The engine asks for it (`pulumi do machines:Machine list`).
import { didYouMean } from "../../api/didYouMean.ts";
import { bareId } from "../../api/names.ts";
import type { Api } from "../client/api.ts";
import { MachinesError } from "../client/errors.ts";
import { orUndefined } from "../client/existence.ts";
import { everyApp } from "../client/pages.ts";
import { newPass } from "../core/listing.ts";
import { isParent, type Resource, type Values } from "../core/resource.ts";
import { isLeaving } from "../postgres/clusters.ts";
import { resources } from "../registry.ts";

/** The number of objects of a page, if the engine does not say one. */
const usualSize = 1000;

/** A request for a page. */
export interface PageRequest {
  /** The filters: parts of the id. */
  readonly query: Values;
  /** The most objects of the page; undefined for the usual number. */
  readonly size: number | undefined;
  /** What the page before returned; empty for the first page. */
  readonly continuation: string;
}

/** A page of objects. */
export interface ObjectPage {
  /** The ids can be imported. */
  readonly items: readonly { readonly id: string; readonly name: string }[];
  /** For the next page; empty after the last one. */
  readonly continuation: string;
}

/** The filters of a type: the parts of its id, if it can be listed. */
export const filtersOf = (resource: Resource): readonly string[] =>
  (resource.list ?? resource.partOf) === undefined || isParent(resource) ? [] : resource.id.parts;

/**
 * A page of the objects of a type, in the order of the Apps or clusters that contain them, and there by id.
 * @throws MachinesError `invalid-input` if the type cannot be listed, and for an unknown filter or continuation.
 */
export async function listPage(resource: Resource, request: PageRequest, api: Api): Promise<ObjectPage> {
  // A part of another object has the same id.
  const { list, id } = (resource.partOf === undefined ? undefined : resources[resource.partOf]) ?? resource;
  if (list === undefined)
    throw new MachinesError("invalid-input", `${resource.name} cannot be listed: ${resource.unlisted}`);
  const filters = filtersFrom(resource, request.query);
  const after = positionFrom(request.continuation);
  const { size = usualSize } = request;
  const pass = newPass(api);
  const items: { id: string; name: string }[] = [];
  const wanted = filters.get(resource.within.part);
  for (const place of wanted === undefined ? await placesOf(resource, api) : [wanted]) {
    if (after !== undefined && place < after.place) continue;
    const ask = () => list.objects(pass, place);
    // An App may be deleted meanwhile, but not the one that was named.
    const objects = (wanted === undefined ? await orUndefined(ask) : await ask()) ?? [];
    const found = objects
      .map(({ parts, name }) => ({ values: id.parts.map((part) => parts[part] ?? ""), name }))
      .filter(({ values }) => resource.id.parts.every((part, i) => (filters.get(part) ?? values[i]) === values[i]))
      .map(({ values, name = values.at(-1) ?? "" }) => ({ id: resource.id.render(named(resource, values)), name }))
      .sort((a, b) => (a.id < b.id ? -1 : 1));
    for (const item of found) {
      if (after !== undefined && place === after.place && item.id <= after.id) continue;
      items.push(item);
      if (items.length === size) return { items, continuation: JSON.stringify({ place, id: item.id }) };
    }
  }
  return { items, continuation: "" };
}

const named = ({ id }: Resource, values: readonly string[]) =>
  Object.fromEntries(id.parts.map((part, i) => [part, values[i]]));

/** The Apps or clusters of the organization. */
async function placesOf({ within }: Resource, api: Api): Promise<readonly string[]> {
  const orgSlug = api.config.organization;
  if (within.kind === "cluster") {
    const { data } = await api.postgres.list({ orgSlug });
    return data.flatMap(({ id, status }) => (isLeaving(status) ? [] : [id])).sort();
  }
  // ASSUMED: an App with a role was created by the platform for itself, below a cluster for instance.
  const apps = (await everyApp(api, { orgSlug })).filter(({ appRole }) => !appRole);
  return apps.map(({ name }) => name).sort();
}

function filtersFrom(resource: Resource, query: Values): ReadonlyMap<string, string> {
  const known = filtersOf(resource);
  const filters = new Map<string, string>();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    if (!known.includes(name)) {
      const meant = didYouMean(name, known);
      const allowed = known.length === 0 ? "there are none" : `there are ${known.join(", ")}`;
      throw new MachinesError(
        "invalid-input",
        `${name}: ${resource.name} has no such filter; ${meant === undefined ? allowed : `did you mean ${meant}?`}`,
      );
    }
    if (typeof value !== "string") throw new MachinesError("invalid-input", `${name}: a filter is a text`);
    filters.set(name, bareId(value));
  }
  return filters;
}

/** The last object of the page before. */
function positionFrom(continuation: string): { readonly place: string; readonly id: string } | undefined {
  if (continuation === "") return undefined;
  try {
    const { place, id } = JSON.parse(continuation) as Record<string, unknown>;
    if (typeof place === "string" && typeof id === "string") return { place, id };
  } catch {
    // The same answer as to any other text that no page returned.
  }
  throw new MachinesError("invalid-input", "the continuation token is not one of a page before");
}

// The stacks whose programs sent requests, for the search and the clusters: looking through all requests each time would take long.
import { stackInUrn, type Stack } from "../../api/urn.ts";
import type { Audited } from "../http/audit.ts";

// ASSUMED: of an organization, the search knows the latest 500 stacks that sent requests since the service was started.
const mostOfOrganization = 500;

/** The App or the cluster that a path is about, as the path has it. */
const placeIn = (path: string): string => /^\/v1\/((?:apps|postgres)\/[^/]+)/.exec(path)?.[1] ?? "";

/** The stacks that were heard of, by organization. */
export class Stacks {
  readonly #byOrg = new Map<string, Map<string, Stack & { readonly place: string }>>();

  /** Notes who sent a request. */
  hear({ org, urn, path }: Pick<Audited, "org" | "urn" | "path">): void {
    const found = org === null ? undefined : stackInUrn(urn);
    if (org === null || !found) return;
    let known = this.#byOrg.get(org);
    if (!known) this.#byOrg.set(org, (known = new Map()));
    const place = placeIn(path);
    const key = JSON.stringify([place, found.project, found.stack]);
    known.delete(key);
    known.set(key, { ...found, place });
    if (known.size > mostOfOrganization) for (const oldest of known.keys()) return void known.delete(oldest);
  }

  /** The stacks of an organization, the latest first; of one App those that sent requests about it. */
  of(org: string, apps?: readonly string[]): readonly Stack[] {
    const all = this.#of(org);
    const places = apps && new Set(apps.map((app) => `apps/${encodeURIComponent(app)}`));
    return places ? all.filter((one) => places.has(one.place)) : all;
  }

  /** The stacks that sent requests about a cluster, the latest first. */
  ofCluster(org: string, id: string): readonly Stack[] {
    return this.#of(org).filter(({ place }) => place === `postgres/${id}`);
  }

  #of(org: string) {
    return [...(this.#byOrg.get(org)?.values() ?? [])].reverse();
  }
}

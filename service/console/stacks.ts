// The stacks whose programs sent requests, for the search: looking through all requests for each letter would take long.
import { stackInUrn, type Stack } from "../../api/stackInUrn.ts";
import type { Audited } from "../http/audit.ts";

// ASSUMED: of an organization, the search knows the latest 500 stacks that sent requests since the service was started.
const mostOfOrganization = 500;

const appIn = (path: string): string => /^\/v1\/apps\/([^/]+)/.exec(path)?.[1] ?? "";

/** The stacks that were heard of, by organization. */
export class Stacks {
  readonly #byOrg = new Map<string, Map<string, Stack & { readonly app: string }>>();

  /** Notes who sent a request. */
  hear({ org, urn, path }: Pick<Audited, "org" | "urn" | "path">): void {
    const found = org === null ? undefined : stackInUrn(urn);
    if (org === null || !found) return;
    let known = this.#byOrg.get(org);
    if (!known) this.#byOrg.set(org, (known = new Map()));
    const app = appIn(path);
    const key = JSON.stringify([app, found.project, found.stack]);
    known.delete(key);
    known.set(key, { ...found, app });
    if (known.size > mostOfOrganization) for (const oldest of known.keys()) return void known.delete(oldest);
  }

  /** The stacks of an organization, the latest first; of one App those that sent requests about it. */
  of(org: string, app?: string): readonly Stack[] {
    const all = [...(this.#byOrg.get(org)?.values() ?? [])].reverse();
    const path = app === undefined ? undefined : encodeURIComponent(app);
    return path === undefined ? all : all.filter((one) => one.app === path);
  }
}

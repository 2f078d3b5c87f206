// Checks at preview whether an organization exists; the service is asked once per run.
import type { Api } from "../client/api.ts";
import { ApiError, isNotFound } from "../client/errors.ts";
import { didYouMean } from "../../api/didYouMean.ts";

/** Why nothing can be created in an organization; undefined if it can. `slug` is the configured one when left out. */
export async function organizationProblem(api: Api, slug = api.config.organization): Promise<string | undefined> {
  // The caller's own, which always exists (docs/interface.md#organizations-and-tokens).
  if (slug === "personal") return undefined;
  try {
    await api.session.answers.get(`organization ${slug}`, () => api.apps.list({ orgSlug: slug, limit: 1 }));
    return undefined;
  } catch (error) {
    if (error instanceof ApiError && error.status === 403)
      return `the token from ${api.config.tokenSource} cannot use the organization ${JSON.stringify(slug)}${await hint(api, slug)}`;
    if (isNotFound(error)) return `there is no organization ${JSON.stringify(slug)}${await hint(api, slug)}`;
    throw error;
  }
}

/** Why nothing can be done in the configured organization. A token for one App may not list its organization's Apps. */
export async function configuredOrganizationProblem(api: Api): Promise<string | undefined> {
  const problem = await organizationProblem(api);
  if (problem === undefined || (await slugsOf(api)).includes(api.config.organization)) return undefined;
  return `machines:organization: ${problem}`;
}

/** The organizations of the token. */
async function slugsOf(api: Api): Promise<readonly string[]> {
  const { tokens } = await api.session.answers.get("token", () => api.tokens.current({}));
  return [...new Set(tokens.flatMap(({ orgSlug }) => orgSlug ?? []))];
}

/** The organization that was probably meant, or those of the token. */
async function hint(api: Api, slug: string): Promise<string> {
  const slugs = await slugsOf(api);
  const meant = didYouMean(slug, slugs);
  if (meant !== undefined) return `; did you mean "${meant}"?`;
  return slugs.length === 0 ? "" : `; the token is for ${slugs.join(", ")}`;
}

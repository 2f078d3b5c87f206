// Whether a region exists, asked of the service once per run.
import type { Api } from "../client/api.ts";
import { fact } from "../client/inventory.ts";
import { nearest } from "../core/nearest.ts";

/** Why a region cannot be used, with the nearest that can; undefined when it can. */
export async function regionProblem(api: Api, region: string | undefined): Promise<string | undefined> {
  if (region === undefined) return undefined;
  const { regions } = await fact(api, "regions", () => api.platform.regions({}));
  const open = regions.filter(({ deprecated }) => deprecated !== true).map(({ code }) => code);
  if (open.includes(region)) return undefined;
  const meant = nearest(region, open);
  const hint =
    meant === undefined ? `regions are ${open.join(", ")}` : `did you mean "${meant}"? Regions are ${open.join(", ")}`;
  return `there is no region ${JSON.stringify(region)}; ${hint}`;
}

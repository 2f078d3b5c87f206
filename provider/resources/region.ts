// Whether a region exists and has what is wanted, asked of the service once per run.
import type { Api } from "../client/api.ts";
import { fact } from "../client/inventory.ts";
import { nearest } from "../core/nearest.ts";

/** Why a region cannot be used, with the nearest that can; undefined when it can. */
export async function regionProblem(
  api: Api,
  region: string | undefined,
  wants: "Machines" | "Postgres" = "Machines",
): Promise<string | undefined> {
  if (region === undefined) return undefined;
  const { regions } = await fact(api, "regions", () => api.platform.regions({}));
  const open = regions.filter(({ deprecated }) => deprecated !== true);
  const fit = open.filter(({ mpgAvailable }) => wants === "Machines" || mpgAvailable === true).map(({ code }) => code);
  if (fit.includes(region)) return undefined;
  if (open.some(({ code }) => code === region))
    return `the region ${JSON.stringify(region)} does not offer ${wants}; regions that do are ${fit.join(", ")}`;
  const meant = nearest(region, fit);
  const hint =
    meant === undefined ? `regions are ${fit.join(", ")}` : `did you mean "${meant}"? Regions are ${fit.join(", ")}`;
  return `there is no region ${JSON.stringify(region)}; ${hint}`;
}

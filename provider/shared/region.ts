// Checks whether regions exist, are suitable and have capacity; the service is asked once per run.
import type { z } from "zod";
import type { Camel } from "../../api/case.ts";
import { sizeOf, type machineConfig } from "../../api/machineConfig.ts";
import type { Api } from "../client/api.ts";
import { ApiError } from "../client/errors.ts";
import { didYouMean } from "../../api/didYouMean.ts";
import type { Warning } from "../core/resource.ts";

/** Why a region cannot be used, with the nearest usable one; undefined if it can. */
export async function regionProblem(
  api: Api,
  region: string | undefined,
  wants: "Machines" | "Postgres" = "Machines",
): Promise<string | undefined> {
  if (region === undefined) return undefined;
  const { regions } = await api.session.answers.get("regions", () => api.platform.regions({}));
  const open = regions.filter(({ deprecated }) => deprecated !== true);
  const fit = open.filter(({ mpgAvailable }) => wants === "Machines" || mpgAvailable === true).map(({ code }) => code);
  if (fit.includes(region)) return undefined;
  if (open.some(({ code }) => code === region))
    return `the region ${JSON.stringify(region)} does not offer ${wants}; regions that do are ${fit.join(", ")}`;
  const meant = didYouMean(region, fit);
  const hint =
    meant === undefined ? `regions are ${fit.join(", ")}` : `did you mean "${meant}"? Regions are ${fit.join(", ")}`;
  return `there is no region ${JSON.stringify(region)}; ${hint}`;
}

/** Why the first of several regions that does not exist cannot be used. */
export async function regionsProblem(api: Api, regions: readonly string[] = []): Promise<string | undefined> {
  const problems = await Promise.all(regions.map((region) => regionProblem(api, region)));
  return problems.find((problem) => problem !== undefined);
}

/**
 * Finds the regions without room for a Machine of this size, in the order in which they are tried
 * (docs/interface.md#placements).
 */
export async function roomWarning(
  api: Api,
  regions: readonly string[],
  { guest, size }: Pick<Camel<z.infer<typeof machineConfig>>, "guest" | "size">,
): Promise<Warning | undefined> {
  const { kind, cpus, memoryMb } = sizeOf({
    size,
    guest: guest && { cpu_kind: guest.cpuKind, cpus: guest.cpus, memory_mb: guest.memoryMb },
  });
  const body = {
    orgSlug: api.config.organization,
    region: regions.join(","),
    compute: { ...guest, cpuKind: kind, cpus, memoryMb },
  };
  const [first = ""] = regions;
  try {
    const answer = await api.session.answers.get(`room ${JSON.stringify(body)}`, () =>
      api.platform.placements({ body }),
    );
    const open = regions.filter((region) => answer.regions.some((placed) => placed.region === region));
    if (open.includes(first)) return undefined;
    return {
      warning:
        open[0] === undefined
          ? `there is no room for such a Machine in ${regions.join(", ")} now; choose another region or a smaller guest`
          : `there is no room for such a Machine in ${first} now; it would be created in ${open[0]}`,
    };
  } catch (error) {
    // Other questions report an unknown region, an impossible guest, and an organization that cannot be used.
    if (error instanceof ApiError && [400, 403, 404].includes(error.status)) return undefined;
    throw error;
  }
}

// Reads `--kubeconfig`: which cluster has which regions.
import type { RegionalCluster } from "../runtime/kubernetes/index.ts";
import { regions as usual, type Region } from "../runtime/regions.ts";
import { optionOf } from "./options.ts";
import { Problem } from "./problem.ts";

/** The clusters that pairs such as `ams=/etc/clusters/ams` name. Regions of the same file are in one cluster. */
export function clustersOf(
  pairs: readonly string[],
  regions: readonly Pick<Region, "code">[] = usual,
): readonly RegionalCluster[] {
  const option = optionOf("kubeconfig");
  const known = regions.map(({ code }) => code);
  const files = new Map<string, string>();
  for (const pair of pairs) {
    const [, region = "", file = ""] = /^([^=]+)=(.+)$/.exec(pair) ?? [];
    if (region === "")
      throw new Problem(`${option} takes REGION=FILE, such as ams=/etc/clusters/ams, got ${JSON.stringify(pair)}`);
    if (!known.includes(region))
      throw new Problem(`${option} names the region ${JSON.stringify(region)}; the regions are ${known.join(", ")}`);
    if (files.has(region)) throw new Problem(`${option} names two clusters for the region ${JSON.stringify(region)}`);
    files.set(region, file);
  }
  return [...new Set(files.values())].map((kubeconfig) => ({
    kubeconfig,
    regions: [...files].filter(([, file]) => file === kubeconfig).map(([region]) => region),
  }));
}

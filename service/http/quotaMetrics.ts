// Metrics of quotas: their limits, and what is used of them.
import type { Context } from "../context.ts";
import { listQuotas, type ListedQuota } from "../store/quotas.ts";
import { quotaMetrics as of } from "../watch/catalogue.ts";
import type { Measured, Sample } from "../watch/exposition.ts";

// ASSUMED: metrics name organizations and Apps that have a quota, because only the operator sets one; the first 1,000 quotas.
const mostShown = 1000;

/** The metrics. The label `app` is empty for the quota of an organization. */
export function quotaMetrics({ store }: Pick<Context, "store">): readonly Measured[] {
  const quotas = listQuotas(store).slice(0, mostShown);
  const samples = (value: (quota: ListedQuota) => number | null): Sample[] =>
    quotas.flatMap((quota) => {
      const { org, app, kind } = quota;
      const found = value(quota);
      return found === null ? [] : [[{ org, app: app ?? "", resource: kind }, found] as const];
    });
  return [
    [of.limit, samples(({ limit }) => limit)],
    [of.used, samples(({ used }) => used)],
  ];
}

import type { ResourceValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import type { ExemptArgs } from "../core/exceptions.ts";
import { defineSettings } from "../core/settings.ts";
import { resourceName, type CheckArgs } from "../core/validate.ts";
import type { Prices } from "../../api/prices.ts";
import { addressCost, clusterCost, fleetCost, machineCost, volumeCost } from "../../provider/cost/estimate.ts";
import { givenPrices, pricesOf } from "../../provider/cost/prices.ts";
import {
  validateFleet,
  validateIpAssignment,
  validateMachine,
  validatePostgresCluster,
  validateVolume,
} from "../validators.ts";

const settings = defineSettings({
  monthly: z
    .number()
    .positive()
    .optional()
    .describe("Limit of the stack's cost per month, in the currency of the prices; no limit when left out."),
  prices: givenPrices.default({}).describe("Prices per month. Each replaces the pack's own price."),
});

/** The cost is limited, and known in advance. */
export function budget(): ResourceValidationPolicy {
  // By resource: resources are checked in sequence, and the one that exceeds the limit is reported before its creation.
  const costs = new Map<string, number>();

  function check(args: CheckArgs, report: (message: string) => void, cost: (prices: Prices) => number): void {
    const { monthly, prices: given } = settings.of(args);
    if (monthly === undefined) return;
    const prices = pricesOf(given);
    const own = cost(prices);
    // A resource with an exception is left out of the sum. Otherwise the exception would only help if the resource is the
    // one that exceeds the limit, which depends on the order of the resources.
    if (own > 0 && (args as CheckArgs & Partial<ExemptArgs>).isExempt?.()) {
      costs.delete(args.urn);
      return;
    }
    costs.set(args.urn, own);
    const total = [...costs.values()].reduce((sum, each) => sum + each, 0);
    const money = (amount: number): string => `${amount.toFixed(2)} ${prices.currency}`;
    if (own > 0 && total > monthly)
      report(
        `By estimate it costs ${money(own)} a month and takes the stack to ${money(total)}; ${money(monthly)} are allowed. The estimate counts what is declared as if it ran all month.`,
      );
  }

  return {
    name: "budget",
    description: "The stack's estimated cost per month stays within its limit.",
    severity: "medium",
    remediationSteps:
      "Use smaller or fewer Machines, volumes or clusters, or raise `monthly`. `prices` takes the prices of your contract.",
    configSchema: settings.schema,
    validateResource: [
      validateMachine((machine, args, report) => {
        if (resourceName(args.type) === "Fleet") args.notApplicable("a fleet is counted as a whole");
        check(args, report, (prices) => machineCost(machine, prices));
      }),
      validateFleet((fleet, args, report) => check(args, report, (prices) => fleetCost(fleet, prices))),
      validateVolume((volume, args, report) => check(args, report, (prices) => volumeCost(volume, prices))),
      validateIpAssignment((address, args, report) => check(args, report, (prices) => addressCost(address, prices))),
      validatePostgresCluster((cluster, args, report) => check(args, report, (prices) => clusterCost(cluster, prices))),
    ],
  };
}

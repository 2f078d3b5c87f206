// The prices of an estimate: the table, and what a team replaces in it. The policy `budget` and the command `cost` take them from
// the same file.
import { z } from "zod";
import { prices as defaults, type Prices } from "../../api/prices.ts";

const price = z.number().min(0);

/** What a team gives: each price replaces the one in the table. */
export const givenPrices = z.strictObject({
  currency: z.string().optional().describe("Currency of the prices. It is only shown; nothing is converted."),
  sharedCpu: price.optional().describe("A shared CPU."),
  performanceCpu: price.optional().describe("A performance CPU."),
  memoryGb: price.optional().describe("A GB of a Machine's memory."),
  gpu: z.record(z.string(), price).optional().describe("A GPU, by its kind."),
  volumeGb: price.optional().describe("A GB of a volume."),
  address: z.record(z.string(), price).optional().describe("An address, by its type."),
  postgres: z.record(z.string(), price).optional().describe("A Postgres cluster, by its plan."),
  postgresDiskGb: price.optional().describe("A GB of a cluster's disk."),
});

/** The prices that a team gives. */
export type GivenPrices = z.infer<typeof givenPrices>;

/** The whole table, with the prices that a team gives. */
export function pricesOf(given: GivenPrices = {}): Prices {
  const { gpu, address, postgres, ...rest } = given;
  return {
    ...defaults,
    ...rest,
    gpu: { ...defaults.gpu, ...gpu },
    address: { ...defaults.address, ...address },
    postgres: { ...defaults.postgres, ...postgres },
  } as Prices;
}

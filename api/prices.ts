// The price table of the budget: monthly prices in US dollars. It is data for an estimate, not an offer. A team can replace
// individual prices by those of its contract, with `prices` of the policy.

/** Monthly prices. */
export interface Prices {
  /** Currency of the prices. It is only shown; nothing is converted. */
  readonly currency: string;
  /** A shared CPU. */
  readonly sharedCpu: number;
  /** A performance CPU. */
  readonly performanceCpu: number;
  /** A GB of a Machine's memory. */
  readonly memoryGb: number;
  /** A GPU, by its kind. */
  readonly gpu: Readonly<Record<string, number>>;
  /** A GB of a volume. */
  readonly volumeGb: number;
  /** An address, by its type; types without a price cost nothing. */
  readonly address: Readonly<Record<string, number>>;
  /** A Postgres cluster, by its plan. */
  readonly postgres: Readonly<Record<string, number>>;
  /** A GB of a cluster's disk. */
  readonly postgresDiskGb: number;
}

// ASSUMED: the interface has no prices; these are of the order that such platforms ask.
/** The default prices of an estimate. */
export const prices: Prices = {
  currency: "USD",
  sharedCpu: 0.7,
  performanceCpu: 21,
  memoryGb: 5,
  gpu: { a10: 1095, l40s: 511, "a100-pcie-40gb": 913, "a100-sxm4-80gb": 2555 },
  volumeGb: 0.15,
  address: { v4: 2, egress_v4: 3.6, egress_pair: 3.6 },
  postgres: { basic: 38, starter: 72, launch: 282, scale: 962, performance: 1922 },
  postgresDiskGb: 0.28,
};

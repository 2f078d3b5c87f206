/** Prices that are easy to add. */
export const roundPrices = {
  sharedCpu: 1,
  performanceCpu: 10,
  memoryGb: 4,
  gpu: { a10: 100 },
  volumeGb: 1,
  address: { v4: 2 },
  postgres: { basic: 30 },
  postgresDiskGb: 1,
};

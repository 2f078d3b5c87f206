// The regions of the service whose histories are recorded.

/** A region with little room for each of the histories of a round. One kill interrupts all, because a restart takes long. */
export const regions = ["arn", "bom", "cdg", "dfw", "ewr"] as const;
/** The number of Machines that have room in each. */
export const room = 3;

/** The file of `--regions`. */
export const regionsFile = {
  regions: [{ code: "ams" }, ...regions.map((code) => ({ code, capacity: room }))],
};

// The specification tests of clusters that do not run on real servers, with the reasons.
import type { Exceptions } from "../../../support/exceptions.ts";

/** The exceptions. */
export const exceptions: readonly Exceptions[] = [
  {
    because: "the test asks for a simulated behaviour or address",
    tests: {
      postgres: [
        "a simulated cluster has one host for direct connections and one for the pool",
        "a simulated cluster's storage is null before that",
        "a cluster that cannot be created is failed, and can be deleted",
        "a cluster that is never ready stays initializing, and can be deleted",
        "a creation that fails immediately is 400",
      ],
    },
  },
  {
    because: "the test has an engine of its own, for queries that it knows",
    tests: { postgres: ["queries are listed: running ones, in one database or in all, and slow ones"] },
  },
  {
    because: "the PostgreSQL of the npm package and of CloudNativePG's images has no PostGIS",
    tests: { postgres: ["PostGIS can be installed in a cluster that was created for it"] },
  },
];

// The specification tests of clusters that do not run on CloudNativePG, with the reasons.
import { exceptions as onServers } from "../../service/postgres/spec/simulatedOnly.ts";
import type { Exceptions } from "../../support/exceptions.ts";

/** The exceptions. */
export const exceptions: readonly Exceptions[] = [
  // Real servers of any engine have these.
  ...onServers,
  {
    because: "the engine has no archive of changes, and refuses the time by name",
    tests: {
      postgres: [
        "restoring to a time uses the latest backup before it",
        "the reported end of a backup, which has whole seconds, is a time that can be restored",
      ],
    },
  },
];

// The specification tests that do not run against several members, with the reasons.
import type { Exceptions } from "../../../support/exceptions.ts";

/** The exceptions. */
export const exceptions: readonly Exceptions[] = [
  {
    because: "the test closes the service, and a standby waits for the next leader; processes.test.ts has a hand-over",
    tests: { wait: ["closing the service ends held requests at once, and the client reconnects"] },
  },
];

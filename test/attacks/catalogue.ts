// The attacks on the walls between tenants, and between them and the operator's computer, by the ids of their faults. The table in
// docs/security.md is generated from it. Each has a test below test/attacks/ that does it again.
import type { Fault } from "../faults/catalogue.ts";

/** Attacks by the wall that they try. */
export const attacks = {
  databases: {},
  hostnames: {},
  proxy: {},
  console: {},
  containers: {},
  time: {
    F93: {
      wrong: "the clock of the computer is set far ahead, and back",
      promised:
        "dates follow it in both directions: a token with an end is valid until then, and no longer than it was meant to be; a jump is logged once",
    },
    F94: {
      wrong: "the clock is set while leases, waits, timers, limits and time-outs run",
      promised: "each lasts as long as it would have, also over a restart",
    },
  },
  authorization: {
    F95: {
      wrong:
        "a token or a session uses an operation or a route that is not for it: of another organization or App, read-only, expired, revoked, or none",
      promised:
        "it is refused, changes nothing and sees nothing of others; a new operation or route without a decision about it fails the tests",
    },
    F96: {
      wrong: "a client goes on to follow the logs of an App after its token was revoked or has expired",
      promised: "the answer ends before the next line, and within 15 seconds",
    },
  },
} as const satisfies Record<string, Record<string, Fault>>;

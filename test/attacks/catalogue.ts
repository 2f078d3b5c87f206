// The attacks on the walls between tenants, and between them and the operator's computer, by the ids of their faults. The table in
// docs/security.md is generated from it. Each has a test below test/attacks/ that does it again.
import type { Fault } from "../faults/catalogue.ts";

/** Attacks by the wall that they try. */
export const attacks = {
  databases: {},
  hostnames: {},
  proxy: {},
  console: {
    F81: {
      wrong:
        "A Machine's raw TCP service at another port of 127.0.0.1 receives the console's cookie from the browser, and uses the session with it.",
      promised:
        "The cookie alone opens nothing: each request also needs a key that only pages of the console's own address can read.",
    },
    F82: {
      wrong: "A session reads the values of all secrets with `show_secrets=true`, and the passwords of database users.",
      promised: "A session gets no secret from an operation or a view, whatever its token may read.",
    },
    F83: {
      wrong: "Nobody can tell afterwards which secret values someone has seen in the console.",
      promised:
        "Each value is revealed by a request of its own, which needs the rights of a change and has an entry in the audit.",
    },
    F84: {
      wrong:
        "A read-only token asks again and again for a large App as code. Other clients wait for seconds, and the memory is not given back.",
      promised:
        "Programs are written beside the service, with bounds of bytes, memory and time, and equal requests share one answer. Others do not wait.",
    },
    F85: {
      wrong: "One token opens every event stream that there is, and the pages of all others get 503.",
      promised:
        "A token and an organization have a share. An organization with fewer pages gets a place, and some places are the operator's.",
    },
    F86: {
      wrong: "Someone plans or removes a fault in the console, and the audit does not show it.",
      promised: "Each change of a fault is in the audit, with the fault, its id, and who changed it.",
    },
  },
  containers: {},
  time: {},
  authorization: {},
} as const satisfies Record<string, Record<string, Fault>>;

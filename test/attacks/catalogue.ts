// The attacks on the walls between tenants, and between them and the operator's computer, by the ids of their faults. The table in
// docs/security.md is generated from it. Each has a test below test/attacks/ that does it again.
import type { Fault } from "../faults/catalogue.ts";

/** Attacks by the wall that they try. */
export const attacks = {
  databases: {},
  hostnames: {},
  proxy: {
    F74: {
      wrong:
        "Clients open connections to the proxy by the thousands and finish no request, no handshake, or read and send nothing.",
      promised:
        "They are closed after a time. There are limits in all and for each address, those in use stay, and the API keeps half of the descriptors.",
      decisive: true,
    },
    F75: {
      wrong:
        "Clients send the proxy ever new spellings of a host name, with digits for a port, or ask for a certificate for each.",
      promised:
        "Each name has one form, an App has one certificate for its names, and only the last used are remembered.",
    },
    F76: {
      wrong:
        "One connection sends hundreds of requests at once, Machines keep idle connections, or a Machine has 65,535 public ports.",
      promised:
        "Requests of a connection are sent one after the other. Kept connections and ports have limits, also for each organization.",
    },
  },
  console: {},
  containers: {},
  time: {},
  authorization: {},
} as const satisfies Record<string, Record<string, Fault>>;

// The attacks on the walls between tenants, and between them and the operator's computer, by the ids of their faults. The table in
// docs/security.md is generated from it. Each has a test below test/attacks/ that does it again.
import type { Fault } from "../faults/catalogue.ts";

/** Attacks by the wall that they try. */
export const attacks = {
  databases: {},
  hostnames: {
    F70: {
      wrong:
        "Two organizations ask for one hostname, or one for a name below the wildcard of the other. The App with the smallest id got the visitors.",
      promised:
        "A hostname belongs to the App that proved it first. Another organization's request waits, says which TXT record proves ownership, and takes over only by it. The first owner sees that.",
    },
    F71: {
      wrong:
        "An organization asks for, or uploads a certificate for, a name of the service: `APP.localhost` of another App, or the name of the API.",
      promised: "It is refused with 422. An App's own name goes before any hostname, also of an older store.",
    },
    F72: {
      wrong:
        "An uploaded certificate has a weak or a huge key, an unknown curve, a chain above ten, or a form that no TLS library loads.",
      promised: "422 says which certificate and why. Of the text, only the certificates and the key are stored.",
    },
    F73: {
      wrong:
        "An App gets the certificate and the key of another organization's hostname, because it asked for the name or one below the wildcard.",
      promised:
        "An App has only certificates of its own hostnames: at its ports, at its addresses, and in the Secrets of a cluster.",
    },
  },
  proxy: {},
  console: {},
  containers: {},
  time: {},
  authorization: {},
} as const satisfies Record<string, Record<string, Fault>>;

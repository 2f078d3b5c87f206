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
    F77: {
      wrong:
        "A Machine answers something that is no proper HTTP: other bytes, two lengths, an odd status, an unasked `100` or `101`, half of an answer.",
      promised:
        "The client gets 502 `answered with invalid HTTP`, or an answer that breaks off. No other Machine is asked once one has begun, and unasked notices are left out.",
    },
    F78: {
      wrong:
        "`response.headers` of a service has names or values that are no headers, or that say where an answer ends.",
      promised: "The preview and the service refuse them by name. Those of an older configuration are not set.",
    },
    F79: {
      wrong:
        "A client sends what can be understood in two ways: two hosts, a length and chunks, folded lines, a target with another host, an upgrade with a body.",
      promised:
        "It is refused with 400 or 501 before any Machine sees it. Each request is written anew, and requests of a connection take turns.",
    },
    F80: {
      wrong:
        "A client says who it is, by `X-Forwarded-For`, `Fly-Client-IP` and the like, or has headers removed by `Connection: host`.",
      promised: "Machines get what the proxy knows, in every spelling of these names, and all that routing needs.",
    },
  },
  console: {},
  containers: {},
  time: {},
  authorization: {},
} as const satisfies Record<string, Record<string, Fault>>;

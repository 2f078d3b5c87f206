// The attacks on the walls between tenants, and between them and the operator's computer, by the ids of their faults. The table in
// docs/security.md is generated from it. Each has a test below test/attacks/ that does it again.
import type { Fault } from "../faults/fault.ts";

/** Attacks by the wall that they try. */
export const attacks = {
  databases: {
    F62: {
      wrong:
        "An administrator of a database puts a schema with views, functions and operators of its own in front of all others, and asks for a fork, a restore, an extension or the deletion of a user.",
      promised: "Nothing that a client has defined runs for the service, and the client is no superuser afterwards.",
    },
    F63: {
      wrong:
        "A client waits in its database for a superuser: one that installs an extension whose script trusts what is there.",
      promised:
        "The server lets no superuser into a database of clients, and no client into that of the superuser. Extensions that PostgreSQL does not trust are refused.",
    },
    F64: {
      wrong:
        "A user reads the verifiers of passwords: in the server's catalogs, in the statistics of statements, or in running statements; also in a cluster of an earlier version.",
      promised:
        "Permission is denied to readers, writers and administrators. They still have their rights in all tables.",
    },
    F65: {
      wrong:
        "The owner of a database makes it read-only, limits its connections or allows none, and then a user is deleted.",
      promised:
        "The user is gone from the API and cannot log in any more. What it owned belongs to the administrators, and its role goes as soon as the database lets it.",
    },
    F66: {
      wrong:
        "A client who became superuser of a real Postgres server runs programs in it, and looks for the token, other clusters, the memory of the service, and its variables.",
      promised:
        "As root, each server is a user of its own, without groups, capabilities or a way to get any. Of the service it has only its own folder.",
    },
    F67: {
      wrong:
        "The data folder is moved away while a Postgres server runs in it, an older copy takes its place, and the service starts.",
      promised:
        "The old server is stopped, the log says so, and the copy is served. Rows that are acknowledged from then on are in the copy; earlier ones stay in the moved folder.",
    },
    F68: {
      wrong:
        "A superuser replaces files of the cluster by links to files of the service or of another cluster, and by pipes.",
      promised:
        "Backups, forks and restarts follow no link, copy only files of the cluster, and wait for no pipe. No program of the superuser outlives the server.",
    },
    F69: {
      wrong: "A superuser ends the server, and answers the service in its place.",
      promised:
        "It gets no password: the service enters with a certificate, which proves nothing to another server. Servers know the service by a certificate each, and so do poolers by a password.",
    },
  },
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
        "An App gets the certificate and the key of another organization's hostname, because it requested the name or one below the wildcard.",
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
        "A client sends a request that the proxy and a Machine could understand differently: two hosts, a length and chunks, folded lines, a target with another host, an upgrade with a body.",
      promised:
        "It is refused with 400 or 501 before any Machine sees it. Each request is written anew, and requests of a connection take turns.",
    },
    F80: {
      wrong:
        "A client says who it is, by `X-Forwarded-For`, `Fly-Client-IP` and the like, or has headers removed by `Connection: host`.",
      promised: "Machines get what the proxy knows, in every spelling of these names, and all that routing needs.",
    },
  },
  console: {
    F81: {
      wrong:
        "A Machine's raw TCP service at another port of 127.0.0.1 receives the console's cookie from the browser, and uses the session with it.",
      promised:
        "The cookie alone opens nothing: each request also needs a key that only pages of the console's own address can read.",
    },
    F82: {
      wrong: "A session reads the values of all secrets with `show_secrets=true`, and the passwords of database users.",
      promised: "A session gets no secret from a view or an operation that reads, whatever its token may read.",
    },
    F83: {
      wrong: "The audit does not show which secret values someone has seen in the console.",
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
  containers: {
    F87: {
      wrong: "A program in a Machine starts threads and opens files without end.",
      promised:
        "It has 2,048 processes and threads, and 65,536 files for each. Other Machines and the service do not notice.",
    },
    F88: {
      wrong:
        "A program in a Machine uses the rights of root: raw sockets, devices, setuid programs, another root folder.",
      promised:
        "It has the capabilities that common images need, and no process gets more. `--capabilities` names further ones.",
    },
    F89: {
      wrong:
        "A program in a Machine connects to this computer, at its loopback, its gateways and its own addresses: to the API, the proxy, other services, and Postgres servers of other organizations.",
      promised: "Every connection is refused at once. The Postgres servers of the Machine's organization answer.",
    },
    F90: {
      wrong:
        "A program in a Machine connects to Machines of another network, and to private networks of the operator, also while networks are created.",
      promised:
        "Every connection is refused, unless `--reach` names the network. The Machines of its own network answer.",
    },
    F91: {
      wrong: "The name of an image leads the engine to an address of this computer or of a private network.",
      promised:
        "Nothing is asked there, unless `--registries` names it. The refusal is the same, whether a server answers there or not.",
    },
    F92: {
      wrong: "A registry answers with a text that an error would show, such as what it got from an internal server.",
      promised: "The client gets a fixed reason. The log of the service has what the registry answered.",
    },
  },
  time: {
    F93: {
      wrong: "The clock of the computer is set far ahead, and back.",
      promised:
        "Dates follow it in both directions: a token with an end is valid until then, and no longer than it was meant to be. A jump is logged once.",
    },
    F94: {
      wrong: "The clock is set while leases, waits, timers, limits and time-outs run.",
      promised: "Each lasts as long as it would have, also over a restart.",
    },
  },
  authorization: {
    F95: {
      wrong:
        "A token or a session uses an operation or a route that is not for it: of another organization or App, read-only, expired, revoked, or none.",
      promised:
        "It is refused, changes nothing and sees nothing of others. A new operation or route without a decision about it fails the tests.",
    },
    F96: {
      wrong: "A client keeps following the logs of an App after its token was revoked or has expired.",
      promised: "The answer ends before the next line, and within 15 seconds.",
    },
  },
} as const satisfies Record<string, Record<string, Fault>>;

// The attacks on the walls between tenants, and between them and the operator's computer, by the ids of their faults. The table in
// docs/security.md is generated from it. Each has a test below test/attacks/ that does it again.
import type { Fault } from "../faults/catalogue.ts";

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
  },
  hostnames: {},
  proxy: {},
  console: {},
  containers: {},
  time: {},
  authorization: {},
} as const satisfies Record<string, Record<string, Fault>>;

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
        "The old server is ended, which the log says, and the copy is served. Rows that are acknowledged then are in the copy; those of before stay in the moved folder.",
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
  hostnames: {},
  proxy: {},
  console: {},
  containers: {},
  time: {},
  authorization: {},
} as const satisfies Record<string, Record<string, Fault>>;

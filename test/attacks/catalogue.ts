// The attacks on the walls between tenants, and between them and the operator's computer, by the ids of their faults. The table in
// docs/security.md is generated from it. Each has a test below test/attacks/ that does it again.
import type { Fault } from "../faults/catalogue.ts";

/** Attacks by the wall that they try. */
export const attacks = {
  databases: {
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

// How the service logs in to servers. Its superuser only enters databases that no client can enter. In the databases of clients it
// is a role that has no right, or those of the administrators, so a trap of a client there gains nothing.
import { superuser, visitor } from "./settings.ts";

/** A role of the interface is a group, with a name that no user can have. */
export const groupOf = (role: string): string => `_${role}`;

/** The group of the administrators, which owns all databases. */
export const owner = groupOf("schema_admin");

/** How the service logs in, and with which settings. */
export interface Session {
  readonly user: string;
  readonly settings: Readonly<Record<string, string>>;
}

// A setting that a connection begins with goes before those of its database, which clients choose.
const path = { search_path: "pg_catalog,pg_temp" };
const visit = {
  ...path,
  default_transaction_read_only: "off",
  local_preload_libraries: "",
  // A client may have locked what is to be changed.
  lock_timeout: "10s",
  statement_timeout: "0",
  idle_session_timeout: "0",
};

/** The sessions of the service. */
export const sessions = {
  /** In databases that no client can enter. Clients who may see statements do not see those with the verifiers of passwords. */
  superuser: {
    user: superuser,
    settings: { ...path, "pg_stat_statements.track": "none", track_activities: "off" },
  },
  /** In a database of clients, without any right. The role itself keeps its statements out of the statistics. */
  visitor: { user: visitor, settings: { ...visit, role: "none" } },
  /** In a database of clients, with the rights of its owner, whom clients can be too. */
  administrator: { user: visitor, settings: { ...visit, role: owner } },
  /** In the console of a pooler, which knows no settings. */
  console: { user: superuser, settings: {} },
} as const satisfies Record<string, Session>;

/** The settings of a session, as options of its connection. */
export const optionsOf = ({ settings }: Session): string | undefined =>
  Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(" ") || undefined;

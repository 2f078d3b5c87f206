// The ways of the service into the databases of a server.
import pg from "pg";
import { ChangeRefused } from "../postgresEngine.ts";
import { reasonOf } from "../../reasonOf.ts";
import { sessions, type Session } from "./sessions.ts";
import { superuser, systemDatabases, visitor } from "./settings.ts";

const { escapeIdentifier: name } = pg;

/** Opens a connection to a database of a server. */
export type Connect = (database: string, session: Session) => Promise<pg.Client>;

/** A server that the service can enter. */
export interface Access {
  /** The superuser, in its own database. */
  readonly admin: pg.Client;
  readonly connect: Connect;
}

async function during<T>(client: pg.Client, work: (client: pg.Client) => Promise<T>): Promise<T> {
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Does work as the superuser, over a connection of its own to a database that no client can enter. */
export async function asSuperuser<T>(
  connect: Connect,
  work: (client: pg.Client) => Promise<T>,
  database: string = superuser,
): Promise<T> {
  return during(await connect(database, sessions.superuser), work);
}

/** Does work in a database of clients, over a connection of its own. */
export async function inDatabase<T>(
  { admin, connect }: Access,
  database: string,
  as: "visitor" | "administrator",
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  // Its owner may have taken this right from everyone.
  await admin.query(`GRANT CONNECT ON DATABASE ${name(database)} TO ${visitor}`);
  return during(await connect(database, sessions[as]).catch(refusedByLimit), work);
}

/** The owner of a database may limit its connections, while those of the whole server pass by themselves. */
function refusedByLimit(error: unknown): never {
  const reason = reasonOf(error);
  throw reason.startsWith("too many connections for database") ? new ChangeRefused(reason) : error;
}

/** The databases of clients. */
export async function databasesOf(admin: pg.Client): Promise<string[]> {
  const { rows } = await admin.query<{ datname: string }>(
    "SELECT datname FROM pg_catalog.pg_database WHERE datname <> ALL ($1) ORDER BY oid",
    [systemDatabases],
  );
  return rows.map(({ datname }) => datname);
}

// The connections of the service to the servers of clusters: with a password, and only if the server has the service's certificate.
import pg from "pg";
import { optionsOf, type Session } from "../postgres/sessions.ts";

const answerMs = 10_000;

/** A server that is reached. */
export interface Reached {
  /** Address of its Pod. */
  readonly address: string;
  /** The host name in its certificate. */
  readonly host: string;
  /** The authority that has signed it, in PEM. */
  readonly root: string;
}

/** Opens a connection to a database. */
export async function connect(
  { address, host, root }: Reached,
  database: string,
  session: Session,
  password: string,
): Promise<pg.Client> {
  const client = new pg.Client({
    ...{ host: address, port: 5432, user: session.user, password, database },
    application_name: "machines-service",
    connectionTimeoutMillis: answerMs,
    keepAlive: true,
    ssl: { ca: root, servername: host },
    sslnegotiation: "postgres",
  });
  // The library takes what it is not given from variables such as PGOPTIONS, which users set for servers of their own. It takes an empty
  // text as not given.
  (client as unknown as { connectionParameters: { options: unknown } }).connectionParameters.options =
    optionsOf(session);
  // The end of a connection is noticed by its user, or by the next query.
  client.on("error", () => {});
  await client.connect();
  return client;
}

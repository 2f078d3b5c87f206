// What the engine of real servers is given for all of them.
import type { EngineHost } from "../postgresEngine.ts";
import type { Accounts } from "./account.ts";

/** What every server of an engine needs. */
export interface Installation {
  readonly accounts: Accounts;
  /** Password of the service in the pooler of a cluster. */
  readonly poolerPassword: (cluster: string) => string;
  /** Addresses to listen at; the first is 127.0.0.1. */
  readonly addresses: readonly string[];
  /** Issues a certificate for these names and addresses, until a time. */
  readonly certificate: EngineHost["certificate"];
}

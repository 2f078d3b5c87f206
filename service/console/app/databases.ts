// Asks the databases of a cluster, as one of its users.
import type { QueryAnswer, TableList } from "../types.ts";
import { Failure } from "./live.ts";
import { ask } from "./session.ts";

/** A database, and the user as whom it is asked. */
export interface Place {
  readonly cluster: string;
  readonly database: string;
  readonly user: string;
}

/** Why a query failed, as the server says it. */
export class QueryProblem extends Failure {
  /** Number of the character in the text, as the server counts; the first one is 1. */
  readonly position: number | undefined;
  /** What else the server says about it. */
  readonly more: readonly string[];

  constructor(status: number, body: Body) {
    super(status, body.error ?? `the service answered with ${status}`);
    this.position = body.position;
    this.more = [body.detail, body.hint].filter((text) => text !== undefined);
  }
}

interface Body {
  readonly error?: string;
  readonly position?: number;
  readonly detail?: string;
  readonly hint?: string;
}

async function post<T>({ cluster, ...place }: Place, path: string, more: object, signal?: AbortSignal): Promise<T> {
  const response = await ask(`/console/api/clusters/${encodeURIComponent(cluster)}/${path}`, {
    ...{ method: "POST", cache: "no-store", headers: { "content-type": "application/json" } },
    body: JSON.stringify({ ...place, ...more }),
    ...(signal ? { signal } : {}),
  });
  const body = (await response.json()) as T & Body;
  if (!response.ok) throw new QueryProblem(response.status, body);
  return body;
}

/** The tables and views. */
export const listTables = (place: Place): Promise<TableList> => post(place, "tables", {});

/** Runs a query. */
export const runQuery = (place: Place, sql: string, write: boolean, signal?: AbortSignal): Promise<QueryAnswer> =>
  post(place, "query", { sql, write }, signal);

/** A name in SQL. */
export const named = (name: string): string => `"${name.replaceAll('"', '""')}"`;

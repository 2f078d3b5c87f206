// A PostgreSQL for the tests of a file.
import { afterAll, beforeAll, beforeEach } from "vitest";
import { logSchema } from "../../../service/replication/postgresLog.ts";
import { startPostgres, type TestPostgres } from "./postgres.ts";

/** A moment by the clock of the database; what follows happens later. */
export async function momentOf(server: Pick<TestPostgres, "query">): Promise<string> {
  const { rows } = await server.query("SELECT clock_timestamp() AS now, pg_sleep(0.002)");
  return (rows[0] as { now: Date }).now.toISOString();
}

/** A server for the tests of a file, each of which begins without a store. Call it where tests are declared. */
export function serverForTests(): Pick<TestPostgres, "url" | "query"> {
  let server: TestPostgres | undefined;
  const started = (): TestPostgres => {
    if (!server) throw new Error("the server is there only during tests");
    return server;
  };
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.remove());
  beforeEach(async () => {
    await started().query(`DROP SCHEMA IF EXISTS ${logSchema} CASCADE`);
  });
  return {
    get url() {
      return started().url;
    },
    query: (sql) => started().query(sql),
  };
}
